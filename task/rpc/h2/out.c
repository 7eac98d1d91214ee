/* SPDX-License-Identifier: Apache-2.0 */
/* Writing.  The queue is made of bytes of our own, each run perhaps followed by borrowed ones of a
 * tensor.  Whoever queued an answer writes as much as the socket takes; the rest goes when epoll
 * says so, by the reading thread. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "task/rpc/h2/loop.h"

enum { BATCH = 32, RUN = 4096 };

struct h2_out {
	struct h2_out *next;
	char *bytes;
	size_t len, cap, sent;
	const char *payload;
	size_t payload_len;
	struct mu_tensor tensor;
};

static struct h2_out *append(struct h2_conn *c, size_t n)
{
	struct h2_out *o = c->spare;

	if (o && o->cap >= n) {
		c->spare = NULL;
	} else {
		o = MU_NEW(struct h2_out);
		o->cap = n > RUN ? n : RUN;
		o->bytes = mu_xmalloc(o->cap);
	}
	*c->last = o;
	c->last = &o->next;
	return o;
}

char *h2_out_room(struct h2_conn *c, size_t n)
{
	struct h2_out *o = c->first ? MU_CONTAINER(c->last, struct h2_out, next) : NULL;

	if (!o || o->payload || o->cap - o->len < n)
		o = append(c, n);
	o->len += n;
	c->queued += n;
	return o->bytes + o->len - n;
}

void h2_out_tensor(struct h2_conn *c, const struct mu_tensor *t, const char *data, size_t n)
{
	struct h2_out *o = c->first ? MU_CONTAINER(c->last, struct h2_out, next) : NULL;

	if (!o || o->payload)
		o = append(c, 0);
	o->payload = data;
	o->payload_len = n;
	o->tensor = mu_tensor_ref(t);
	c->queued += n;
}

void h2_out_frame(struct h2_conn *c, enum h2_type type, uint8_t flags, uint32_t stream,
		  const void *payload, size_t len)
{
	char *p = h2_frame_put(h2_out_room(c, H2_HEADER + len), (uint32_t)len, (uint8_t)type, flags,
			       stream);

	if (len)
		memcpy(p, payload, len);
}

void h2_out_number(struct h2_conn *c, enum h2_type type, uint32_t stream, uint32_t number)
{
	char bytes[4];

	h2_put32(bytes, number);
	h2_out_frame(c, type, 0, stream, bytes, sizeof(bytes));
}

static void free_out(struct h2_out *o)
{
	if (o)
		free(o->bytes);
	free(o);
}

static void drop_first(struct h2_conn *c)
{
	struct h2_out *o = c->first;

	c->first = o->next;
	if (!c->first)
		c->last = &c->first;
	if (o->payload)
		mu_tensor_unref(&o->tensor);
	if (!c->spare) {
		*o = (struct h2_out){.bytes = o->bytes, .cap = o->cap};
		c->spare = o;
	} else {
		free_out(o);
	}
}

void h2_out_free(struct h2_conn *c)
{
	while (c->first)
		drop_first(c);
	free_out(c->spare);
	c->spare = NULL;
	c->queued = 0;
}

static unsigned gather(struct h2_conn *c, struct iovec *iov)
{
	unsigned n = 0;

	for (struct h2_out *o = c->first; o && n + 2 <= BATCH; o = o->next) {
		size_t at = o->sent;

		if (at < o->len)
			iov[n++] = (struct iovec){o->bytes + at, o->len - at};
		at = at < o->len ? 0 : at - o->len;
		if (o->payload)
			iov[n++] = (struct iovec){(char *)o->payload + at, o->payload_len - at};
	}
	return n;
}

static void advance(struct h2_conn *c, size_t n)
{
	c->queued -= n;
	while (c->first) {
		struct h2_out *o = c->first;
		size_t left = o->len + o->payload_len - o->sent;

		if (n < left) {
			o->sent += n;
			return;
		}
		n -= left;
		drop_first(c);
	}
}

bool h2_out_left(const struct h2_conn *c)
{
	return c->first || h2_wire_unsent(c);
}

void h2_out_flush(struct h2_conn *c)
{
	struct iovec iov[BATCH];
	bool full = false;

	while (h2_out_left(c) && !c->broken && !full && !h2_wire_closed(c)) {
		ssize_t n = h2_wire_write(c, iov, gather(c, iov));

		if (n >= 0) {
			advance(c, (size_t)n);
			h2_send_pump(c);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			full = true;
		} else if (errno != EINTR) {
			shutdown(c->fd, SHUT_RDWR); /* the reader sees it and ends things */
			return;
		}
	}
	if (c->wants_out != full) {
		c->wants_out = full;
		if (!c->reading && !c->broken)
			h2_loop_watch(c);
	}
}
