/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server for probes, metrics and a few commands: one thread, a bounded number of
 * connections, each closed after its answer or after a few seconds, whatever its peer does. */
#ifndef MU_BASE_HTTP_H
#define MU_BASE_HTTP_H

#include "lib/base/buf.h"

struct mu_http_answer {
	int status;
	const char *type;
	struct mu_buf body;
};
/* The path comes without its query. */
typedef void (*mu_http_handler)(void *ctx, const char *method, const char *path,
				struct mu_http_answer *out);

struct mu_http_server;
/* "::" takes IPv4 too. */
int mu_http_start(const char *host, int port, mu_http_handler handler, void *ctx,
		  struct mu_http_server **out, int *got_port, struct mu_err *err);
void mu_http_stop(struct mu_http_server *h);

/* The whole answer to a request's head, as it goes on the wire. */
void mu_http_reply(const char *head, mu_http_handler handler, void *ctx, struct mu_buf *out);

#endif
