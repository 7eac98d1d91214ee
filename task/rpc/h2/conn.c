/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's bytes.  DATA is taken as it comes, a message's bytes straight to where they belong
 * when they are many; any other frame is handled when all of it is in the buffer (frames.c).  What
 * the other end does wrong with the connection ends it, with a GOAWAY that says why; what it does
 * wrong with a stream ends that. */
#include "task/rpc/h2/conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "task/rpc/tls.h"

enum {
	READS = 64,
	TURN_MS = 20, /* what frames cost depends on what a client has open: then others are read */
	DIRECT = 16 << 10,
};

struct h2_conn *h2_conn_new(const struct h2_side *side, void *owner, int fd)
{
	struct h2_conn *c = MU_NEW(struct h2_conn);

	c->refs = 1;
	c->side = side;
	c->owner = owner;
	c->fd = fd;
	c->since_ms = mu_clock_ms();
	c->heard_ms = c->since_ms;
	c->max_message = UINT32_MAX;
	c->greeted = side->client;
	c->own_window = side->client ? INT32_MAX : H2_CONN_WINDOW;
	c->own_stream_window = side->client ? INT32_MAX : H2_STREAM_WINDOW;
	c->buffer = mu_xmalloc(H2_BUFFER);
	c->recv_window = c->own_window;
	c->max_own_frame = side->client ? H2_LARGEST_FRAME : H2_MAX_FRAME;
	c->least = 1;
	c->send_window = H2_DEFAULT_WINDOW;
	c->initial_window = H2_DEFAULT_WINDOW;
	c->max_frame = H2_DEFAULT_FRAME;
	c->max_streams = UINT32_MAX;
	hpack_write_limit(&c->writer, HPACK_TABLE);
	c->last = &c->first;
	c->waiting.last = &c->waiting.first;
	c->blocked.last = &c->blocked.first;
	c->n_buckets = H2_BUCKETS;
	c->table = MU_NEW_ARRAY(struct h2_stream *, c->n_buckets);
	hpack_init(&c->hpack);
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

struct h2_conn *h2_conn_ref(struct h2_conn *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

void h2_conn_unref(struct h2_conn *c)
{
	if (atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	h2_out_free(c);
	tls_conn_free(c->tls);
	if (c->fd >= 0)
		close(c->fd);
	hpack_fini(&c->hpack);
	hpack_write_fini(&c->writer);
	if (c->side->freed)
		c->side->freed(c);
	mu_buf_fini(&c->block);
	mu_buf_fini(&c->path);
	mu_buf_fini(&c->head);
	free(c->table);
	free(c->buffer);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

int h2_fault(struct h2_conn *c, enum h2_code code, struct mu_err *err, const char *what)
{
	c->fault = code;
	return mu_fail(err, MU_INVALID_ARGUMENT, "%s", what);
}

/* ---- the end ---- */

static void let_go_of_body(struct h2_conn *c)
{
	struct h2_stream *s = c->body;

	c->body = NULL;
	if (s)
		c->side->unref(s);
}

void h2_conn_break(struct h2_conn *c, const struct mu_err *err, bool say_why)
{
	struct h2_stream **all;
	char why[8];
	unsigned n;

	pthread_mutex_lock(&c->lock);
	if (say_why && c->greeted) {
		h2_put32(why, c->side->client ? 0 : c->last_id);
		h2_put32(why + 4, c->fault);
		h2_out_frame(c, H2_GOAWAY, 0, 0, why, sizeof(why));
		h2_out_flush(c);
	}
	c->broken = true;
	h2_out_free(c);
	all = h2_stream_all(c, true, &n);
	pthread_mutex_unlock(&c->lock);
	let_go_of_body(c);
	c->side->ended(c, err);
	for (unsigned i = 0; i < n; i++) {
		c->side->gone(all[i]);
		c->side->unref(all[i]);
	}
	free(all);
	shutdown(c->fd, SHUT_RDWR);
}

/* ---- DATA ---- */

static int take_window(struct h2_conn *c, const struct h2_frame *f, struct mu_err *err)
{
	struct h2_stream *s = c->body;

	c->recv_window -= f->len;
	if (s)
		s->recv_window -= f->len;
	if (c->recv_window < 0 || (s && s->recv_window < 0))
		return h2_fault(c, H2_FLOW_CONTROL_ERROR, err, "more DATA than the window allows");
	pthread_mutex_lock(&c->lock);
	if (c->recv_window < c->own_window / 2) {
		h2_out_number(c, H2_WINDOW_UPDATE, 0, (uint32_t)(c->own_window - c->recv_window));
		c->recv_window = c->own_window;
	}
	if (s && s->recv_window < c->own_stream_window / 2 && !c->body_ends) {
		h2_out_number(c, H2_WINDOW_UPDATE, s->id,
			      (uint32_t)(c->own_stream_window - s->recv_window));
		s->recv_window = c->own_stream_window;
	}
	pthread_mutex_unlock(&c->lock);
	return 0;
}

/* The header of a DATA frame, and its byte of padding: the number of bytes taken, or an error. */
static int open_data(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err)
{
	unsigned taken = f->flags & H2_PADDED ? 1 : 0;
	struct h2_stream *s;
	bool ended, unknown;

	if (taken > f->len || (taken && (uint8_t)*p >= f->len))
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "DATA is all padding");
	pthread_mutex_lock(&c->lock);
	unknown = f->stream % 2 == 0 || f->stream > c->last_id;
	s = h2_stream_find(c, f->stream);
	ended = s && s->whole;
	if (s && !ended)
		c->side->ref(s);
	else if (!s && !unknown && !c->side->client)
		/* it was reset or answered; what is on its way is thrown away */
		h2_out_number(c, H2_RST_STREAM, f->stream, H2_STREAM_CLOSED);
	pthread_mutex_unlock(&c->lock);
	if (unknown)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "DATA of no stream");
	if (ended)
		return h2_fault(c, H2_STREAM_CLOSED, err, "DATA after the end of a stream");
	c->body = s;
	c->in_data = true;
	c->body_ends = f->flags & H2_END_STREAM;
	c->pad_left = taken ? (uint8_t)*p : 0;
	c->data_left = f->len - taken - c->pad_left;
	return take_window(c, f, err) ? -MU_INVALID_ARGUMENT : (int)taken;
}

static void close_data(struct h2_conn *c)
{
	c->in_data = false;
	if (c->body && c->body_ends)
		c->side->whole(c->body);
	let_go_of_body(c);
}

static void take_data(struct h2_conn *c)
{
	size_t have = c->to - c->from, n = have < c->data_left ? have : c->data_left;
	size_t pad;

	if (c->body && n)
		h2_body_take(c->body, c->buffer + c->from, n);
	c->data_left -= n;
	pad = have - n < c->pad_left ? have - n : c->pad_left;
	c->pad_left -= pad;
	c->from += n + pad;
}

/* ---- the stream of bytes ---- */

static void greet(struct h2_conn *c)
{
	pthread_mutex_lock(&c->lock);
	c->greeted = true;
	h2_settings_put(c);
	pthread_mutex_unlock(&c->lock);
	if (c->side->greeted)
		c->side->greeted(c);
}

void h2_conn_hello(struct h2_conn *c)
{
	pthread_mutex_lock(&c->lock);
	memcpy(h2_out_room(c, H2_PREFACE_LEN), H2_PREFACE, H2_PREFACE_LEN);
	h2_settings_put(c);
	if (c->tls)
		tls_conn_begin(c->tls);
	pthread_mutex_unlock(&c->lock);
}

/* One step: 1 done, 0 more bytes are needed, negative an error. */
static int digest_one(struct h2_conn *c, struct mu_err *err)
{
	size_t have = c->to - c->from;
	const char *p = c->buffer + c->from;
	struct h2_frame f;
	int rc;

	if (c->in_data) {
		take_data(c);
		if (c->data_left || c->pad_left)
			return 0;
		close_data(c);
		return 1;
	}
	if (!c->greeted) {
		size_t n = have < H2_PREFACE_LEN ? have : H2_PREFACE_LEN;

		if (memcmp(p, H2_PREFACE, n))
			return h2_fault(c, H2_PROTOCOL_ERROR, err, "this is no HTTP/2 client");
		if (n < H2_PREFACE_LEN)
			return 0;
		c->from += n;
		greet(c);
		return 1;
	}
	if (have < H2_HEADER)
		return 0;
	f = h2_frame_get(p);
	if (f.len > (f.type == H2_DATA ? c->max_own_frame : H2_MAX_BLOCK))
		return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "a frame is too long");
	if ((!c->settled && (f.type != H2_SETTINGS || f.flags & H2_ACK)) ||
	    (c->block_stream && (f.type != H2_CONTINUATION || f.stream != c->block_stream)))
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "another frame was due here");
	if (f.type == H2_DATA) {
		if (have < H2_HEADER + (f.flags & H2_PADDED && f.len ? 1u : 0u))
			return 0;
		rc = open_data(c, &f, p + H2_HEADER, err);
		c->from += H2_HEADER + (rc > 0 ? (size_t)rc : 0);
		return rc < 0 ? rc : 1;
	}
	if (have < H2_HEADER + f.len)
		return 0;
	c->from += H2_HEADER + f.len;
	rc = h2_frame_take(c, &f, p + H2_HEADER, err);
	return rc ? rc : 1;
}

static int digest(struct h2_conn *c, struct mu_err *err)
{
	int rc;

	do
		rc = digest_one(c, err);
	while (rc > 0);
	return rc;
}

static bool is_clogged(struct h2_conn *c)
{
	bool clogged;

	pthread_mutex_lock(&c->lock);
	clogged = c->queued > H2_MAX_QUEUE;
	pthread_mutex_unlock(&c->lock);
	return clogged;
}

/* Waking up for each segment of a large message costs as much as copying it.  Never more is waited
 * for than the frame has left. */
static void set_least(struct h2_conn *c)
{
	int least = c->in_data && c->data_left >= H2_LARGE ? H2_PIECE : 1;

	if (least == c->least || c->tls)
		return;
	c->least = least;
	setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof(least));
}

static bool read_some(struct h2_conn *c, struct mu_err *err)
{
	int64_t began = mu_clock_ms();

	for (int i = 0; i < READS; i++) {
		struct iovec iov[2];
		size_t direct = 0, asked, took;
		char *room = NULL;
		unsigned n = 0;
		ssize_t got;

		if (c->from) {
			memmove(c->buffer, c->buffer + c->from, c->to - c->from);
			c->to -= c->from;
			c->from = 0;
		}
		if (c->in_data && c->body && c->data_left >= DIRECT && c->to == 0) {
			direct = c->data_left;
			room = h2_body_room(c->body, &direct);
		}
		if (room)
			iov[n++] = (struct iovec){room, direct};
		else
			direct = 0;
		iov[n++] = (struct iovec){c->buffer + c->to, H2_BUFFER - c->to};
		asked = direct + H2_BUFFER - c->to;
		got = h2_wire_read(c, iov, (int)n, err);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
			if (h2_near_look(c))
				continue;
			return true;
		}
		if (got < 0 && c->fault)
			return false;
		if (got <= 0) {
			mu_fail(err, MU_UNAVAILABLE, "the other end has gone");
			return false;
		}
		c->heard_ms = mu_clock_ms();
		took = (size_t)got < direct ? (size_t)got : direct;
		if (took) {
			h2_body_took(c->body, took);
			c->data_left -= took;
		}
		c->to += (size_t)got - took;
		if (digest(c, err))
			return false;
		if (is_clogged(c) || c->heard_ms - began > TURN_MS ||
		    ((size_t)got < asked && !h2_near_look(c)))
			return true;
	}
	return true;
}

bool h2_conn_read(struct h2_conn *c, struct mu_err *err)
{
	bool live = read_some(c, err);

	set_least(c);
	return live;
}
