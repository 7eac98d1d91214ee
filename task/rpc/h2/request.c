/* SPDX-License-Identifier: Apache-2.0 */
/* Requests: a stream's headers and body become a call.
 *
 * A call is handled when the stream has ended and its one message is whole.  What is refused (an
 * unknown method, a message that is too long) is read to its end, thrown away, and answered then.
 */
#include "lib/base/clock.h"
#include "task/rpc/h2/server.h"

/* ---- headers ---- */

enum { METHOD = 1, SCHEME = 2, PATH = 4, AUTHORITY = 8 };

struct headers {
	struct h2_conn *conn;
	unsigned seen; /* of the fields that begin with a colon */
	bool regular;  /* others have come */
	bool malformed, is_post, zlib;
	const struct rpc_method *method;
	int64_t timeout_ms; /* < 0: none */
};

/* gRPC's form: up to eight digits and a unit.  A malformed one is none. */
static int64_t timeout_of(struct mu_span v)
{
	static const struct {
		char unit;
		int64_t mul, div;
	} units[] = {{'H', 3600000, 1}, {'M', 60000, 1}, {'S', 1000, 1},
		     {'m', 1, 1},       {'u', 1, 1000},  {'n', 1, 1000000}};
	int64_t n = 0;

	if (v.len < 2 || v.len > 9)
		return -1;
	for (size_t i = 0; i + 1 < v.len; i++) {
		if (v.data[i] < '0' || v.data[i] > '9')
			return -1;
		n = n * 10 + (v.data[i] - '0');
	}
	for (unsigned i = 0; i < MU_COUNT(units); i++)
		if (v.data[v.len - 1] == units[i].unit)
			return (n * units[i].mul + units[i].div - 1) / units[i].div;
	return -1;
}

static void pseudo(struct headers *h, struct mu_span name, struct mu_span value)
{
	static const struct {
		const char *name;
		unsigned bit;
	} known[] = {
	    {":method", METHOD}, {":scheme", SCHEME}, {":path", PATH}, {":authority", AUTHORITY}};
	unsigned bit = 0;

	for (unsigned i = 0; i < MU_COUNT(known); i++)
		if (mu_span_is(name, known[i].name))
			bit = known[i].bit;
	if (!bit || h->seen & bit || h->regular)
		h->malformed = true;
	h->seen |= bit;
	if (bit == METHOD) {
		h->is_post = mu_span_is(value, "POST");
	} else if (bit == PATH) {
		h->malformed |= value.len == 0;
		h->method = rpc_find_method(((struct h2 *)h->conn->owner)->server, value);
		mu_buf_clear(&h->conn->path);
		if (!h->method)
			mu_buf_put(&h->conn->path, value.data, value.len < 200 ? value.len : 200);
	}
}

static void on_field(void *arg, struct mu_span name, struct mu_span value)
{
	static const char *const hop[] = {"connection", "proxy-connection", "keep-alive",
					  "transfer-encoding", "upgrade"};
	struct headers *h = arg;

	if (name.data[0] == ':') {
		pseudo(h, name, value);
		return;
	}
	h->regular = true;
	for (size_t i = 0; i < name.len; i++)
		h->malformed |= name.data[i] >= 'A' && name.data[i] <= 'Z';
	for (unsigned i = 0; i < MU_COUNT(hop); i++)
		h->malformed |= name.len == strlen(hop[i]) && mu_span_is(name, hop[i]);
	if (mu_span_is(name, "te"))
		h->malformed |= !mu_span_is(value, "trailers");
	else if (mu_span_is(name, "grpc-timeout"))
		h->timeout_ms = timeout_of(value);
	else if (mu_span_is(name, "grpc-encoding"))
		h->zlib = mu_span_is(value, "gzip") || mu_span_is(value, "deflate");
}

static void reset_unlisted(struct h2_conn *c, uint32_t id, enum h2_code code)
{
	pthread_mutex_lock(&c->lock);
	h2_out_number(c, H2_RST_STREAM, id, code);
	pthread_mutex_unlock(&c->lock);
}

/* HEADERS of a stream that is known already: its trailers, or a mistake. */
static int trailers(struct h2_conn *c, struct h2_stream *s, bool end, const struct headers *h,
		    struct mu_err *err)
{
	if (s->whole || !end || h->seen || h->malformed)
		return h2_fault(c, s->whole ? H2_STREAM_CLOSED : H2_PROTOCOL_ERROR, err,
				"HEADERS where none are due");
	h2_request_end(s);
	return 0;
}

static struct h2_stream *stream_new(struct h2_conn *c, uint32_t id, const struct headers *h)
{
	struct h2_call *call = MU_NEW(struct h2_call);
	struct h2_stream *s = &call->stream;

	call->call.refs = 1;
	call->call.ops = &h2_call_ops;
	call->call.server = ((struct h2 *)c->owner)->server;
	call->call.method = h->method;
	call->call.deadline_ms = h->timeout_ms < 0 ? 0 : mu_clock_ms() + h->timeout_ms;
	call->call.origin = c->serial;
	s->conn = h2_conn_ref(c);
	s->id = id;
	s->in.zlib = h->zlib;
	s->recv_window = c->own_stream_window;
	if (!h->method || !h->is_post)
		h2_body_refuse(s, MU_UNIMPLEMENTED, "this server has no method ");
	return s;
}

int h2_request_headers(struct h2_conn *c, uint32_t id, bool end, struct mu_span block,
		       struct mu_err *err)
{
	struct headers h = {.conn = c, .timeout_ms = -1};
	struct h2_stream *s;
	bool crowded;

	if (hpack_read(&c->hpack, block, on_field, &h, err)) {
		c->fault = H2_COMPRESSION_ERROR;
		return -MU_INVALID_ARGUMENT;
	}
	pthread_mutex_lock(&c->lock);
	s = h2_stream_find(c, id);
	crowded = c->n_streams >= H2_MAX_STREAMS;
	if (s)
		c->side->ref(s);
	pthread_mutex_unlock(&c->lock);
	if (s) {
		int rc = trailers(c, s, end, &h, err);

		c->side->unref(s);
		return rc;
	}
	if (id <= c->last_id)
		return h2_fault(c, H2_STREAM_CLOSED, err, "HEADERS of a stream that has ended");
	pthread_mutex_lock(&c->lock);
	c->last_id = id;
	pthread_mutex_unlock(&c->lock);
	if (h.malformed || (h.seen & (METHOD | SCHEME | PATH)) != (METHOD | SCHEME | PATH)) {
		reset_unlisted(c, id, H2_PROTOCOL_ERROR);
		return 0;
	}
	if (crowded) {
		reset_unlisted(c, id, H2_REFUSED_STREAM);
		return 0;
	}
	s = stream_new(c, id, &h);
	pthread_mutex_lock(&c->lock);
	s->send_window = c->initial_window;
	h2_stream_add(c, s);
	pthread_mutex_unlock(&c->lock);
	if (end)
		h2_request_end(s);
	return 0;
}

/* ---- the end of it ---- */

static void answer_refusal(struct h2_stream *s)
{
	struct rpc_call *call = &h2_call_of(s)->call;
	struct mu_buf *path = &s->conn->path;
	struct mu_err err;

	if (!call->method)
		mu_fail(&err, s->in.refusal, "%s%.*s", s->in.refused, (int)path->len,
			path->len ? path->data : "");
	else
		mu_fail(&err, s->in.refusal, "%s", s->in.refused);
	call->ops->send(call, NULL, &err);
}

void h2_request_end(struct h2_stream *s)
{
	struct rpc_call *call = &h2_call_of(s)->call;

	h2_body_end(s, "the call came without a request message",
		    "the request message is cut short");
	if (!s->in.refused && !rpc_call_enter(call))
		h2_body_refuse(s, MU_UNAVAILABLE, "this server is stopping");
	atomic_fetch_add(&call->refs, 1); /* the handler's, or ours while we answer */
	if (s->in.refused) {
		answer_refusal(s);
		rpc_call_unref(call);
		return;
	}
	bytes_own(&call->request, s->in.message, s->in.len);
	s->in.message = NULL;
	pthread_mutex_lock(&s->conn->lock);
	s->whole = true;
	pthread_mutex_unlock(&s->conn->lock);
	rpc_call_handle(call);
}

/* The stream ends here and now; its caller is gone. */
void h2_request_reset(struct h2_stream *s, uint32_t code)
{
	struct h2_conn *c = s->conn;
	bool dropped, handled;

	pthread_mutex_lock(&c->lock);
	dropped = h2_stream_drop(s);
	handled = s->whole;
	pthread_mutex_unlock(&c->lock);
	if (dropped && handled)
		rpc_call_gone(&h2_call_of(s)->call);
	if (dropped)
		c->side->unref(s);
}
