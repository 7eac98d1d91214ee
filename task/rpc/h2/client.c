/* SPDX-License-Identifier: Apache-2.0 */
/* Calls out and answers in.  A request is HEADERS and DATA, one run of bytes when it is small; an
 * answer is HEADERS, DATA and HEADERS with the status, or the latter alone.
 *
 * Keep-alive pings find a peer whose machine is gone, or that is stopped, while a call waits; at
 * most two without something else sent in between, so that servers that count pings (gRPC's do) do
 * not hang up. */
#include "task/rpc/h2/client.h"

#include <stdio.h>
#include <sys/socket.h>

#include "lib/base/clock.h"
#include "task/rpc/h2/put.h"

enum {
	SMALL = 16384,
	LAST_ID = INT32_MAX - 2,
	PING_MS = 10000, /* something must follow a ping within that time */
	PINGS = 2,
	MAX_TEXT = 4096,
};

/* ---- requests ---- */

void h2_ask_init(struct h2_ask *r, const char *path, const struct rpc_message *m)
{
	*r = (struct h2_ask){.refs = 1, .path = path, .http = -1, .status = -1};
	h2_send_prepare(&r->stream, m);
	r->length = r->stream.left;
}

void h2_ask_fini(struct h2_ask *r)
{
	h2_stream_fini(&r->stream);
	mu_buf_fini(&r->text);
}

/* What is left of the time, in gRPC's form of at most eight digits and a unit. */
static void write_timeout(struct hpack_writer *w, struct mu_buf *b, int64_t deadline_ms)
{
	int64_t left = deadline_ms - mu_clock_ms();
	char text[24];

	if (left < 1)
		left = 1;
	if (left > 99999999)
		snprintf(text, sizeof(text), "%lldS",
			 (long long)(left / 1000 > 99999999 ? 99999999 : left / 1000));
	else
		snprintf(text, sizeof(text), "%lldm", (long long)left);
	hpack_write(w, b, "grpc-timeout", text, false);
}

static void queue_headers(struct h2_conn *c, struct h2_ask *r)
{
	const struct h2_client *owner = c->owner;
	struct hpack_writer *w = &c->writer;
	struct mu_buf *b = &c->head;

	mu_buf_clear(b);
	hpack_write_start(w, b);
	mu_buf_putc(b, (char)0x83);                           /* :method POST */
	mu_buf_putc(b, (char)(owner->secured ? 0x87 : 0x86)); /* :scheme */
	hpack_write(w, b, ":path", r->path, true);
	hpack_write(w, b, ":authority", owner->authority, true);
	hpack_write(w, b, "te", "trailers", true);
	hpack_write(w, b, "content-type", "application/grpc", true);
	hpack_write(w, b, "user-agent", "muster/" MUSTER_VERSION, true);
	if (r->deadline_ms)
		write_timeout(w, b, r->deadline_ms);
	h2_out_frame(c, H2_HEADERS, H2_END_HEADERS, r->stream.id, b->data, b->len);
}

static void queue_message(struct h2_conn *c, struct h2_stream *s)
{
	size_t n = s->left;

	if (s->n_pieces == 1 && n <= SMALL && (int64_t)n <= c->send_window &&
	    (int64_t)n <= s->send_window && !c->waiting.first) {
		char *p = h2_out_room(c, H2_HEADER + n);

		p = h2_frame_put(p, (uint32_t)n, H2_DATA, H2_END_STREAM, s->id);
		h2_put_bytes(p, s->pieces[0].data, n);
		s->left = 0;
		c->send_window -= (int64_t)n;
		return;
	}
	h2_send_wait_turn(c, s);
	h2_send_pump(c);
}

enum h2_start h2_client_start(struct h2_conn *c, struct h2_ask *r)
{
	struct h2_stream *s = &r->stream;
	enum h2_start how = H2_STARTED;

	pthread_mutex_lock(&c->lock);
	if (c->broken || c->leaving || c->last_id > LAST_ID)
		how = H2_GONE;
	else if (c->n_streams >= c->max_streams)
		how = H2_FULL;
	if (how == H2_STARTED) {
		if (s->conn)
			h2_conn_unref(s->conn); /* where it was refused */
		s->conn = h2_conn_ref(c);
		s->id = c->last_id = c->last_id ? c->last_id + 2 : 1;
		s->recv_window = c->own_stream_window;
		s->send_window = c->initial_window;
		s->left = r->length;
		s->piece = 0;
		s->piece_at = 0;
		c->side->ref(s);
		h2_stream_add(c, s);
		queue_headers(c, r);
		queue_message(c, s);
		c->pings = 0;
		h2_out_flush(c);
	}
	pthread_mutex_unlock(&c->lock);
	return how;
}

/* With the lock: takes the stream out of the table; true: the caller has a reference to give back.
 */
static bool drop(struct h2_conn *c, struct h2_stream *s)
{
	bool dropped = h2_stream_drop(s);

	if (dropped && c->leaving && c->n_streams == 0)
		shutdown(c->fd, SHUT_RDWR); /* nobody needs it any more */
	return dropped;
}

static bool drop_now(struct h2_stream *s)
{
	struct h2_conn *c = s->conn;
	bool dropped;

	pthread_mutex_lock(&c->lock);
	dropped = drop(c, s);
	pthread_mutex_unlock(&c->lock);
	return dropped;
}

void h2_client_cancel(struct h2_ask *r)
{
	struct h2_stream *s = &r->stream;
	struct h2_conn *c = s->conn;
	bool dropped;

	pthread_mutex_lock(&c->lock);
	if (s->listed && !c->broken) {
		h2_out_number(c, H2_RST_STREAM, s->id, H2_CANCEL);
		h2_out_flush(c);
	}
	dropped = drop(c, s);
	pthread_mutex_unlock(&c->lock);
	if (dropped)
		c->side->unref(s);
}

/* ---- answers ---- */

struct fields {
	struct h2_ask *r; /* NULL: for nobody */
	int http, status; /* -1: none */
	bool zlib, malformed;
};

static int number_of(struct mu_span v, size_t digits)
{
	int n = 0;

	if (v.len == 0 || v.len > digits)
		return -1;
	for (size_t i = 0; i < v.len; i++) {
		if (v.data[i] < '0' || v.data[i] > '9')
			return -1;
		n = n * 10 + (v.data[i] - '0');
	}
	return n;
}

static int hex(char ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch |= 32;
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

/* A percent sign that nothing fitting follows stands for itself; a NUL ends no text of ours. */
static void decode_text(struct mu_buf *to, struct mu_span v)
{
	mu_buf_clear(to);
	for (size_t i = 0; i < v.len && to->len < MAX_TEXT; i++) {
		int ch = (unsigned char)v.data[i];

		if (ch == '%' && i + 2 < v.len && hex(v.data[i + 1]) >= 0 &&
		    hex(v.data[i + 2]) >= 0) {
			ch = hex(v.data[i + 1]) << 4 | hex(v.data[i + 2]);
			i += 2;
		}
		mu_buf_putc(to, (char)(ch ? ch : ' '));
	}
}

static void on_field(void *arg, struct mu_span name, struct mu_span value)
{
	struct fields *f = arg;

	if (mu_span_is(name, ":status")) {
		f->malformed |= f->http >= 0;
		f->http = number_of(value, 3);
		f->malformed |= f->http < 100;
	} else if (mu_span_is(name, "grpc-status")) {
		f->status = number_of(value, 4);
		if (f->status < 0)
			f->status = MU_UNKNOWN;
	} else if (f->r && mu_span_is(name, "grpc-message")) {
		decode_text(&f->r->text, value);
	} else if (mu_span_is(name, "grpc-encoding")) {
		f->zlib = mu_span_is(value, "gzip") || mu_span_is(value, "deflate");
	}
}

/* What stands in for a status that did not come. */
static enum mu_code code_of_http(int http)
{
	static const struct {
		int http;
		enum mu_code code;
	} known[] = {
	    {200, MU_INTERNAL},          {400, MU_INTERNAL},      {401, MU_UNAUTHENTICATED},
	    {403, MU_PERMISSION_DENIED}, {404, MU_UNIMPLEMENTED}, {429, MU_UNAVAILABLE},
	    {502, MU_UNAVAILABLE},       {503, MU_UNAVAILABLE},   {504, MU_UNAVAILABLE}};

	for (unsigned i = 0; i < MU_COUNT(known); i++)
		if (known[i].http == http)
			return known[i].code;
	return MU_UNKNOWN;
}

/* 0, or the error that the call came to. */
static int verdict(struct h2_ask *r, struct mu_err *err)
{
	struct h2_stream *s = &r->stream;
	const char *text = r->text.len ? r->text.data : "";

	if (r->status < 0)
		return mu_fail(err, code_of_http(r->http),
			       "the peer ended the call without a status (HTTP %d)", r->http);
	if (r->status == MU_CANCELLED && !strcmp(text, "CANCELLED")) /* as gRPC servers stop */
		return mu_fail(err, MU_UNAVAILABLE, "the peer ended the call as it went down");
	if (r->status)
		return mu_fail(err, mu_code_from(r->status), "%s", text);
	h2_body_end(s, "the peer answered without a message", "the peer's answer is cut short");
	return s->in.refused ? mu_fail(err, s->in.refusal, "%s", s->in.refused) : 0;
}

static void whole(struct h2_stream *s)
{
	struct h2_ask *r = h2_ask_of(s);
	struct h2_conn *c = s->conn;
	const struct h2_client *owner = c->owner;
	struct rpc_bytes reply;
	struct mu_err err;
	bool dropped;

	pthread_mutex_lock(&c->lock);
	s->whole = true;
	if (s->listed && s->left && !c->broken) /* it did not want to hear all of it */
		h2_out_number(c, H2_RST_STREAM, s->id, H2_CANCEL);
	dropped = drop(c, s);
	pthread_mutex_unlock(&c->lock);
	if (!dropped) /* it was cancelled */
		return;
	if (verdict(r, &err)) {
		owner->events->answered(r, &err, NULL);
	} else {
		bytes_own(&reply, s->in.message, s->in.tensor.buf ? s->in.at : s->in.len);
		reply.tensor = s->in.tensor;
		s->in.message = NULL;
		s->in.tensor = (struct mu_tensor){0};
		owner->events->answered(r, NULL, &reply);
	}
	c->side->unref(s);
}

static void end_with(struct h2_stream *s, const struct mu_err *err)
{
	struct h2_conn *c = s->conn;
	const struct h2_client *owner = c->owner;

	if (!drop_now(s))
		return;
	owner->events->answered(h2_ask_of(s), err, NULL);
	c->side->unref(s);
}

static void malformed(struct h2_conn *c, struct h2_stream *s)
{
	struct mu_err err;

	pthread_mutex_lock(&c->lock);
	h2_out_number(c, H2_RST_STREAM, s->id, H2_PROTOCOL_ERROR);
	pthread_mutex_unlock(&c->lock);
	mu_fail(&err, MU_INTERNAL, "the peer's answer is no answer to a call");
	end_with(s, &err);
}

static void take_fields(struct h2_conn *c, struct h2_stream *s, const struct fields *f, bool end)
{
	struct h2_ask *r = h2_ask_of(s);

	if (f->malformed || (r->opened ? f->http >= 0 || !end : f->http < 0)) {
		malformed(c, s);
		return;
	}
	if (!r->opened && f->http < 200) { /* more is to come */
		if (end)
			malformed(c, s);
		return;
	}
	if (!r->opened) {
		r->opened = true;
		r->http = f->http;
		s->in.zlib = f->zlib;
	}
	if (f->status >= 0)
		r->status = f->status;
	if (end)
		whole(s);
}

static int headers(struct h2_conn *c, uint32_t id, bool end, struct mu_span block,
		   struct mu_err *err)
{
	struct fields f = {.http = -1, .status = -1};
	struct h2_stream *s;
	bool unknown, over;

	pthread_mutex_lock(&c->lock);
	unknown = id > c->last_id;
	s = h2_stream_find(c, id);
	over = s && s->whole;
	if (s)
		c->side->ref(s);
	pthread_mutex_unlock(&c->lock);
	f.r = s ? h2_ask_of(s) : NULL;
	if (hpack_read(&c->hpack, block, on_field, &f, err))
		c->fault = H2_COMPRESSION_ERROR;
	else if (unknown)
		h2_fault(c, H2_PROTOCOL_ERROR, err, "HEADERS of no stream");
	else if (over)
		h2_fault(c, H2_STREAM_CLOSED, err, "HEADERS of a stream that has ended");
	else if (s)
		take_fields(c, s, &f, end);
	if (s)
		c->side->unref(s);
	return c->fault ? -MU_INVALID_ARGUMENT : 0;
}

/* ---- ends that are none ---- */

static void again(struct h2_stream *s)
{
	const struct h2_client *owner = s->conn->owner;

	if (!drop_now(s))
		return;
	owner->events->again(h2_ask_of(s));
	owner->events->unref(h2_ask_of(s));
}

static void reset(struct h2_stream *s, uint32_t code)
{
	static const struct {
		uint32_t h2;
		enum mu_code code;
		const char *text;
	} known[] = {
	    {H2_CANCEL, MU_UNAVAILABLE, "the peer ended the call as it went down"},
	    {H2_REFUSED_STREAM, MU_UNAVAILABLE, "the peer refused the call"},
	    {H2_ENHANCE_YOUR_CALM, MU_RESOURCE_EXHAUSTED, "the peer has too many calls"},
	    {H2_INADEQUATE_SECURITY, MU_PERMISSION_DENIED, "the peer wants more security"},
	};
	struct mu_err err;

	if (code == H2_REFUSED_STREAM && !h2_ask_of(s)->opened) {
		again(s);
		return;
	}
	mu_fail(&err, MU_INTERNAL, "the peer reset the call (HTTP/2 code %u)", code);
	for (unsigned i = 0; i < MU_COUNT(known); i++)
		if (known[i].h2 == code)
			mu_fail(&err, known[i].code, "%s", known[i].text);
	end_with(s, &err);
}

/* Calls that the server says it has not looked at. */
static void goaway(struct h2_conn *c, uint32_t last_id)
{
	const struct h2_client *owner = c->owner;
	struct h2_stream **all;
	unsigned n;

	pthread_mutex_lock(&c->lock);
	c->leaving = true;
	all = h2_stream_all(c, false, &n);
	if (n == 0)
		shutdown(c->fd, SHUT_RDWR);
	pthread_mutex_unlock(&c->lock);
	owner->events->lost(c->owner, c, NULL);
	for (unsigned i = 0; i < n; i++) {
		if (all[i]->id > last_id && !h2_ask_of(all[i])->opened)
			again(all[i]);
		c->side->unref(all[i]);
	}
	free(all);
}

static void ended(struct h2_conn *c, const struct mu_err *why)
{
	const struct h2_client *owner = c->owner;
	struct mu_err err;

	pthread_mutex_lock(&c->lock);
	if (c->lost) {
		mu_fail(&err, MU_UNAVAILABLE, "%s", c->lost);
		why = &err;
	}
	pthread_mutex_unlock(&c->lock);
	owner->events->lost(c->owner, c, why);
}

/* The connection has ended; the stream is out of the table. */
static void gone(struct h2_stream *s)
{
	struct h2_conn *c = s->conn;
	const struct h2_client *owner = c->owner;
	struct mu_err err;

	mu_fail(&err, MU_UNAVAILABLE, "the connection to %s was lost%s%s", owner->name,
		c->lost ? ": " : "", c->lost ? c->lost : "");
	owner->events->answered(h2_ask_of(s), &err, NULL);
}

static void settled(struct h2_conn *c)
{
	const struct h2_client *owner = c->owner;

	owner->events->settled(c->owner, c);
}

static void freed(struct h2_conn *c)
{
	const struct h2_client *owner = c->owner;

	if (owner->events->freed)
		owner->events->freed(c->owner);
}

static void sent(struct h2_stream *s)
{
}

static void ref(struct h2_stream *s)
{
	atomic_fetch_add_explicit(&h2_ask_of(s)->refs, 1, memory_order_relaxed);
}

static void unref(struct h2_stream *s)
{
	const struct h2_client *owner = s->conn->owner;

	owner->events->unref(h2_ask_of(s));
}

const struct h2_side h2_client_side = {
    .client = true,
    .headers = headers,
    .whole = whole,
    .reset = reset,
    .gone = gone,
    .sent = sent,
    .ref = ref,
    .unref = unref,
    .settled = settled,
    .goaway = goaway,
    .ended = ended,
    .freed = freed,
    .compressed = "the peer compresses its answers in a way that this task does not know",
    .too_long = "the peer's answer is too long",
    .damaged = "the peer's compressed answer is damaged",
    .broken = MU_INTERNAL,
};

/* ---- keep-alive ---- */

int64_t h2_client_tick(struct h2_conn *c, int64_t now_ms)
{
	int64_t heard, due = INT64_MAX;

	pthread_mutex_lock(&c->lock);
	heard = c->heard_ms;
	if (heard >= c->ping_ms)
		c->ping_ms = 0;
	if (c->ping_ms && now_ms - c->ping_ms >= PING_MS && !c->broken) {
		c->lost = "it does not answer pings";
		shutdown(c->fd, SHUT_RDWR);
	} else if (c->ping_ms) {
		due = c->ping_ms + PING_MS;
	} else if (c->n_streams && c->pings < PINGS && !c->broken) {
		due = heard + H2_QUIET_MS;
		if (due <= now_ms) {
			h2_out_frame(c, H2_PING, 0, 0, "muster..", 8);
			h2_out_flush(c);
			c->pings++;
			c->ping_ms = now_ms;
			due = now_ms + PING_MS;
		}
	}
	pthread_mutex_unlock(&c->lock);
	return due;
}
