/* SPDX-License-Identifier: Apache-2.0 */
/* A small HTTP server for probes, metrics and a few commands, on libmicrohttpd: one thread, a
 * bounded number of connections, each closed after its reply or after a few seconds. */
#ifndef MU_LIB_NET_HTTP_SERVER_H
#define MU_LIB_NET_HTTP_SERVER_H

#include "lib/base/buf.h"

struct mu_http_answer {
	int status;       /* 400 unless the handler sets it */
	const char *type; /* text/plain unless the handler sets it */
	struct mu_buf body;
};
struct mu_http_request {
	const char *method, *path; /* the path without its query */
	const char *authorization; /* the header's value; NULL: none was sent */
	bool loopback;             /* the peer's address is one of this host's loopback */
	struct mu_span body;
};
/* Runs on the server's thread. */
typedef void (*mu_http_handler)(void *ctx, const struct mu_http_request *rq,
				struct mu_http_answer *out);

struct mu_http_server;
/* Host and port as in mu_listen_tcp. */
int mu_http_start(const char *host, int port, mu_http_handler handler, void *ctx,
		  struct mu_http_server **out, int *got_port, struct mu_err *err);
/* Waits until a running handler's reply is sent. */
void mu_http_stop(struct mu_http_server *h);

#endif
