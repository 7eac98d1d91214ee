/* SPDX-License-Identifier: Apache-2.0 */
/* Answers: HEADERS, the message in DATA frames, and HEADERS with the status; an error is one
 * HEADERS frame.  A small answer is one run of bytes.
 *
 * The two fields that every good answer has enter the client's table with the first and are one
 * byte each from then on. */
#include <stdio.h>

#include "task/rpc/h2/put.h"
#include "task/rpc/h2/server.h"

enum {
	SMALL = 16384,
	MAX_TEXT = 2048,
};

#define STATUS_200 "\x88"
#define TYPE                                                                                       \
	"\x10"                                                                                     \
	"application/grpc"
#define STATUS_0 "\x0bgrpc-status\x01\x30"

struct fields {
	char bytes[64];
	size_t len;
};

static void put(struct fields *f, const char *bytes, size_t n)
{
	memcpy(f->bytes + f->len, bytes, n);
	f->len += n;
}
#define PUT(f, literal) put(f, literal, sizeof(literal) - 1)

/* What has to be said first when the client wants no table. */
static void about_table(struct h2_conn *c, struct fields *f)
{
	if (c->no_table && !c->shrink_told)
		PUT(f, "\x20");
	c->shrink_told = c->no_table;
}

static struct fields opening(struct h2_conn *c)
{
	struct fields f = {.len = 0};

	about_table(c, &f);
	PUT(&f, STATUS_200);
	if (c->no_table)
		PUT(&f, "\x0f\x10" TYPE);
	else if (c->indexed)
		PUT(&f, "\xbf"); /* 63 */
	else
		PUT(&f, "\x5f" TYPE);
	return f;
}

/* After opening: with both in the table the status is its newest. */
static struct fields closing(struct h2_conn *c)
{
	struct fields f = {.len = 0};

	if (c->no_table)
		PUT(&f, "\x00" STATUS_0);
	else if (c->indexed)
		PUT(&f, "\xbe"); /* 62 */
	else
		PUT(&f, "\x40" STATUS_0);
	c->indexed = !c->no_table;
	return f;
}

/* The message of a status, percent-encoded as gRPC asks for. */
static size_t encode_text(char *to, const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *p = to;

	for (size_t i = 0; text[i] && i < MAX_TEXT; i++) {
		unsigned char ch = (unsigned char)text[i];

		if (ch >= 0x20 && ch <= 0x7e && ch != '%') {
			*p++ = (char)ch;
		} else {
			*p++ = '%';
			*p++ = hex[ch >> 4];
			*p++ = hex[ch & 15];
		}
	}
	return (size_t)(p - to);
}

static void queue_error(struct h2_conn *c, uint32_t id, const struct mu_err *err)
{
	char text[3 * MAX_TEXT], block[sizeof(text) + 128], code[16], *p = block;
	struct fields f = {.len = 0};
	size_t n = encode_text(text, err->msg);
	int digits = snprintf(code, sizeof(code), "%d", err->code ? (int)err->code : MU_UNKNOWN);

	about_table(c, &f);
	PUT(&f, STATUS_200 "\x0f\x10" TYPE "\x00\x0bgrpc-status");
	put(&f, (const char[]){(char)digits}, 1);
	put(&f, code, (size_t)digits);
	memcpy(p, f.bytes, f.len);
	p += f.len;
	memcpy(p, "\x00\x0cgrpc-message", 14);
	p = hpack_put_number(p + 14, n, 7, 0);
	memcpy(p, text, n);
	p += n;
	h2_out_frame(c, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, id, block, (size_t)(p - block));
}

/* ---- good answers ---- */

static bool fits_one_run(struct h2_conn *c, const struct h2_stream *s, size_t total)
{
	size_t n = total + 5;

	return n <= SMALL && n <= c->max_frame && (int64_t)n <= c->send_window &&
	       (int64_t)n <= s->send_window && !c->waiting.first;
}

static void queue_small(struct h2_conn *c, struct h2_stream *s, const struct rpc_message *m,
			size_t total)
{
	struct fields head = opening(c), tail = closing(c);
	char *p = h2_out_room(c, 3 * H2_HEADER + head.len + tail.len + 5 + total);

	p = h2_frame_put(p, (uint32_t)head.len, H2_HEADERS, H2_END_HEADERS, s->id);
	p = h2_put_bytes(p, head.bytes, head.len);
	p = h2_frame_put(p, (uint32_t)total + 5, H2_DATA, 0, s->id);
	p = h2_put_prefix(p, total);
	for (; m; m = m->next) {
		p = h2_put_bytes(p, m->head.data, m->head.len);
		if (m->payload)
			p = h2_put_bytes(p, m->payload->data, m->payload_len);
		p = h2_put_bytes(p, m->tail.data, m->tail.len);
	}
	p = h2_frame_put(p, (uint32_t)tail.len, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, s->id);
	h2_put_bytes(p, tail.bytes, tail.len);
	c->send_window -= (int64_t)total + 5;
}

void h2_reply_close(struct h2_stream *s)
{
	struct h2_conn *c = s->conn;
	/* by name: another answer may have changed what the table has newest */
	struct fields f = {.len = 0};

	about_table(c, &f);
	PUT(&f, "\x00" STATUS_0);
	h2_out_frame(c, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, s->id, f.bytes, f.len);
	if (h2_stream_drop(s))
		c->side->unref(s);
}

static void queue_large(struct h2_conn *c, struct h2_stream *s, const struct rpc_message *m)
{
	struct fields f = {.len = 0};

	about_table(c, &f);
	PUT(&f, STATUS_200 "\x0f\x10" TYPE);
	h2_out_frame(c, H2_HEADERS, H2_END_HEADERS, s->id, f.bytes, f.len);
	h2_send_prepare(s, m);
	h2_send_wait_turn(c, s);
	h2_send_pump(c);
}

/* True when nothing of it is left to send. */
static bool queue_reply(struct h2_conn *c, struct h2_stream *s, const struct rpc_message *m)
{
	size_t total = h2_message_length(m);
	struct mu_err err;

	if (total > UINT32_MAX - 5) {
		mu_fail(&err, MU_RESOURCE_EXHAUSTED, "the answer is longer than 4 GiB: %zu bytes",
			total);
		queue_error(c, s->id, &err);
		return true;
	}
	if (!fits_one_run(c, s, total)) {
		queue_large(c, s, m);
		return false;
	}
	queue_small(c, s, m, total);
	return true;
}

static void send_answer(struct rpc_call *call, const struct rpc_message *m,
			const struct mu_err *err)
{
	struct h2_stream *s = &MU_CONTAINER(call, struct h2_call, call)->stream;
	struct h2_conn *c = s->conn;
	bool drop = false, done = true;

	pthread_mutex_lock(&c->lock);
	if (s->listed) {
		if (m)
			done = queue_reply(c, s, m);
		else
			queue_error(c, s->id, err);
		drop = done && h2_stream_drop(s);
		h2_out_flush(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (drop)
		c->side->unref(s);
}

static void free_call(struct rpc_call *call)
{
	struct h2_call *c = MU_CONTAINER(call, struct h2_call, call);

	h2_stream_fini(&c->stream);
	free(c);
}

const struct rpc_call_ops h2_call_ops = {.send = send_answer, .free = free_call};
