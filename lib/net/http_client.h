/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client: every outgoing HTTP call of every program.
 *
 * Any thread may make calls.  A call runs on the thread of the caller and has a connection for its
 * duration; later calls reuse the connection.  All calls have a time limit and a size limit.
 * Redirects are not followed.
 */
#ifndef MU_LIB_NET_HTTP_CLIENT_H
#define MU_LIB_NET_HTTP_CLIENT_H

#include "lib/base/buf.h"

struct mu_http_client;

int mu_http_client_new(struct mu_http_client **out, struct mu_err *err);
/* All calls must have ended. */
void mu_http_client_free(struct mu_http_client *c);
/* Ends all calls in progress and all sleeps; later calls fail with CANCELLED. */
void mu_http_client_stop(struct mu_http_client *c);
bool mu_http_client_stopped(const struct mu_http_client *c);
/* Sleeps for this time or until the client is stopped; returns false if it is stopped. */
bool mu_http_client_sleep(struct mu_http_client *c, double seconds);

/* The verification of the server by TLS, and the certificate of the client. */
struct mu_http_tls {
	const char *ca_file;      /* PEM; read again for new connections */
	struct mu_span ca;        /* PEM; without it and ca_file: the system's authorities */
	struct mu_span cert, key; /* PEM; empty: no client certificate */
	bool insecure;            /* accept any certificate */
};

struct mu_http_call {
	const char *method, *url;
	const char *headers;           /* (optional) lines, each ending in "\r\n" */
	struct mu_span body;           /* sent if not empty, and always with POST */
	double timeout_s;              /* for the whole call */
	size_t body_max;               /* larger responses fail with RESOURCE_EXHAUSTED */
	bool stream;                   /* mu_http_read returns the body in pieces */
	bool one_shot;                 /* uses a new connection, without a proxy */
	const struct mu_http_tls *tls; /* NULL: the system's authorities */
	const char *proxy;             /* NULL: the proxy of the environment; "": none */
	const char
	    *connect_to; /* (optional) "HOST:PORT" to connect to, instead of the host of the URL */
};
struct mu_http_response {
	long status;
	long retry_after_s; /* 0: no Retry-After in the response */
	struct mu_buf body;
};

/* A call in progress.  Borrows the call's body until mu_http_end. */
struct mu_http_transfer;
/* Starts a call.  Errors are reported by mu_http_read. */
struct mu_http_transfer *mu_http_begin(struct mu_http_client *c, const struct mu_http_call *call);
/* Waits for the response and returns 0.  For a stream: waits for the next piece of the body,
 * sets out->body to it and returns 1; returns 0 at the end of the response.
 *
 *	DEADLINE_EXCEEDED   no response, or not all of it, in time
 *	UNAVAILABLE         no connection, or the connection broke
 *	INVALID_ARGUMENT    the URL, or the client's certificate, cannot be read
 *	CANCELLED           the client was stopped
 */
int mu_http_read(struct mu_http_transfer *t, struct mu_http_response *out, struct mu_err *err);
/* Frees the transfer; cancels it if it is in progress. */
void mu_http_end(struct mu_http_transfer *t);

/* Makes one call and reads the whole response. */
int mu_http_perform(struct mu_http_client *c, const struct mu_http_call *call,
		    struct mu_http_response *out, struct mu_err *err);

/* Fetches a plain http:// page on a new connection, without a proxy.  post: NULL for GET, else the
 * body, which may be empty.  bearer: a token for the server, or NULL.  401 is UNAUTHENTICATED, 403
 * PERMISSION_DENIED, any other status but 2xx UNAVAILABLE. */
int mu_http_fetch(struct mu_http_client *c, const char *url, const char *bearer,
		  const struct mu_span *post, double timeout_s, size_t body_max, struct mu_buf *out,
		  struct mu_err *err);

#endif
