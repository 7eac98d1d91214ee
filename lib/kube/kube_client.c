/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests, turns error responses into errors, and retries where the header says so. */
#include "lib/kube/kube_client.h"

#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/backoff.h"
#include "lib/base/clock.h"
#include "lib/base/histogram.h"
#include "lib/base/log.h"
#include "lib/io/json.h"
#include "lib/kube/kube_server.h"

enum {
	RESPONSE_MAX = 64 << 20, /* a page of 250 objects of 200 KiB and some room */
	ERROR_BODY_MAX = 64 << 10,
	GATHER_MAX = 64 << 10, /* a chunk of this size is not gathered any longer */
	PAGE_MAX = 64 << 10,   /* of a task's status page */
	IN_PLACE_TRIES = 4,
	RETRY_AFTER_MAX_S = 30,
	STATUS_MAX = 600,
	CONCURRENT_MAX = 8,       /* calls of one thread that are in progress at once */
	CONCURRENT_EXTRA_MAX = 8, /* of all threads together, each thread's first not counted */
	METHODS = 5,
};
static const double call_timeout_s = 30, page_timeout_s = 1;

static const char *const method_names[METHODS] = {"GET", "POST", "PATCH", "PUT", "DELETE"};

struct kube_client {
	struct kube_config config;
	struct kube_server server;
	struct mu_http_client *http;
	_Atomic unsigned extra_calls;
	_Atomic uint32_t counts[METHODS][STATUS_MAX];
	struct mu_histogram durations[METHODS];
};

cJSON *kube_json(struct mu_span text)
{
	cJSON *json = NULL;

	if (mu_json_tree(&json, text, "object", NULL) == 0 && cJSON_IsObject(json))
		return json;
	cJSON_Delete(json);
	return NULL;
}

int kube_client_new(struct kube_client **out, struct kube_config *config, struct mu_err *err)
{
	struct kube_client *c = MU_NEW(struct kube_client);
	int rc;

	c->config = *config;
	for (int m = 0; m < METHODS; m++)
		c->durations[m].bounds = mu_histogram_calls;
	rc = kube_server_init(&c->server, &c->config, err);
	if (rc < 0) {
		free(c);
		return rc;
	}
	rc = mu_http_client_new(&c->http, err);
	if (rc < 0) {
		kube_server_fini(&c->server);
		free(c);
		return rc;
	}
	memset(config, 0, sizeof(*config));
	*out = c;
	return 0;
}

void kube_client_free(struct kube_client *c)
{
	mu_http_client_free(c->http);
	kube_server_fini(&c->server);
	kube_config_fini(&c->config);
	free(c);
}

void kube_client_stop(struct kube_client *c)
{
	mu_http_client_stop(c->http);
}

bool kube_client_sleep(struct kube_client *c, double seconds)
{
	return mu_http_client_sleep(c->http, seconds);
}

bool kube_client_stopped(const struct kube_client *c)
{
	return mu_http_client_stopped(c->http);
}

/* seconds: negative for a stream, whose duration does not depend on the server. */
static void count(struct kube_client *c, const char *method, long status, double seconds)
{
	for (int m = 0; m < METHODS; m++) {
		if (strcmp(method, method_names[m]) != 0 || status < 0 || status >= STATUS_MAX)
			continue;
		atomic_fetch_add(&c->counts[m][status], 1);
		if (seconds >= 0)
			mu_histogram_add(&c->durations[m], seconds);
	}
}

/* A request with its response. */
struct exchange {
	const struct kube_request *rq;
	const struct kube_stream *stream; /* or NULL */
	struct mu_http_transfer *transfer;
	struct mu_http_response response;
	double began, ended;
	long status; /* of HTTP, or a negative code without a response; 0: not yet */
};

static void exchange_begin(struct kube_client *c, struct exchange *x, bool fresh_token,
			   struct mu_err *err)
{
	const struct kube_request *rq = x->rq;

	x->began = mu_clock();
	mu_buf_clear(&x->response.body);
	if (kube_client_stopped(c))
		x->status = mu_fail(err, MU_CANCELLED, "stopped");
	else if (rq->may && !rq->may(rq->arg))
		x->status = mu_fail(err, MU_CANCELLED, "the request may not be sent any more");
	else
		x->status = kube_server_begin(
		    &c->server, c->http, rq->path, rq->content_type, fresh_token,
		    (struct mu_http_call){.method = rq->method,
					  .body = rq->body,
					  .timeout_s = rq->timeout_ms
							   ? (double)rq->timeout_ms / 1000
							   : call_timeout_s,
					  .body_max = RESPONSE_MAX,
					  .stream = x->stream != NULL},
		    &x->transfer, err);
}

/* Passes the body of a 200 to the caller as it arrives; the body of an error is collected. */
static int read_stream(struct kube_client *c, struct exchange *x, struct mu_err *err)
{
	const struct kube_stream *stream = x->stream;
	MU_AUTO_BUF error_body = {0};
	int more = 0, rc = 0;

	while (rc == 0 && (more = mu_http_read(x->transfer, &x->response, err)) > 0) {
		struct mu_span piece = mu_buf_span(&x->response.body);

		if (x->response.status == 200)
			rc = stream->chunk(stream->arg, piece.data, piece.len, err);
		else if (error_body.len + piece.len > ERROR_BODY_MAX)
			rc = mu_fail(err, MU_RESOURCE_EXHAUSTED, "an error of more than %d bytes",
				     ERROR_BODY_MAX);
		else
			mu_buf_put(&error_body, piece.data, piece.len);
		if (stream->gather > 0 && piece.len < GATHER_MAX)
			kube_client_sleep(c, stream->gather);
	}
	if (rc == 0 && more == 0) {
		mu_buf_fini(&x->response.body);
		x->response.body = error_body;
		error_body = (struct mu_buf){0};
	}
	return more < 0 ? more : rc < 0 ? rc : 0;
}

static void exchange_end(struct kube_client *c, struct exchange *x, struct mu_err *err)
{
	if (x->transfer) {
		x->status = x->stream ? read_stream(c, x, err)
				      : mu_http_read(x->transfer, &x->response, err);
		mu_http_end(mu_steal(&x->transfer));
	}
	x->ended = mu_clock();
	if (x->status != -MU_CANCELLED)
		count(c, x->rq->method, x->response.status, x->stream ? -1 : x->ended - x->began);
	if (x->status == -MU_UNAVAILABLE || x->status == -MU_DEADLINE_EXCEEDED)
		mu_wrap(err, "%s %s", x->rq->method, c->config.server);
	if (x->status == 0)
		x->status = x->response.status;
}

/* The server accepts an object that etcd, or etcd's client, refuses for its size.  The server
 * answers 500, but a retry cannot help. */
static bool is_too_large(const char *message)
{
	return message && (strstr(message, "etcdserver: request is too large") ||
			   strstr(message, "trying to send message larger than max"));
}

static enum mu_code code_of(long status, const char *reason, const char *message)
{
	if (status >= 500 && is_too_large(message))
		return MU_INVALID_ARGUMENT;
	switch (status) {
	case 401:
		return MU_UNAUTHENTICATED;
	case 403:
		return MU_PERMISSION_DENIED;
	case 404:
		return MU_NOT_FOUND;
	case 409:
		return reason && strcmp(reason, "AlreadyExists") == 0 ? MU_ALREADY_EXISTS
								      : MU_ABORTED;
	case 410:
		return MU_OUT_OF_RANGE;
	case 429:
		return MU_RESOURCE_EXHAUSTED;
	default:
		return status >= 500 ? MU_UNAVAILABLE : MU_INVALID_ARGUMENT;
	}
}

/* The error of a response other than 2xx, whose body is a metav1.Status or any text. */
static int error_of(const struct exchange *x, struct mu_err *err)
{
	cJSON *json = kube_json(mu_buf_span(&x->response.body));
	const char *message = cJSON_GetStringValue(cJSON_GetObjectItem(json, "message"));
	const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(json, "reason"));
	enum mu_code code = code_of(x->status, reason, message);
	int rc;

	if (message)
		rc = mu_fail(err, code, "%s (%ld)", message, x->status);
	else
		rc = mu_fail(err, code, "%s %.200s: HTTP status %ld", x->rq->method, x->rq->path,
			     x->status);
	cJSON_Delete(json);
	return rc;
}

/* True when the request may be sent again, after *wait seconds. */
static bool is_retriable(const struct exchange *x, int tries, double *wait)
{
	long asked = x->response.retry_after_s;

	if (tries + 1 >= IN_PLACE_TRIES)
		return false;
	*wait = asked > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : (double)asked;
	if (x->status == 401)
		return tries == 0; /* with the token read anew */
	if (x->status == 429 && *wait <= 0)
		*wait = mu_backoff(tries, 0.5, RETRY_AFTER_MAX_S);
	return x->status == 429 || (x->status == 503 && asked > 0);
}

static void exchange_retry(struct kube_client *c, struct exchange *x, struct mu_err *err)
{
	double wait = 0;

	for (int tries = 0; x->status > 0; tries++) {
		if (!is_retriable(x, tries, &wait) ||
		    !kube_client_sleep(c, x->ended + wait - mu_clock()))
			return;
		exchange_begin(c, x, x->status == 401, err);
		exchange_end(c, x, err);
	}
}

/* Retries where possible, then reads the response. */
static int exchange_finish(struct kube_client *c, struct exchange *x, cJSON **out,
			   struct mu_err *err)
{
	int rc = 0;

	exchange_retry(c, x, err);
	if (x->status < 0)
		rc = (int)x->status;
	else if (x->status < 200 || x->status > 299)
		rc = error_of(x, err);
	else if (out && !(*out = kube_json(mu_buf_span(&x->response.body))))
		rc = mu_fail(err, MU_UNAVAILABLE, "%s %.200s: the response is not JSON",
			     x->rq->method, x->rq->path);
	mu_buf_fini(&x->response.body);
	return rc;
}

static int exchange_run(struct kube_client *c, struct exchange *x, cJSON **out, struct mu_err *err)
{
	exchange_begin(c, x, false, err);
	exchange_end(c, x, err);
	return exchange_finish(c, x, out, err);
}

int kube_call(struct kube_client *c, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	return exchange_run(c, &(struct exchange){.rq = rq}, out, err);
}

/* Reserves up to `wanted` concurrent calls besides the thread's first. */
static unsigned reserve_extra(struct kube_client *c, unsigned wanted)
{
	unsigned taken, now = atomic_load(&c->extra_calls);

	do
		taken = wanted < CONCURRENT_EXTRA_MAX - now ? wanted : CONCURRENT_EXTRA_MAX - now;
	while (!atomic_compare_exchange_weak(&c->extra_calls, &now, now + taken));
	return taken;
}

unsigned kube_call_many(struct kube_client *c, const struct kube_request *rqs, unsigned n,
			struct kube_reply *out)
{
	struct exchange x[CONCURRENT_MAX] = {0};
	unsigned most = n < CONCURRENT_MAX ? n : CONCURRENT_MAX;
	unsigned extra = n > 1 ? reserve_extra(c, most - 1) : 0;

	for (unsigned i = 0; i <= extra; i++) {
		x[i].rq = &rqs[i];
		out[i] = (struct kube_reply){0};
		exchange_begin(c, &x[i], false, &out[i].err);
	}
	for (unsigned i = 0; i <= extra; i++)
		exchange_end(c, &x[i], &out[i].err);
	atomic_fetch_sub(&c->extra_calls, extra);
	for (unsigned i = 0; i <= extra; i++)
		out[i].rc =
		    exchange_finish(c, &x[i], rqs[i].unread ? NULL : &out[i].out, &out[i].err);
	return extra + 1;
}

int kube_stream(struct kube_client *c, const struct kube_stream *stream, struct mu_err *err)
{
	struct kube_request rq = {
	    .method = "GET", .path = stream->path, .timeout_ms = stream->seconds * 1000};

	return exchange_run(c, &(struct exchange){.rq = &rq, .stream = stream}, NULL, err);
}

int kube_fetch(struct kube_client *c, const char *url, struct mu_buf *out, struct mu_err *err)
{
	return mu_http_fetch(c->http, url, NULL, NULL, page_timeout_s, PAGE_MAX, out, err);
}

int kube_poke(struct kube_client *c, const char *url, const char *bearer, struct mu_span body,
	      struct mu_err *err)
{
	MU_AUTO_BUF ignored = {0};
	return mu_http_fetch(c->http, url, bearer, &body, page_timeout_s, PAGE_MAX, &ignored, err);
}

void kube_client_metrics(struct kube_client *c, struct mu_buf *out)
{
	mu_buf_puts(out, "# TYPE rest_client_requests_total counter\n");
	for (int m = 0; m < METHODS; m++)
		for (int s = 0; s < STATUS_MAX; s++) {
			uint32_t n = atomic_load(&c->counts[m][s]);
			if (n)
				mu_buf_printf(out,
					      "rest_client_requests_total{method=\"%s\","
					      "code=\"%d\"} %u\n",
					      method_names[m], s, n);
		}
	mu_histogram_head("rest_client_request_duration_seconds", out);
	for (int m = 0; m < METHODS; m++) {
		char labels[32];

		snprintf(labels, sizeof(labels), "verb=\"%s\"", method_names[m]);
		mu_histogram_write(&c->durations[m], "rest_client_request_duration_seconds", labels,
				   out);
	}
}
