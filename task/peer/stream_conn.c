/* SPDX-License-Identifier: Apache-2.0 */
/* Writing: the sending thread queues a frame under the connection's lock and writes the queue until
 * the socket is full.  The stream thread continues when the socket is writable.
 *
 * Reading: header and head go to a buffer that is large enough for both.  One call reads a payload
 * directly into its tensor and the following bytes into the buffer. */
#include "task/peer/stream_conn.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib/tensor/arena.h"
#include "task/peer/stream_tls.h"

enum {
	MAX_IOVECS = 32,                /* per write */
	MAX_READS = 64,                 /* per connection, before the next connection */
	MIN_ZERO_COPY_BYTES = 64 << 10, /* smaller payloads are copied */
	/* unused imported tensors that trigger a RETURN frame: their bytes, their number */
	RETURN_BYTES = 8 << 20,
	RETURN_IDS = 64,
};
_Static_assert((int)STREAM_HEADER + STREAM_MAX_HEAD <= (int)STREAM_BUFFER,
	       "the buffer must hold the largest frame head");

struct outgoing_frame {
	struct outgoing_frame *next;
	struct mu_tensor tensor; /* has a large payload; small ones are copied to `bytes` */
	size_t payload, len, sent;
	char bytes[];
};

struct stream_conn *stream_conn_new(struct streams *owner, int fd)
{
	struct stream_conn *c = MU_NEW(struct stream_conn);

	c->refs = 1;
	c->owner = owner;
	c->fd = fd;
	c->fds[SHARE_FILE] = c->fds[SHARE_LIVENESS] = -1;
	c->last = &c->first;
	c->buffer = mu_xmalloc(STREAM_BUFFER);
	pthread_mutex_init(&c->lock, NULL);
	mu_map_init(&c->steps);
	return c;
}

int stream_conn_secure(struct stream_conn *c, struct rpc_tls *tls, const char *host,
		       struct mu_err *err)
{
	c->tls = tls_conn_new(tls, c->fd, host, err);
	return c->tls ? 0 : -(int)err->code;
}

struct stream_conn *stream_conn_ref(struct stream_conn *c)
{
	atomic_fetch_add_explicit(&c->refs, 1, memory_order_relaxed);
	return c;
}

/* Removes the first frame.  `unlock` frees it, because that may return an imported tensor, which
 * takes the lock. */
static void remove_first(struct stream_conn *c)
{
	struct outgoing_frame *o = c->first;

	c->first = o->next;
	if (!c->first)
		c->last = &c->first;
	o->next = c->written;
	c->written = o;
}

static void frame_free(struct outgoing_frame *o)
{
	if (mu_tensor_is_set(&o->tensor))
		mu_tensor_unref_remote(&o->tensor);
	free(o);
}

static void unlock(struct stream_conn *c)
{
	struct outgoing_frame *written = c->written, *next;

	c->written = NULL;
	pthread_mutex_unlock(&c->lock);
	for (; written; written = next) {
		next = written->next;
		frame_free(written);
	}
}

void stream_conn_unref(struct stream_conn *c)
{
	if (!c || atomic_fetch_sub_explicit(&c->refs, 1, memory_order_acq_rel) != 1)
		return;
	stream_conn_shutdown(c);
	importer_end(c->importer);
	exporter_free(c->exporter);
	share_close(c->fds);
	tls_conn_free(c->tls);
	close(c->fd);
	mu_map_each (&c->steps, s)
		free(s->value);
	mu_map_fini(&c->steps);
	mu_tensor_unref(&c->tensor);
	mu_buf_fini(&c->proto);
	mu_buf_fini(&c->returns);
	free(c->key);
	free(c->buffer);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* ---- handshake ---- */

int stream_conn_send_hello(struct stream_conn *c, enum stream_type type,
			   const struct stream_hello *h, int64_t until_ms, struct mu_err *err)
{
	int fds[SHARE_FDS], rc = 0;
	MU_AUTO_BUF b = {0};

	if (c->local && (type == STREAM_HELLO || c->importer))
		c->exporter = exporter_new(fds);
	stream_hello_write(&b, type, c->exporter ? STREAM_SHARES : 0, h);
	if (c->exporter) {
		rc = share_send(c->fd, mu_buf_span(&b), fds, err);
		close(fds[SHARE_LIVENESS]);
	} else if (stream_io_put_all(c, mu_buf_span(&b), until_ms)) {
		stream_io_fail(c, errno, err);
		rc = -MU_UNAVAILABLE;
	}
	return rc;
}

/* Memory is shared in both directions or not at all. */
int stream_conn_on_hello(struct stream_conn *c, unsigned flags, const struct stream_hello *hello,
			 struct mu_err *err)
{
	bool can_share = c->dialled ? c->exporter != NULL : arena_started();

	if (can_share && (flags & STREAM_SHARES)) {
		c->importer = importer_new(c, stream_conn_return, c->fds, err);
		if (!c->importer)
			return -(int)err->code;
	}
	share_close(c->fds);
	if (!c->importer) {
		exporter_free(c->exporter);
		c->exporter = NULL;
	}
	snprintf(c->task, sizeof(c->task), "%s", hello->task);
	c->incarnation = hello->sender_incarnation;
	c->handshake_done = true;
	if (!c->dialled) /* the dialler thread must not access the count */
		c->owner->n_handshakes--;
	return 0;
}

/* ---- writing ---- */

static unsigned fill_iov(struct stream_conn *c, struct iovec *iov)
{
	unsigned n = 0;

	for (struct outgoing_frame *o = c->first; o && n + 2 <= MAX_IOVECS; o = o->next) {
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
		struct outgoing_frame *o = c->first;
		size_t left = o->len + o->payload - o->sent;

		if (n < left) {
			o->sent += n;
			return;
		}
		n -= left;
		remove_first(c);
	}
}

static void conn_watch(struct stream_conn *c, bool out)
{
	struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data.ptr = c};

	epoll_ctl(c->owner->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void flush_locked(struct stream_conn *c)
{
	struct iovec iov[MAX_IOVECS];
	bool has_unsent;

	while ((c->first || stream_io_unsent(c)) && !c->is_shut_down) {
		ssize_t n = stream_io_write(c, iov, fill_iov(c, iov));

		if (n >= 0) {
			advance(c, (size_t)n);
		} else if (errno == EAGAIN || errno == EWOULDBLOCK) {
			break;
		} else if (errno != EINTR) {
			shutdown(c->fd, SHUT_RDWR); /* the stream thread then ends the connection */
			return;
		}
	}
	has_unsent = c->first || stream_io_unsent(c);
	if (!c->is_shut_down && c->polls_out != has_unsent) {
		c->polls_out = has_unsent;
		conn_watch(c, has_unsent);
	}
}

void stream_conn_flush(struct stream_conn *c)
{
	pthread_mutex_lock(&c->lock);
	flush_locked(c);
	unlock(c);
}

static void enqueue(struct stream_conn *c, struct outgoing_frame *o)
{
	*c->last = o;
	c->last = &o->next;
}

static struct outgoing_frame *new_frame(const struct mu_buf *frame, struct mu_span payload)
{
	struct outgoing_frame *o = mu_xmalloc(sizeof(*o) + frame->len + payload.len);

	*o = (struct outgoing_frame){.len = frame->len + payload.len};
	memcpy(o->bytes, frame->data, frame->len);
	memcpy(o->bytes + frame->len, payload.data, payload.len);
	return o;
}

static void queue_returns(struct stream_conn *c)
{
	MU_AUTO_BUF b = {0};

	if (!c->returns.len)
		return;
	stream_return_write(&b, mu_buf_span(&c->returns));
	mu_buf_clear(&c->returns);
	c->returned_bytes = 0;
	enqueue(c, new_frame(&b, MU_SPAN("")));
}

void stream_conn_return(struct stream_conn *c, uint64_t id, size_t bytes)
{
	id = htole64(id);
	pthread_mutex_lock(&c->lock);
	if (!c->is_shut_down) {
		mu_buf_put(&c->returns, &id, sizeof(id));
		c->returned_bytes += bytes;
		if (c->returned_bytes >= RETURN_BYTES ||
		    c->returns.len >= RETURN_IDS * sizeof(id)) {
			queue_returns(c);
			if (!c->polls_out)
				flush_locked(c);
		}
	}
	unlock(c);
}

int stream_conn_send(struct stream_conn *c, const struct mu_buf *frame, struct mu_tensor *t,
		     size_t payload, struct mu_err *err)
{
	bool is_small = payload < MIN_ZERO_COPY_BYTES;
	/* A full socket delays the frame.  Its tensor may be the value of a reference variable,
	 * which a later node of the step updates in place.  So a small tensor is copied.  A large
	 * tensor gets a remote reference, so that the update writes to a new buffer. */
	struct mu_span copied =
	    is_small && payload ? (struct mu_span){t->data, payload} : MU_SPAN("");
	struct outgoing_frame *o = new_frame(frame, copied);
	bool broken;

	if (!is_small) {
		o->payload = payload;
		o->tensor = *t;
		mu_tensor_add_remote_ref(t);
	} else if (t) {
		mu_tensor_unref(t);
	}
	pthread_mutex_lock(&c->lock);
	broken = c->is_shut_down;
	if (!broken) {
		queue_returns(c);
		enqueue(c, o);
		if (!c->polls_out)
			flush_locked(c);
	}
	unlock(c);
	if (broken) {
		frame_free(o);
		stream_lost(err, c);
		return -MU_UNAVAILABLE;
	}
	return 0;
}

void stream_conn_shutdown(struct stream_conn *c)
{
	pthread_mutex_lock(&c->lock);
	c->is_shut_down = true;
	while (c->first)
		remove_first(c);
	unlock(c);
	shutdown(c->fd, SHUT_RDWR);
}

/* ---- reading ---- */

/* Handles the frames in the buffer; returns 0 or an error. */
static int handle_buffer(struct stream_conn *c, struct mu_err *err)
{
	const struct stream_handlers *handlers = c->owner->handlers;

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
			handlers->on_payload(c);
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
		if (!c->handshake_done)
			rc = handlers->on_hello(c, head, err);
		else if (c->header.type == STREAM_TENSOR)
			rc = handlers->on_tensor(c, head, err);
		else
			rc = handlers->on_frame(c, head, err);
		if (rc)
			return rc;
	}
}

bool stream_conn_read(struct stream_conn *c, bool *is_unread, struct mu_err *err)
{
	*is_unread = false;
	for (int i = 0; i < MAX_READS; i++) {
		bool is_direct =
		    c->in_payload && !c->skip; /* the buffer is empty after a payload */
		struct iovec iov[2];
		unsigned n = 0;
		size_t requested = 0;
		ssize_t got;

		if (c->from) {
			memmove(c->buffer, c->buffer + c->from, c->to - c->from);
			c->to -= c->from;
			c->from = 0;
		}
		if (is_direct)
			iov[n++] = (struct iovec){c->payload_at, c->payload_left};
		iov[n++] = (struct iovec){c->buffer + c->to, STREAM_BUFFER - c->to};
		for (unsigned k = 0; k < n; k++)
			requested += iov[k].iov_len;
		got = stream_io_read(c, iov, (int)n);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
			return true;
		if (got <= 0) {
			stream_io_fail(c, got ? errno : 0, err);
			return false;
		}
		if (is_direct) {
			size_t n_payload =
			    (size_t)got < c->payload_left ? (size_t)got : c->payload_left;

			c->payload_at += n_payload;
			c->payload_left -= n_payload;
			c->to += (size_t)got - n_payload;
		} else {
			c->to += (size_t)got;
		}
		if (handle_buffer(c, err))
			return false;
		if ((size_t)got < requested && !c->in_payload)
			break; /* the socket is empty, but TLS may have decrypted more */
	}
	*is_unread = stream_io_unread(c);
	return true;
}
