/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server for probes, metrics and the operator's few commands: one thread, a bounded
 * number of connections, each closed after its answer or after a few seconds. */
#ifndef MU_TASK_HTTP_HTTP_H
#define MU_TASK_HTTP_HTTP_H

#include "lib/base/buf.h"

struct http_answer {
	int status;
	const char *type;
	struct mu_buf body;
};
typedef void (*http_handler)(void *ctx, const char *method, const char *path,
			     struct http_answer *out);

struct http_server;
int http_start(const char *host, int port, http_handler handler, void *ctx,
	       struct http_server **out, int *got_port, struct mu_err *err);
void http_stop(struct http_server *h);

#endif
