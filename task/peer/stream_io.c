/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes the bytes of a connection, with or without TLS.  Both directions of TLS share
 * one state, so a read with TLS takes the connection's lock.  Its size is limited, so that writers
 * do not wait long. */
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "lib/base/clock.h"
#include "task/peer/stream_conn.h"
#include "task/peer/stream_tls.h"

enum { MAX_TLS_READ_BYTES = 256 << 10 };

void stream_lost(struct mu_err *err, const struct stream_conn *c)
{
	mu_fail(err, MU_UNAVAILABLE, "the stream to %s is lost",
		*c->task ? c->task : "an unidentified peer");
}

ssize_t stream_io_read(struct stream_conn *c, struct iovec *iov, int n)
{
	ssize_t got;

	if (c->local && !c->handshake_done)
		return share_recv(c->fd, iov[0].iov_base, iov[0].iov_len, c->fds);
	if (!c->tls)
		return readv(c->fd, iov, n);
	if (iov[0].iov_len >= MAX_TLS_READ_BYTES) {
		iov[0].iov_len = MAX_TLS_READ_BYTES;
		n = 1;
	}
	pthread_mutex_lock(&c->lock);
	got = tls_readv(c->tls, iov, n);
	pthread_mutex_unlock(&c->lock);
	return got;
}

ssize_t stream_io_write(struct stream_conn *c, struct iovec *iov, unsigned n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};

	return c->tls ? tls_writev(c->tls, iov, (int)n)
		      : sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool stream_io_unsent(const struct stream_conn *c)
{
	return c->tls && tls_conn_unsent(c->tls);
}

bool stream_io_unread(struct stream_conn *c)
{
	bool is_unread;

	if (!c->tls)
		return false;
	pthread_mutex_lock(&c->lock);
	is_unread = tls_conn_unread(c->tls);
	pthread_mutex_unlock(&c->lock);
	return is_unread;
}

void stream_io_fail(const struct stream_conn *c, int e, struct mu_err *err)
{
	if (c->tls && e == EPROTO)
		mu_fail(err, MU_UNAUTHENTICATED, "TLS: %s", tls_conn_error_text(c->tls));
	else
		stream_lost(err, c);
}

/* ---- handshake: complete transfers with a deadline ---- */

/* Waits for the socket until until_ms.  A signal may end the wait; the caller then retries. */
static bool poll_until(const struct stream_conn *c, int64_t until_ms)
{
	struct pollfd p = {c->fd, (short)(POLLIN | (stream_io_unsent(c) ? POLLOUT : 0)), 0};
	int64_t left = until_ms - mu_clock_ms();

	return left > 0 && (poll(&p, 1, (int)left) >= 0 || errno == EINTR);
}

static bool is_transient(ssize_t n)
{
	return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
}

int stream_io_put_all(struct stream_conn *c, struct mu_span s, int64_t until_ms)
{
	while (s.len || stream_io_unsent(c)) {
		struct iovec iov = {(void *)s.data, s.len};
		ssize_t n = stream_io_write(c, &iov, s.len ? 1 : 0);

		if (n >= 0)
			s = (struct mu_span){s.data + n, s.len - (size_t)n};
		else if (!is_transient(n) || !poll_until(c, until_ms))
			return -1;
	}
	return 0;
}

int stream_io_get_all(struct stream_conn *c, char *to, size_t n, int64_t until_ms)
{
	while (n) {
		struct iovec iov = {to, n};
		ssize_t got = stream_io_read(c, &iov, 1);

		if (is_transient(got) && poll_until(c, until_ms))
			continue;
		if (got <= 0)
			return -1;
		to += got;
		n -= (size_t)got;
	}
	return 0;
}
