/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: a frame is queued under the connection's lock and the queue is written at once by
 * whoever queued, until the socket is full; then the streams' thread goes on when it is writable.
 * What that thread itself queues while it handles frames goes out together afterwards, unless it is
 * large.
 *
 * Reading: into a buffer that holds any header and head; a payload goes straight to its tensor,
 * with the buffer behind it in the same call. */
#include "task/peer/stream_conn.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { BATCH = 32, READS = 64, AT_ONCE = 64 << 10 };

struct stream_out {
	struct stream_out *next;
	struct mu_tensor tensor;
	size_t payload, len, sent;
	char bytes[];
};

struct stream_conn *stream_conn_new(struct streams *owner, int fd)
{
	struct stream_conn *c = MU_NEW(struct stream_conn);

	c->refs = 1;
	c->owner = owner;
	c->fd = fd;
	c->last = &c->first;
	c->buffer = mu_xmalloc(STREAM_BUFFER);
	pthread_mutex_init(&c->lock, NULL);
	mu_map_init(&c->steps);
	return c;
}

struct stream_conn *stream_conn_ref(struct stream_conn *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

static void drop_first(struct stream_conn *c)
{
	struct stream_out *o = c->first;

	c->first = o->next;
	if (!c->first)
		c->last = &c->first;
	mu_tensor_unref(&o->tensor);
	free(o);
}

void stream_conn_unref(struct stream_conn *c)
{
	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	while (c->first)
		drop_first(c);
	close(c->fd);
	mu_map_each (&c->steps, s)
		free(s->value);
	mu_map_fini(&c->steps);
	mu_tensor_unref(&c->tensor);
	mu_buf_fini(&c->proto);
	free(c->key);
	free(c->buffer);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

void stream_lost(struct mu_err *err, const struct stream_conn *c)
{
	mu_fail(err, MU_UNAVAILABLE, "the stream to %s is lost", *c->task ? c->task : "a stranger");
}

/* ---- writing ---- */

static unsigned gather(struct stream_conn *c, struct iovec *iov)
{
	unsigned n = 0;

	for (struct stream_out *o = c->first; o && n + 2 <= BATCH; o = o->next) {
		size_t at = o->sent;

		if (at < o->len)
			iov[n++] = (struct iovec){o->bytes + at, o->len - at};
		at = at < o->len ? 0 : at - o->len;
		if (o->payload)
			iov[n++] = (struct iovec){(char *)o->tensor.data + at, o->payload - at};
	}
	return n;
}

static void advance(struct stream_conn *c, size_t n)
{
	while (c->first) {
		struct stream_out *o = c->first;
		size_t left = o->len + o->payload - o->sent;

		if (n < left) {
			o->sent += n;
			return;
		}
		n -= left;
		drop_first(c);
	}
}

static void flush_locked(struct stream_conn *c)
{
	struct iovec iov[BATCH];

	while (c->first && !c->broken) {
		struct msghdr m = {.msg_iov = iov, .msg_iovlen = gather(c, iov)};
		ssize_t n = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n >= 0) {
			advance(c, (size_t)n);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			break;
		} else if (errno != EINTR) {
			shutdown(c->fd, SHUT_RDWR); /* the reader sees it and ends things */
			return;
		}
	}
	if (!c->broken && c->wants_out != (c->first != NULL)) {
		c->wants_out = c->first != NULL;
		stream_loop_watch(c, c->wants_out);
	}
}

void stream_conn_flush(struct stream_conn *c)
{
	pthread_mutex_lock(&c->lock);
	flush_locked(c);
	pthread_mutex_unlock(&c->lock);
}

int stream_conn_send(struct stream_conn *c, const struct mu_buf *frame, struct mu_tensor *t,
		     size_t payload, struct mu_err *err)
{
	struct stream_out *o = mu_xmalloc(sizeof(*o) + frame->len);
	bool later = payload < AT_ONCE && stream_loop_is_this_thread(c->owner), broken;

	*o = (struct stream_out){.payload = payload, .len = frame->len};
	memcpy(o->bytes, frame->data, frame->len);
	if (t && payload)
		o->tensor = *t;
	else if (t)
		mu_tensor_unref(t);
	pthread_mutex_lock(&c->lock);
	broken = c->broken;
	if (!broken) {
		*c->last = o;
		c->last = &o->next;
		if (!later && !c->wants_out)
			flush_locked(c);
	}
	pthread_mutex_unlock(&c->lock);
	if (broken) {
		mu_tensor_unref(&o->tensor);
		free(o);
		stream_lost(err, c);
		return -MU_UNAVAILABLE;
	}
	if (later)
		stream_loop_dirty(c);
	return 0;
}

void stream_conn_break(struct stream_conn *c)
{
	pthread_mutex_lock(&c->lock);
	c->broken = true;
	while (c->first)
		drop_first(c);
	pthread_mutex_unlock(&c->lock);
	shutdown(c->fd, SHUT_RDWR);
}

/* ---- reading ---- */

/* Handles what the buffer holds; 0, or what is wrong with it. */
static int digest(struct stream_conn *c, struct mu_err *err)
{
	for (;;) {
		size_t have = c->to - c->from;
		struct mu_span head;
		int rc;

		if (c->in_payload) {
			size_t n = have < c->payload_left ? have : c->payload_left;

			if (!c->skip && n) {
				memcpy(c->payload_at, c->buffer + c->from, n);
				c->payload_at += n;
			}
			c->payload_left -= n;
			c->from += n;
			if (c->payload_left)
				return 0;
			c->in_payload = false;
			stream_on_payload(c);
			continue;
		}
		if (!c->has_header) {
			if (have < STREAM_HEADER)
				return 0;
			rc = stream_header_parse(&c->header, c->buffer + c->from, err);
			if (rc)
				return rc;
			c->has_header = true;
		}
		if (have < STREAM_HEADER + c->header.head_len)
			return 0;
		head = (struct mu_span){c->buffer + c->from + STREAM_HEADER, c->header.head_len};
		c->has_header = false;
		c->from += STREAM_HEADER + c->header.head_len;
		if (!c->greeted)
			rc = stream_on_hello(c, head, err);
		else if (c->header.type == STREAM_TENSOR)
			rc = stream_on_tensor(c, head, err);
		else
			rc = stream_on_frame(c, head, err);
		if (rc)
			return rc;
	}
}

bool stream_conn_read(struct stream_conn *c, struct mu_err *err)
{
	for (int i = 0; i < READS; i++) {
		struct iovec iov[2];
		unsigned n = 0;
		size_t asked = 0;
		ssize_t got;

		if (c->from) {
			memmove(c->buffer, c->buffer + c->from, c->to - c->from);
			c->to -= c->from;
			c->from = 0;
		}
		if (c->in_payload && !c->skip)
			iov[n++] = (struct iovec){c->payload_at, c->payload_left};
		iov[n++] = (struct iovec){c->buffer + c->to, STREAM_BUFFER - c->to};
		for (unsigned k = 0; k < n; k++)
			asked += iov[k].iov_len;
		got = readv(c->fd, iov, (int)n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
		if (got <= 0) {
			stream_lost(err, c);
			return false;
		}
		if (n == 2) { /* the buffer was empty: a payload had taken all of it */
			size_t direct =
			    (size_t)got < c->payload_left ? (size_t)got : c->payload_left;

			c->payload_at += direct;
			c->payload_left -= direct;
			c->to += (size_t)got - direct;
		} else {
			c->to += (size_t)got;
		}
		if (digest(c, err))
			return false;
		if ((size_t)got < asked && !c->in_payload)
			return true;
	}
	return true;
}
