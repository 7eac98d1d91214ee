/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the task's configuration from the environment. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/tls/token.h"
#include "task/server.h"

/* Does not change *out if the variable is unset or empty. */
static int env_read_number(const char *name, int max, int *out, struct mu_err *err)
{
	const char *text = getenv(name);
	long n;

	if (!text || !*text)
		return 0;
	n = strtol(text, NULL, 10);
	if (text[strspn(text, "0123456789")] || n > max)
		return mu_fail(err, MU_INVALID_ARGUMENT, "%s: '%.40s' is not a number from 0 to %d",
			       name, text, max);
	*out = (int)n;
	return 0;
}

/* The container runtime hides all GPUs from a task with NVIDIA_VISIBLE_DEVICES=void. */
static const char *kernels_from_env(void)
{
	const char *kernels = getenv("MUSTER_KERNELS"), *gpus = getenv("NVIDIA_VISIBLE_DEVICES");

	return !kernels && gpus && strcmp(gpus, "void") == 0 ? "cpu" : kernels;
}

static bool is_host_name(const char *address)
{
	return strspn(address, "0123456789.:") != strlen(address) &&
	       strncmp(address, "localhost:", 10) != 0 && strncmp(address, "unix:", 5) != 0;
}

int task_options_from_env(struct task_server_options *o, char bind[TASK_SERVER_BIND],
			  struct mu_err *err)
{
	const char *address = mu_cluster_address(o->cluster, o->job, o->index, err);
	int epoch = 0, port = -1, stream_port = 0, http_port = -1, rc;

	if (!address)
		return -(int)MU_NOT_FOUND;
	if ((rc = env_read_number("MUSTER_EPOCH", INT32_MAX, &epoch, err)) ||
	    (rc = env_read_number("MUSTER_PORT", UINT16_MAX, &port, err)) ||
	    (rc = env_read_number("MUSTER_STREAM_PORT", UINT16_MAX, &stream_port, err)) ||
	    (rc = env_read_number("MUSTER_HTTP_PORT", UINT16_MAX, &http_port, err)))
		return rc;
	if (!o->epoch)
		o->epoch = epoch;
	if (!o->stream_port)
		o->stream_port = stream_port;
	if (o->http_port < 0)
		o->http_port = http_port;
	/* A pod's host name may not resolve before the pod is ready. */
	if (!o->bind && port >= 0 && is_host_name(address)) {
		snprintf(bind, TASK_SERVER_BIND, "0.0.0.0:%d", port);
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
		o->kernels = kernels_from_env();
	return 0;
}
