/* SPDX-License-Identifier: Apache-2.0 */
/* A connection's bytes, from and to its socket or the TLS on it.  The two directions of TLS share
 * one state, so reading takes the connection's lock then, which in the clear it need not. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "task/rpc/h2/conn.h"
#include "task/rpc/tls.h"

/* As readv; a stranger's failure to greet is told in err, and why the connection ends. */
ssize_t h2_wire_read(struct h2_conn *c, const struct iovec *iov, int n, struct mu_err *err)
{
	ssize_t got;

	if (!c->tls)
		return readv(c->fd, iov, n);
	pthread_mutex_lock(&c->lock);
	got = tls_readv(c->tls, iov, n);
	pthread_mutex_unlock(&c->lock);
	if (got < 0 && errno == EPROTO) {
		c->fault = H2_INADEQUATE_SECURITY;
		mu_fail(err, MU_UNAUTHENTICATED, "TLS: %s", tls_conn_why(c->tls));
	}
	return got;
}

ssize_t h2_wire_write(struct h2_conn *c, struct iovec *iov, unsigned n)
{
	struct msghdr m = {.msg_iov = iov, .msg_iovlen = n};

	return c->tls ? tls_writev(c->tls, iov, (int)n)
		      : sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL);
}

bool h2_wire_unread(const struct h2_conn *c)
{
	return c->tls && tls_conn_unread(c->tls);
}

bool h2_wire_unsent(const struct h2_conn *c)
{
	return c->tls && tls_conn_unsent(c->tls);
}

bool h2_wire_closed(const struct h2_conn *c)
{
	return c->tls && tls_conn_shaking(c->tls) && !tls_conn_unsent(c->tls);
}
