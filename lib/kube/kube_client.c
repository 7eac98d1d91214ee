/* SPDX-License-Identifier: Apache-2.0 */
/* Sends requests, converts error responses to errors, and retries as kube_client.h describes. */
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
	RESPONSE_MAX = 16 << 20,       /* kube_list asks for smaller pages beyond these limits */
	RESPONSE_VALUES_MAX = 1 << 20, /* an object that etcd stores has fewer */
	ERROR_BODY_MAX = 64 << 10,
	STREAM_PAUSE_BELOW = 64 << 10, /* bytes; after a larger piece, more data may be available */
	STATUS_PAGE_MAX = 1 << 20,     /* of a task's status page, with up to 1000 resources */
	IN_PLACE_TRIES = 4,
	RETRY_AFTER_MAX_S = 30,
	STATUS_MAX = 600,
	METHODS = 5,
};
/* stream_pause_s: between two pieces of a watch; without it the operator uses 1.3 x the CPU. */
static const double call_timeout_s = 30, page_timeout_s = 1, stream_pause_s = 0.05;

static const char *const method_names[METHODS] = {"GET", "POST", "PATCH", "PUT", "DELETE"};

struct kube_client {
	struct kube_config config;
	struct kube_server server;
	struct mu_http_client *http;
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
		c->durations[m].bounds = mu_histogram_call_bounds;
	rc = kube_server_init(&c->server, &c->config, err);
	if (rc == 0 && (rc = mu_http_client_new(&c->http, err)) < 0)
		kube_server_fini(&c->server);
	if (rc < 0) {
		free(c);
		return rc;
	}
	memset(config, 0, sizeof(*config));
	*out = c;
	return 0;
}

void kube_client_free(struct kube_client *c)
{
	if (!c)
		return;
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
	struct mu_http_response response;
	double ended;
	long status; /* HTTP status, or a negative code without a response */
};

/* Passes the pieces of a response with status 200 to the caller; collects the body of an error. */
static int read_stream(struct kube_client *c, struct exchange *x, struct mu_http_transfer *transfer,
		       struct mu_err *err)
{
	const struct kube_stream *stream = x->stream;
	MU_AUTO_BUF error_body = {0};
	int read_rc = 0, rc = 0;

	while (rc == 0 && (read_rc = mu_http_read(transfer, &x->response, err)) > 0) {
		struct mu_span piece = mu_buf_span(&x->response.body);

		if (x->response.status == 200)
			rc = stream->chunk(stream->arg, piece.data, piece.len, err);
		else if (error_body.len + piece.len > ERROR_BODY_MAX)
			rc = mu_fail(err, MU_RESOURCE_EXHAUSTED, "an error of more than %d bytes",
				     ERROR_BODY_MAX);
		else
			mu_buf_put(&error_body, piece.data, piece.len);
		if (piece.len < STREAM_PAUSE_BELOW)
			kube_client_sleep(c, stream_pause_s);
	}
	if (rc == 0 && read_rc == 0) {
		mu_buf_fini(&x->response.body);
		x->response.body = error_body;
		error_body = (struct mu_buf){0};
	}
	return read_rc < 0 ? read_rc : rc < 0 ? rc : 0;
}

/* Sends the request once and reads the response. */
static void exchange_once(struct kube_client *c, struct exchange *x, bool token_rejected,
			  struct mu_err *err)
{
	const struct kube_request *rq = x->rq;
	struct mu_http_transfer *transfer = NULL;
	double start = mu_clock();

	mu_buf_clear(&x->response.body);
	x->response.status = 0;
	if (kube_client_stopped(c))
		x->status = mu_fail(err, MU_CANCELLED, "stopped");
	else if (rq->may_send && !rq->may_send(rq->arg))
		x->status = mu_fail(err, MU_CANCELLED, "the request may not be sent any more");
	else
		x->status = kube_server_begin(
		    &c->server, c->http, rq->path, rq->content_type, rq->accept, token_rejected,
		    (struct mu_http_call){.method = rq->method,
					  .body = rq->body,
					  .timeout_s = rq->timeout_ms
							   ? (double)rq->timeout_ms / 1000
							   : call_timeout_s,
					  .body_max = RESPONSE_MAX,
					  .stream = x->stream != NULL},
		    &transfer, err);
	if (transfer) {
		x->status = x->stream ? read_stream(c, x, transfer, err)
				      : mu_http_read(transfer, &x->response, err);
		mu_http_end(transfer);
	}
	x->ended = mu_clock();
	if (x->status != -MU_CANCELLED)
		count(c, rq->method, x->response.status, x->stream ? -1 : x->ended - start);
	if (x->status == -MU_UNAVAILABLE || x->status == -MU_DEADLINE_EXCEEDED)
		mu_wrap(err, "%s %s", rq->method, c->config.server);
	if (x->status == 0)
		x->status = x->response.status;
}

/* Returns the code of a 500 response.  Not every 500 is a server failure: etcd or its client may
 * reject the size of an object, or an admission step such as a webhook may fail. */
static enum mu_code code_of_500(const char *message)
{
	if (message && strstr(message, "Internal error occurred:"))
		return MU_PERMISSION_DENIED;
	if (message && (strstr(message, "etcdserver: request is too large") ||
			strstr(message, "trying to send message larger than max")))
		return MU_INVALID_ARGUMENT;
	return MU_UNAVAILABLE;
}

static enum mu_code code_of(long status, const char *reason, const char *message)
{
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
		return status >= 500 ? code_of_500(message) : MU_INVALID_ARGUMENT;
	}
}

/* Sets the error of a response other than 2xx, whose body is a metav1.Status or any text. */
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

/* Returns true if the request may be sent again, after *wait seconds. */
static bool is_retriable(const struct exchange *x, int tries, double *wait)
{
	long retry_after_s = x->response.retry_after_s;

	if (tries + 1 >= IN_PLACE_TRIES)
		return false;
	*wait = retry_after_s > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S : (double)retry_after_s;
	if (x->status == 401)
		return tries == 0; /* with the token from a new read */
	if (x->status == 429 && *wait <= 0)
		*wait = mu_backoff(tries, 0.5, RETRY_AFTER_MAX_S);
	return x->status == 429 || (x->status == 503 && retry_after_s > 0);
}

/* Sends the request, retries it if possible, and reads the response. */
static int exchange_run(struct kube_client *c, struct exchange *x, cJSON **out, struct mu_err *err)
{
	double wait = 0;
	int rc = 0;

	exchange_once(c, x, false, err);
	for (int tries = 0; x->status > 0 && is_retriable(x, tries, &wait); tries++) {
		if (!kube_client_sleep(c, x->ended + wait - mu_clock()))
			break;
		exchange_once(c, x, x->status == 401, err);
	}
	if (x->status < 0)
		rc = (int)x->status;
	else if (x->status < 200 || x->status > 299)
		rc = error_of(x, err);
	else if (out && mu_json_separators(mu_buf_span(&x->response.body)) > RESPONSE_VALUES_MAX)
		rc = mu_fail(err, MU_RESOURCE_EXHAUSTED, "the response has more than %d values",
			     RESPONSE_VALUES_MAX);
	else if (out && !(*out = kube_json(mu_buf_span(&x->response.body))))
		rc = mu_fail(err, MU_UNAVAILABLE, "%s %.200s: the response is not JSON",
			     x->rq->method, x->rq->path);
	mu_buf_fini(&x->response.body);
	return rc;
}

int kube_call(struct kube_client *c, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	return exchange_run(c, &(struct exchange){.rq = rq}, out, err);
}

int kube_stream(struct kube_client *c, const struct kube_stream *stream, struct mu_err *err)
{
	struct kube_request rq = {
	    .method = "GET", .path = stream->path, .timeout_ms = stream->seconds * 1000};

	return exchange_run(c, &(struct exchange){.rq = &rq, .stream = stream}, NULL, err);
}

int kube_fetch(struct kube_client *c, const char *url, const char *bearer,
	       const struct mu_span *body, struct mu_buf *out, struct mu_err *err)
{
	return mu_http_fetch(c->http, url, bearer, body, page_timeout_s, STATUS_PAGE_MAX, out, err);
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
	mu_histogram_write_type("rest_client_request_duration_seconds", out);
	for (int m = 0; m < METHODS; m++) {
		char labels[32];

		snprintf(labels, sizeof(labels), "verb=\"%s\"", method_names[m]);
		mu_histogram_write(&c->durations[m], "rest_client_request_duration_seconds", labels,
				   out);
	}
}
