/* SPDX-License-Identifier: Apache-2.0 */
/* TLS below the bytes of a stream between tasks (lib/tls/tls_context.h has the certificates). */
#ifndef MU_TASK_PEER_STREAM_TLS_H
#define MU_TASK_PEER_STREAM_TLS_H

#include <sys/uio.h>

#include "task/rpc/tls.h"

/* One connection over a socket that does not block.  Not for two threads at once: the caller
 * locks.  Borrows fd.  host: NULL for who has accepted it; else whom the other side must be. */
struct tls_conn;
struct tls_conn *tls_conn_new(struct rpc_tls *t, int fd, const char *host, struct mu_err *err);
void tls_conn_free(struct tls_conn *c); /* NULL is fine */
/* As readv and writev, the handshake included: EAGAIN when the socket is to be waited for, EPROTO
 * when the other side is no task (tls_conn_why).  What is written may wait here (tls_conn_unsent)
 * until the next tls_writev, of nothing perhaps. */
ssize_t tls_readv(struct tls_conn *c, const struct iovec *iov, int n);
ssize_t tls_writev(struct tls_conn *c, const struct iovec *iov, int n);
bool tls_conn_unsent(const struct tls_conn *c);
bool tls_conn_unread(const struct tls_conn *c); /* has come, though the socket is empty */
const char *tls_conn_why(const struct tls_conn *c);

#endif
