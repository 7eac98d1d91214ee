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
struct mu_http_request {
	const char *method, *path; /* without its query */
	struct mu_span body;
};
typedef void (*mu_http_handler)(void *ctx, const struct mu_http_request *rq,
				struct mu_http_answer *out);

struct mu_http_server;
/* "::" takes IPv4 too. */
int mu_http_start(const char *host, int port, mu_http_handler handler, void *ctx,
		  struct mu_http_server **out, int *got_port, struct mu_err *err);
void mu_http_stop(struct mu_http_server *h);

/* What has come of a request: once it is whole, or can be no request, the whole answer to it goes
 * to out, as on the wire; false before that. */
bool mu_http_reply(const struct mu_buf *in, mu_http_handler handler, void *ctx, struct mu_buf *out);

#endif
