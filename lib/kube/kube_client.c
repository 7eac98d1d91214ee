/* SPDX-License-Identifier: Apache-2.0 */
/* Calls: what an exchange asks, which answers are errors, and which are worth asking again. */
#include "lib/kube/kube_client.h"

#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/histogram.h"
#include "lib/base/log.h"
#include "lib/kube/kube_conns.h"
#include "lib/kube/kube_pb.h"
#include "lib/kube/kube_plain.h"

enum {
	ANSWER_MAX = 64 << 20, /* a page of 500 objects of 100 KiB and some room */
	ERROR_BODY_MAX = 64 << 10,
	ANSWER_USUAL = 8 << 10,
	IN_PLACE_TRIES = 4,
	RETRY_AFTER_MAX_S = 30,
	STATUS_MAX = 600,
	TOGETHER_MAX = 8, /* calls of one thread that are under way at once */
	AHEAD_MAX = 8,    /* of all threads, those that are not a thread's first */
	METHODS = 5,
};
static const double patience_s = 30;

static const char *const method_names[METHODS] = {"GET", "POST", "PATCH", "PUT", "DELETE"};

struct kube_client {
	struct kube_config config;
	struct kube_conns conns;
	_Atomic unsigned ahead;
	_Atomic uint32_t counts[METHODS][STATUS_MAX];
	struct mu_histogram took[METHODS];
};

/* Where an answer goes while it arrives. */
struct sink {
	struct kube_http answer;
	struct mu_buf body;
	size_t limit;
	bool begun;    /* some of the body has come */
	double gather; /* seconds to let more of a stream come in */
	kube_chunk_fn *chunk, *protobuf;
	void *arg;
};

static int on_body(void *sink, const char *data, size_t len, struct mu_err *err)
{
	struct sink *s = sink;

	if (!s->begun && len)
		s->answer.protobuf = kube_pb_begins(*data, s->answer.protobuf);
	s->begun = s->begun || len;
	if (s->chunk && s->answer.status == 200)
		return (s->answer.protobuf && s->protobuf ? s->protobuf : s->chunk)(s->arg, data,
										    len, err);
	if (s->body.len + len > s->limit)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "an answer of more than %zu bytes",
			       s->limit);
	if (!s->body.cap) /* most objects fit, and none has to be moved as it grows */
		mu_buf_reserve(&s->body, ANSWER_USUAL);
	mu_buf_put(&s->body, data, len);
	return 0;
}

static void sink_fini(struct sink *s)
{
	kube_http_fini(&s->answer);
	mu_buf_fini(&s->body);
}

int kube_client_new(struct kube_client **out, struct kube_config *config, struct mu_err *err)
{
	struct kube_client *c = MU_NEW(struct kube_client);
	int rc;

	c->config = *config;
	for (int m = 0; m < METHODS; m++)
		c->took[m].bounds = mu_histogram_calls;
	rc = kube_conns_init(&c->conns, &c->config, err);
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
	kube_conns_fini(&c->conns);
	kube_config_fini(&c->config);
	free(c);
}

void kube_client_stop(struct kube_client *c)
{
	kube_conns_stop(&c->conns);
}

bool kube_client_sleep(struct kube_client *c, double seconds)
{
	return kube_conns_sleep(&c->conns, seconds);
}

bool kube_client_stopped(const struct kube_client *c)
{
	return atomic_load_explicit(&c->conns.stopped, memory_order_relaxed);
}

/* took: seconds; less than 0 for an answer that went on, which says nothing about the server. */
static void count(struct kube_client *c, const char *method, long status, double took)
{
	for (int m = 0; m < METHODS; m++) {
		if (strcmp(method, method_names[m]) != 0 || status < 0 || status >= STATUS_MAX)
			continue;
		atomic_fetch_add(&c->counts[m][status], 1);
		if (took >= 0)
			mu_histogram_add(&c->took[m], took);
	}
}

/* A call that was sent, and its answer as far as it has come. */
struct under_way {
	struct sink sink;
	struct kube_exchange x;
	struct kube_asked asked;
	double began, answered;
	long status; /* HTTP's, or a negative code when there is no answer; 0: not yet */
};

static void send_call(struct kube_client *c, const struct kube_request *rq, struct under_way *u,
		      bool fresh_token, struct mu_err *err)
{
	struct sink *s = &u->sink;

	u->x = (struct kube_exchange){
	    .method = rq->method,
	    .path = rq->path,
	    .content_type = rq->content_type,
	    .body = rq->body,
	    .protobuf = s->protobuf || kube_fields_in_protobuf(rq->fields),
	    .fresh = fresh_token,
	    .patience = rq->timeout_ms ? (double)rq->timeout_ms / 1000 : patience_s,
	    .gather = s->gather};
	u->began = mu_clock();
	kube_http_fini(&s->answer);
	mu_buf_clear(&s->body);
	s->begun = false;
	s->answer = (struct kube_http){.body = on_body, .arg = s};
	if (kube_client_stopped(c))
		u->status = mu_fail(err, MU_CANCELLED, "stopped");
	else if (rq->may && !rq->may(rq->arg))
		u->status = mu_fail(err, MU_CANCELLED, "it may not be sent any more");
	else
		u->status = kube_exchange_begin(&c->conns, &u->x, &u->asked, err);
}

/* What came while others were waited for took as long as they. */
static void await_answer(struct kube_client *c, struct under_way *u, struct mu_err *err)
{
	const struct sink *s = &u->sink;

	if (u->status == 0)
		u->status = kube_exchange_end(&c->conns, &u->x, &u->asked, &u->sink.answer, err);
	u->answered = mu_clock();
	if (u->status != -MU_CANCELLED)
		count(c, u->x.method, s->answer.status, s->chunk ? -1 : u->answered - u->began);
	if (u->status == -MU_UNAVAILABLE || u->status == -MU_DEADLINE_EXCEEDED)
		mu_wrap(err, "%s %s", u->x.method, c->config.server);
	if (u->status == 0)
		u->status = s->answer.status;
}

/* An object that the server takes and its store does not: etcd's own limit, and that of its client.
 * Both come as a fault of the server (500), and no new try mends them. */
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

static cJSON *read_body(const struct sink *s, const struct kube_fields *fields)
{
	return s->answer.protobuf ? kube_pb(mu_buf_span(&s->body), fields)
				  : kube_json(mu_buf_span(&s->body), fields);
}

/* The error that an answer other than 2xx is: a metav1.Status, or any text. */
static int refused(const struct kube_request *rq, long status, const struct sink *s,
		   struct mu_err *err)
{
	cJSON *json = read_body(s, kube_pb_status);
	const char *message = cJSON_GetStringValue(cJSON_GetObjectItem(json, "message"));
	const char *reason = cJSON_GetStringValue(cJSON_GetObjectItem(json, "reason"));
	int rc;

	if (message)
		rc = mu_fail(err, code_of(status, reason, message), "%s (%ld)", message, status);
	else
		rc = mu_fail(err, code_of(status, reason, NULL), "%s %.200s: HTTP status %ld",
			     rq->method, rq->path, status);
	cJSON_Delete(json);
	return rc;
}

/* Is it worth asking again at once, and after how long? */
static bool again_in_place(long status, const struct sink *s, int tries, double *wait)
{
	if (tries + 1 >= IN_PLACE_TRIES)
		return false;
	*wait = s->answer.retry_after > RETRY_AFTER_MAX_S ? RETRY_AFTER_MAX_S
							  : (double)s->answer.retry_after;
	if (status == 401)
		return tries == 0; /* with the token read anew */
	if (status == 429 && *wait <= 0)
		*wait = 0.5 * (1 << tries);
	return status == 429 || (status == 503 && s->answer.retry_after > 0);
}

/* Asks again until there is an answer that is not "later". */
static void insist(struct kube_client *c, const struct kube_request *rq, struct under_way *u,
		   struct mu_err *err)
{
	double wait = 0;

	for (int tries = 0; u->status > 0; tries++) {
		if (!again_in_place(u->status, &u->sink, tries, &wait) ||
		    !kube_client_sleep(c, u->answered + wait - mu_clock()))
			return;
		send_call(c, rq, u, u->status == 401, err);
		await_answer(c, u, err);
	}
}

static int read_answer(const struct kube_request *rq, long status, const struct sink *s,
		       cJSON **out, struct mu_err *err)
{
	if (status < 200 || status > 299)
		return refused(rq, status, s, err);
	if (out && !(*out = read_body(s, rq->fields)))
		return mu_fail(err, MU_UNAVAILABLE, "%s %.200s: the answer is no %s", rq->method,
			       rq->path, s->answer.protobuf ? "protobuf" : "JSON");
	return 0;
}

static int end_call(struct kube_client *c, const struct kube_request *rq, struct under_way *u,
		    cJSON **out, struct mu_err *err)
{
	int rc;

	insist(c, rq, u, err);
	rc = u->status < 0 ? (int)u->status : read_answer(rq, u->status, &u->sink, out, err);
	sink_fini(&u->sink);
	return rc;
}

int kube_call(struct kube_client *c, const struct kube_request *rq, cJSON **out, struct mu_err *err)
{
	struct under_way u = {.sink.limit = ANSWER_MAX};

	send_call(c, rq, &u, false, err);
	await_answer(c, &u, err);
	return end_call(c, rq, &u, out, err);
}

/* How many of so many may be under way besides the first. */
static unsigned take_ahead(struct kube_client *c, unsigned wanted)
{
	unsigned taken, now = atomic_load(&c->ahead);

	do
		taken = wanted < AHEAD_MAX - now ? wanted : AHEAD_MAX - now;
	while (!atomic_compare_exchange_weak(&c->ahead, &now, now + taken));
	return taken;
}

/* The answers are read the last one first: it comes late, and who has waited for it mostly finds
 * the others there, where who reads in turn would sleep for each. */
unsigned kube_call_many(struct kube_client *c, const struct kube_request *rqs, unsigned n,
			struct kube_reply *out)
{
	struct under_way u[TOGETHER_MAX] = {0};
	unsigned ahead = n > 1 ? take_ahead(c, (n < TOGETHER_MAX ? n : TOGETHER_MAX) - 1) : 0;

	for (unsigned i = 0; i <= ahead; i++) {
		u[i].sink.limit = ANSWER_MAX;
		out[i] = (struct kube_reply){0};
		send_call(c, &rqs[i], &u[i], false, &out[i].err);
	}
	for (unsigned i = ahead + 1; i-- > 0;)
		await_answer(c, &u[i], &out[i].err);
	atomic_fetch_sub(&c->ahead, ahead);
	for (unsigned i = 0; i <= ahead; i++)
		out[i].rc =
		    end_call(c, &rqs[i], &u[i], rqs[i].unread ? NULL : &out[i].out, &out[i].err);
	return ahead + 1;
}

int kube_stream(struct kube_client *c, const struct kube_stream *stream, struct mu_err *err)
{
	struct kube_request rq = {
	    .method = "GET", .path = stream->path, .timeout_ms = stream->seconds * 1000};
	struct under_way u = {.sink = {.limit = ERROR_BODY_MAX,
				       .gather = stream->gather,
				       .chunk = stream->chunk,
				       .protobuf = stream->protobuf,
				       .arg = stream->arg}};
	int rc = 0;

	send_call(c, &rq, &u, false, err);
	await_answer(c, &u, err);
	insist(c, &rq, &u, err);
	if (u.status != 200)
		rc = u.status < 0 ? (int)u.status : refused(&rq, u.status, &u.sink, err);
	sink_fini(&u.sink);
	return rc;
}

int kube_fetch(struct kube_client *c, const char *url, struct mu_buf *out, struct mu_err *err)
{
	return kube_plain_ask(url, NULL, NULL, &c->conns.stopped, out, err);
}

int kube_poke(struct kube_client *c, const char *url, const char *bearer, struct mu_span body,
	      struct mu_err *err)
{
	MU_AUTO_BUF ignored = {0};
	return kube_plain_ask(url, bearer, &body, &c->conns.stopped, &ignored, err);
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
		mu_histogram_write(&c->took[m], "rest_client_request_duration_seconds", labels,
				   out);
	}
}
