/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to a Kubernetes API server: keep-alive connections, bounded answers, named errors.
 *
 * A client is shared by all threads; each call borrows one of its connections.  An answer that is
 * not 2xx becomes an error with the server's own sentence:
 *
 *	400 405 406 413 415 422   INVALID_ARGUMENT       401  UNAUTHENTICATED
 *	403                       PERMISSION_DENIED      404  NOT_FOUND
 *	409 AlreadyExists         ALREADY_EXISTS         409  ABORTED (stale copy)
 *	410                       OUT_OF_RANGE (relist)  429  RESOURCE_EXHAUSTED
 *	5xx, no connection        UNAVAILABLE, but INVALID_ARGUMENT when the object is larger than
 *				  what etcd stores
 *
 * 429 and 503 with Retry-After are retried in place a few times; everything else is the caller's
 * work queue's business, which has the better backoff.
 */
#ifndef KUBE_CLIENT_H
#define KUBE_CLIENT_H

#include <cjson/cJSON.h>

#include "lib/base/buf.h"
#include "lib/kube/kube_config.h"
#include "lib/kube/kube_http.h"
#include "lib/kube/kube_json.h"

struct kube_client;

struct kube_request {
	const char *method;               /* "GET", "POST", "PATCH", "PUT", "DELETE" */
	const char *path;                 /* from the root, with its query, already escaped */
	const char *content_type;         /* of the body; NULL: application/json */
	struct mu_span body;              /* empty: none */
	long timeout_ms;                  /* 0: 30 s */
	const struct kube_fields *fields; /* what is wanted of the answer; NULL: everything */
	bool unread;            /* of kube_call_many: the object of the answer is not wanted */
	bool (*may)(void *arg); /* (optional) asked each time before it is sent; false: CANCELLED */
	void *arg;
};
/* What became of one of several. */
struct kube_reply {
	int rc;
	cJSON *out; /* the caller's; NULL unless rc is 0 and it is wanted */
	struct mu_err err;
};
/* A GET of an answer that goes on. */
struct kube_stream {
	const char *path;
	long seconds;            /* at most */
	double gather;           /* after something came, before more is looked for; 0: none */
	kube_chunk_fn *chunk;    /* takes JSON, or any other text */
	kube_chunk_fn *protobuf; /* (optional) takes protobuf, which is then asked for */
	void *arg;
};

/* Takes what the configuration holds (and empties it). */
int kube_client_new(struct kube_client **out, struct kube_config *config, struct mu_err *err);
void kube_client_free(struct kube_client *c);
/* Ends every call and sleep under way; later calls fail with CANCELLED. */
void kube_client_stop(struct kube_client *c);
bool kube_client_stopped(const struct kube_client *c);
/* False as soon as the client is stopped. */
bool kube_client_sleep(struct kube_client *c, double seconds);

/* The answer goes to *out (owned by the caller) unless out is NULL; it is asked for as protobuf
 * where `fields` say how that is read. */
int kube_call(struct kube_client *c, const struct kube_request *rq, cJSON **out,
	      struct mu_err *err);
/* Several that do not need each other's answers: each is sent, on a connection of its own, before
 * an answer is waited for.  Takes the first ones of them, as many as may go out just now (one at
 * least), and returns how many; each has its answer, or its error, whatever became of the others.
 */
unsigned kube_call_many(struct kube_client *c, const struct kube_request *rqs, unsigned n,
			struct kube_reply *out);
/* 0 when the server ended it. */
int kube_stream(struct kube_client *c, const struct kube_stream *s, struct mu_err *err);

/* GET of a plain http:// address outside the API server (a task's status page): no credentials,
 * one second for everything, at most 64 KiB. */
int kube_fetch(struct kube_client *c, const char *url, struct mu_buf *out, struct mu_err *err);
/* POST likewise, with a bearer token if there is one. */
int kube_poke(struct kube_client *c, const char *url, const char *bearer, struct mu_span body,
	      struct mu_err *err);

/* rest_client_requests_total, and rest_client_request_duration_seconds of what kube_call asked, in
 * Prometheus' text form. */
void kube_client_metrics(struct kube_client *c, struct mu_buf *out);

#endif
