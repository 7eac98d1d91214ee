/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to a Kubernetes API server: JSON over HTTP/1.1, bounded responses, named errors.
 *
 * All threads share a client.  A status other than 2xx becomes an error with the server's message:
 *
 *	400 405 406 413 415 422   INVALID_ARGUMENT       401  UNAUTHENTICATED
 *	403                       PERMISSION_DENIED      404  NOT_FOUND
 *	409 AlreadyExists         ALREADY_EXISTS         409  ABORTED (stale copy)
 *	410                       OUT_OF_RANGE (relist)  429  RESOURCE_EXHAUSTED
 *	5xx, no connection        UNAVAILABLE, but INVALID_ARGUMENT if the object exceeds the limit
 *				  of etcd, PERMISSION_DENIED for an "Internal error"
 *
 * 429 and 503 with Retry-After are retried a few times.  Callers handle other errors; their work
 * queue has a backoff. */
#ifndef MU_LIB_KUBE_KUBE_CLIENT_H
#define MU_LIB_KUBE_KUBE_CLIENT_H

#include <cjson/cJSON.h>

#include "lib/base/buf.h"
#include "lib/kube/kube_config.h"

struct kube_client;

/* Receives the next bytes of a response; a negative return ends the call with that error. */
typedef int kube_chunk_fn(void *arg, const char *data, size_t len, struct mu_err *err);

struct kube_request {
	const char *method;          /* "GET", "POST", "PATCH", "PUT", "DELETE" */
	const char *path;            /* from the root, with its query, already escaped */
	const char *content_type;    /* of the body; NULL: application/json */
	const char *accept;          /* format of the response; NULL: application/json */
	struct mu_span body;         /* empty: none */
	long timeout_ms;             /* 0: 30 s */
	bool (*may_send)(void *arg); /* (optional) called before each try; false: CANCELLED */
	void *arg;
};
/* A GET whose response arrives over time, such as a watch or a log. */
struct kube_stream {
	const char *path;
	long seconds; /* time limit */
	kube_chunk_fn *chunk;
	void *arg;
};

/* Parses an object; returns NULL if the text is not a JSON object. */
cJSON *kube_json(struct mu_span text);

/* Moves the contents of the configuration into the client. */
int kube_client_new(struct kube_client **out, struct kube_config *config, struct mu_err *err);
void kube_client_free(struct kube_client *c);
/* Ends all calls and sleeps; later calls fail with CANCELLED. */
void kube_client_stop(struct kube_client *c);
bool kube_client_stopped(const struct kube_client *c);
/* Returns false as soon as the client is stopped. */
bool kube_client_sleep(struct kube_client *c, double seconds);

/* Sets *out, unless out is NULL, to the object of the response, which the caller owns. */
int kube_call(struct kube_client *c, const struct kube_request *rq, cJSON **out,
	      struct mu_err *err);
/* Returns 0 when the server ends the stream. */
int kube_stream(struct kube_client *c, const struct kube_stream *s, struct mu_err *err);

/* Fetches a plain http:// page of a task, within one second, of at most 1 MiB.  bearer: (optional)
 * a token.  body: NULL for GET, else POST. */
int kube_fetch(struct kube_client *c, const char *url, const char *bearer,
	       const struct mu_span *body, struct mu_buf *out, struct mu_err *err);

/* rest_client_requests_total, and rest_client_request_duration_seconds without streams, in the text
 * format of Prometheus. */
void kube_client_metrics(struct kube_client *c, struct mu_buf *out);

#endif
