/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever starts a task tells it in its environment. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "lib/tls/token.h"
#include "task/server.h"

enum { MOST_DIGITS = 9 };

struct self {
	int epoch, grpc, stream, http; /* -1: nothing is said of it */
};

/* One variable for all: each is made, sent, checked and stored with every pod. */
static int read_self(struct self *out, struct mu_err *err)
{
	const struct {
		const char *name;
		int *number, most;
	} known[] = {{"epoch=", &out->epoch, INT32_MAX},
		     {"grpc=", &out->grpc, UINT16_MAX},
		     {"stream=", &out->stream, UINT16_MAX},
		     {"http=", &out->http, UINT16_MAX}};
	const char *at = getenv("MUSTER_SELF");

	*out = (struct self){-1, -1, -1, -1};
	while (at && *at) {
		size_t n = strcspn(at, ","), name = 0, i, digits;

		for (i = 0; i < MU_COUNT(known); i++) {
			name = strlen(known[i].name);
			if (strncmp(at, known[i].name, name) == 0)
				break;
		}
		digits = i < MU_COUNT(known) ? strspn(at + name, "0123456789") : 0;
		if (digits == 0 || digits > MOST_DIGITS || name + digits != n ||
		    atoi(at + name) > known[i].most)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "MUSTER_SELF: '%.*s' is not epoch=, grpc=, stream= or http= "
				       "and a number, of ports up to 65535",
				       n < 40 ? (int)n : 40, at);
		*known[i].number = atoi(at + name);
		at += n + (at[n] == ',');
	}
	return 0;
}

/* Who is shown no GPU looks for none. */
static const char *kernels_told(void)
{
	const char *kernels = getenv("MUSTER_KERNELS"), *gpus = getenv("NVIDIA_VISIBLE_DEVICES");

	return !kernels && gpus && strcmp(gpus, "void") == 0 ? "cpu" : kernels;
}

/* A pod's name leads to it only once it is ready: so all of its one address is meant. */
static bool is_name(const char *address)
{
	return strspn(address, "0123456789.:") != strlen(address) &&
	       strncmp(address, "localhost:", 10) != 0 && strncmp(address, "unix:", 5) != 0;
}

int task_server_told(struct task_server_options *o, const char *address,
		     char bind[TASK_SERVER_BIND], struct mu_err *err)
{
	struct self said;
	int rc = read_self(&said, err);

	if (rc)
		return rc;
	if (!o->epoch && said.epoch > 0)
		o->epoch = said.epoch;
	if (o->http_port < 0)
		o->http_port = said.http;
	if (!o->stream_port && said.stream > 0)
		o->stream_port = said.stream;
	if (!o->bind && said.grpc >= 0 && is_name(address)) {
		snprintf(bind, TASK_SERVER_BIND, "0.0.0.0:%d", said.grpc);
		o->bind = bind;
	}
	if (!o->token_digest)
		o->token_digest = getenv("MUSTER_TOKEN_SHA256");
	if (o->token_digest && !mu_token_is_digest(o->token_digest))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "MUSTER_TOKEN_SHA256 is not 64 hexadecimal digits in lower case");
	if (!o->tls)
		o->tls = getenv("MUSTER_TLS");
	if (!o->kernels)
		o->kernels = kernels_told();
	return 0;
}
