/* SPDX-License-Identifier: Apache-2.0 */
/* Frames that are not DATA, each handled when all of it is in the buffer. */
#include "task/rpc/h2/conn.h"

#include "lib/base/clock.h"

/* How often the other end may move the windows of all its streams: as it begins, and then once in
 * so long.  gRPC's clients do, as they learn how far away they are; each time costs as much as
 * there are streams. */
enum { WINDOW_MOVES = 1000, WINDOW_MOVE_MS = 10 };

static int on_block(struct h2_conn *c, struct mu_err *err)
{
	uint32_t id = c->block_stream;
	int rc;

	c->block_stream = 0;
	rc = c->side->headers(c, id, c->block_flags & H2_END_STREAM, mu_buf_span(&c->block), err);
	mu_buf_clear(&c->block);
	return rc;
}

static int on_headers(struct h2_conn *c, const struct h2_frame *f, const char *p,
		      struct mu_err *err)
{
	size_t at = 0, pad = 0;

	if (f->stream % 2 == 0)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "HEADERS on a stream of the server's");
	if (f->flags & H2_PADDED) {
		if (f->len < 1)
			return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "HEADERS without its padding");
		pad = (uint8_t)p[at++];
	}
	if (f->flags & H2_HAS_PRIORITY) {
		if (f->len < at + 5)
			return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "HEADERS is too short");
		if ((h2_get32(p + at) & 0x7fffffff) == f->stream)
			return h2_fault(c, H2_PROTOCOL_ERROR, err, "a stream depends on itself");
		at += 5;
	}
	if (at + pad > f->len)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "HEADERS is all padding");
	mu_buf_clear(&c->block);
	mu_buf_put(&c->block, p + at, f->len - at - pad);
	c->block_stream = f->stream;
	c->block_flags = f->flags;
	return f->flags & H2_END_HEADERS ? on_block(c, err) : 0;
}

static int on_continuation(struct h2_conn *c, const struct h2_frame *f, const char *p,
			   struct mu_err *err)
{
	if (c->block_stream == 0)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "CONTINUATION of nothing");
	if (c->block.len + f->len > H2_MAX_BLOCK || f->len == 0)
		return h2_fault(c, H2_ENHANCE_YOUR_CALM, err, "a header block is long");
	mu_buf_put(&c->block, p, f->len);
	return f->flags & H2_END_HEADERS ? on_block(c, err) : 0;
}

static int on_priority(struct h2_conn *c, const struct h2_frame *f, const char *p,
		       struct mu_err *err)
{
	if (f->stream == 0)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "PRIORITY of no stream");
	if (f->len != 5)
		return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "PRIORITY is not 5 bytes");
	if ((h2_get32(p) & 0x7fffffff) == f->stream)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "a stream depends on itself");
	return 0;
}

static int on_reset(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err)
{
	struct h2_stream *s;
	bool unknown;

	if (f->len != 4)
		return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "RST_STREAM is not 4 bytes");
	pthread_mutex_lock(&c->lock);
	unknown = f->stream % 2 == 0 || f->stream > c->last_id;
	s = h2_stream_find(c, f->stream);
	if (s)
		c->side->ref(s);
	pthread_mutex_unlock(&c->lock);
	if (unknown)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "RST_STREAM of no stream");
	if (s) {
		c->side->reset(s, h2_get32(p));
		c->side->unref(s);
	}
	return 0;
}

/* With the lock: all streams' windows move with the initial one. */
static int set_window(struct h2_conn *c, uint32_t to, struct mu_err *err)
{
	int64_t more = (int64_t)to - c->initial_window;

	if (to > INT32_MAX)
		return h2_fault(c, H2_FLOW_CONTROL_ERROR, err, "a window of more than 2^31 - 1");
	if (!more)
		return 0;
	if (c->window_moves++ > WINDOW_MOVES + (mu_clock_ms() - c->since_ms) / WINDOW_MOVE_MS)
		return h2_fault(c, H2_ENHANCE_YOUR_CALM, err, "all windows move too often");
	c->initial_window = to;
	for (unsigned i = 0; i < c->n_buckets; i++)
		for (struct h2_stream *s = c->table[i]; s; s = s->next) {
			s->send_window += more;
			if (s->send_window > INT32_MAX)
				return h2_fault(c, H2_FLOW_CONTROL_ERROR, err, "a window too wide");
			h2_send_opened(c, s);
		}
	return 0;
}

static int set(struct h2_conn *c, unsigned what, uint32_t to, struct mu_err *err)
{
	switch (what) {
	case H2_HEADER_TABLE_SIZE:
		c->no_table |= to < HPACK_TABLE;
		hpack_write_limit(&c->writer, to);
		return 0;
	case H2_ENABLE_PUSH:
		return to > 1 ? h2_fault(c, H2_PROTOCOL_ERROR, err, "ENABLE_PUSH is 0 or 1") : 0;
	case H2_MAX_CONCURRENT_STREAMS:
		c->max_streams = to;
		return 0;
	case H2_INITIAL_WINDOW_SIZE:
		return set_window(c, to, err);
	case H2_MAX_FRAME_SIZE:
		if (to < H2_DEFAULT_FRAME || to > H2_LARGEST_FRAME)
			return h2_fault(c, H2_PROTOCOL_ERROR, err, "MAX_FRAME_SIZE out of range");
		c->max_frame = to;
		return 0;
	default:
		return 0;
	}
}

static int on_settings(struct h2_conn *c, const struct h2_frame *f, const char *p,
		       struct mu_err *err)
{
	bool first = !c->settled;
	int rc = 0;

	if (f->stream)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "SETTINGS of a stream");
	if (f->len % 6 || (f->flags & H2_ACK && f->len))
		return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "SETTINGS of a wrong length");
	c->settled = true;
	if (f->flags & H2_ACK)
		return 0;
	pthread_mutex_lock(&c->lock);
	for (uint32_t i = 0; i < f->len && !rc; i += 6)
		rc = set(c, (unsigned)(h2_get32(p + i) >> 16), h2_get32(p + i + 2), err);
	h2_out_frame(c, H2_SETTINGS, H2_ACK, 0, NULL, 0);
	h2_send_pump(c);
	pthread_mutex_unlock(&c->lock);
	if (!rc && first && c->side->settled)
		c->side->settled(c);
	return rc;
}

static int on_ping(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err)
{
	if (f->stream)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "PING of a stream");
	if (f->len != 8)
		return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "PING is not 8 bytes");
	if (f->flags & H2_ACK) /* of ours: that bytes came is all we wanted */
		return 0;
	pthread_mutex_lock(&c->lock);
	h2_out_frame(c, H2_PING, H2_ACK, 0, p, f->len);
	pthread_mutex_unlock(&c->lock);
	return 0;
}

static int on_goaway(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err)
{
	if (f->stream)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "GOAWAY of a stream");
	if (f->len < 8)
		return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "GOAWAY is too short");
	if (c->side->goaway)
		c->side->goaway(c, h2_get32(p) & 0x7fffffff);
	return 0;
}

static int on_push(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err)
{
	return h2_fault(c, H2_PROTOCOL_ERROR, err, "nobody pushes here");
}

static int widen(struct h2_conn *c, uint32_t stream, uint32_t more, struct h2_stream **bad,
		 struct mu_err *err)
{
	int64_t *window = &c->send_window;
	struct h2_stream *s = NULL;

	if (stream && (stream % 2 == 0 || stream > c->last_id))
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "WINDOW_UPDATE of no stream");
	if (stream) {
		s = h2_stream_find(c, stream);
		if (!s)
			return 0;
		window = &s->send_window;
		if (more == 0 || *window + more > INT32_MAX) {
			h2_out_number(c, H2_RST_STREAM, stream,
				      more ? H2_FLOW_CONTROL_ERROR : H2_PROTOCOL_ERROR);
			c->side->ref(s);
			*bad = s;
			return 0;
		}
	}
	if (more == 0)
		return h2_fault(c, H2_PROTOCOL_ERROR, err, "WINDOW_UPDATE by nothing");
	if (*window + more > INT32_MAX)
		return h2_fault(c, H2_FLOW_CONTROL_ERROR, err, "a window too wide");
	*window += more;
	if (s)
		h2_send_opened(c, s);
	h2_send_pump(c);
	return 0;
}

static int on_window(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err)
{
	struct h2_stream *bad = NULL;
	int rc;

	if (f->len != 4)
		return h2_fault(c, H2_FRAME_SIZE_ERROR, err, "WINDOW_UPDATE is not 4 bytes");
	pthread_mutex_lock(&c->lock);
	rc = widen(c, f->stream, h2_get32(p) & 0x7fffffff, &bad, err);
	pthread_mutex_unlock(&c->lock);
	if (bad) {
		c->side->reset(bad, H2_FLOW_CONTROL_ERROR);
		c->side->unref(bad);
	}
	return rc;
}

static int (*const handlers[])(struct h2_conn *c, const struct h2_frame *f, const char *p,
			       struct mu_err *err) = {
    [H2_HEADERS] = on_headers,
    [H2_PRIORITY] = on_priority,
    [H2_RST_STREAM] = on_reset,
    [H2_SETTINGS] = on_settings,
    [H2_PUSH_PROMISE] = on_push,
    [H2_PING] = on_ping,
    [H2_GOAWAY] = on_goaway,
    [H2_WINDOW_UPDATE] = on_window,
    [H2_CONTINUATION] = on_continuation,
};

int h2_frame_take(struct h2_conn *c, const struct h2_frame *f, const char *p, struct mu_err *err)
{
	return f->type < MU_COUNT(handlers) && handlers[f->type] ? handlers[f->type](c, f, p, err)
								 : 0;
}

void h2_settings_put(struct h2_conn *c)
{
	bool client = c->side->client; /* lets nobody push, and takes no streams */
	const struct {
		uint16_t what;
		uint32_t value;
	} ours[] = {
	    {client ? H2_ENABLE_PUSH : H2_MAX_CONCURRENT_STREAMS, client ? 0 : H2_MAX_STREAMS},
	    {H2_INITIAL_WINDOW_SIZE, (uint32_t)c->own_stream_window},
	    {H2_MAX_FRAME_SIZE, c->max_own_frame},
	};
	char bytes[6 * MU_COUNT(ours)], *p = bytes;

	for (unsigned i = 0; i < MU_COUNT(ours); i++, p += 6) {
		p[0] = (char)(ours[i].what >> 8);
		p[1] = (char)ours[i].what;
		h2_put32(p + 2, ours[i].value);
	}
	h2_out_frame(c, H2_SETTINGS, 0, 0, bytes, sizeof(bytes));
	h2_out_number(c, H2_WINDOW_UPDATE, 0, (uint32_t)c->own_window - H2_DEFAULT_WINDOW);
}
