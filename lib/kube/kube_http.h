/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP/1.1 as far as an API server speaks it: a request as bytes, and an answer read from bytes
 * that come in pieces of any size.  No I/O here. */
#ifndef KUBE_HTTP_H
#define KUBE_HTTP_H

#include "lib/base/buf.h"

#define KUBE_PROTOBUF "application/vnd.kubernetes.protobuf"

/* Bytes of an answer as they come; a negative return ends it with that error. */
typedef int kube_chunk_fn(void *arg, const char *data, size_t len, struct mu_err *err);

struct kube_http_request {
	const char *method, *path, *host; /* path: with its query, escaped */
	const char *headers;              /* (optional) lines, each with its end */
	struct mu_span body;
	bool has_body; /* also an empty one */
};
/* Appends it to `out`; INVALID_ARGUMENT when a line would not be one. */
int kube_http_write(struct mu_buf *out, const struct kube_http_request *rq, struct mu_err *err);

enum kube_http_state {
	HTTP_STATUS,
	HTTP_HEADER,
	HTTP_BODY, /* `left` more bytes */
	HTTP_UNTIL_END,
	HTTP_CHUNK_SIZE,
	HTTP_CHUNK,
	HTTP_CHUNK_END,
	HTTP_TRAILER,
	HTTP_DONE
};
/* All zero but for body and arg at first. */
struct kube_http {
	enum kube_http_state state;
	long status;
	long retry_after; /* seconds */
	bool keep;        /* the connection may be used again after this answer */
	bool chunked, sized;
	bool protobuf; /* the body is KUBE_PROTOBUF */
	uint64_t left;
	size_t head; /* bytes of status line and headers so far */
	struct mu_buf line;
	kube_chunk_fn *body; /* called with pieces of the body; `status` is known then */
	void *arg;
};
/* What comes after the end of the answer is an error: nobody asked for it. */
int kube_http_feed(struct kube_http *h, const char *data, size_t len, struct mu_err *err);
/* The connection has ended: OK when that is how the answer ends. */
int kube_http_end(struct kube_http *h, struct mu_err *err);
void kube_http_fini(struct kube_http *h);

#endif
