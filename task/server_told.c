/* SPDX-License-Identifier: Apache-2.0 */
/* What whoever starts a task tells it in its environment. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/mem.h"
#include "task/server.h"

struct ports {
	int grpc, stream, http; /* -1: nothing is said of it */
};

/* One variable for all: each that a pod has costs the API server a fiftieth of the pod. */
static int read_ports(struct ports *out, struct mu_err *err)
{
	const struct {
		const char *name;
		int *port;
	} known[] = {{"grpc=", &out->grpc}, {"stream=", &out->stream}, {"http=", &out->http}};
	const char *at = getenv("MUSTER_PORTS");

	*out = (struct ports){-1, -1, -1};
	while (at && *at) {
		size_t n = strcspn(at, ","), name = 0, i, digits;

		for (i = 0; i < MU_COUNT(known); i++) {
			name = strlen(known[i].name);
			if (strncmp(at, known[i].name, name) == 0)
				break;
		}
		digits = i < MU_COUNT(known) ? strspn(at + name, "0123456789") : 0;
		if (digits == 0 || digits > 5 || name + digits != n || atoi(at + name) > UINT16_MAX)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "MUSTER_PORTS: '%.*s' is not grpc=, stream= or http= and a "
				       "number from 0 to 65535",
				       n < 40 ? (int)n : 40, at);
		*known[i].port = atoi(at + name);
		at += n + (at[n] == ',');
	}
	return 0;
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
	struct ports p;
	int rc = read_ports(&p, err);

	if (rc)
		return rc;
	if (o->http_port < 0)
		o->http_port = p.http;
	if (!o->stream_port && p.stream > 0)
		o->stream_port = p.stream;
	if (!o->bind && p.grpc >= 0 && is_name(address)) {
		snprintf(bind, TASK_SERVER_BIND, "0.0.0.0:%d", p.grpc);
		o->bind = bind;
	}
	if (!o->tls)
		o->tls = getenv("MUSTER_TLS");
	if (!o->kernels)
		o->kernels = getenv("MUSTER_KERNELS");
	return 0;
}
