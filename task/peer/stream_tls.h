/* SPDX-License-Identifier: Apache-2.0 */
/* TLS for streams between tasks, with the certificates of lib/tls/tls_context.h. */
#ifndef MU_TASK_PEER_STREAM_TLS_H
#define MU_TASK_PEER_STREAM_TLS_H

#include <sys/uio.h>

#include "task/rpc/tls.h"

/* A connection over a non-blocking socket.  It is not thread-safe.  Borrows fd.  host: NULL on the
 * accepting side; else the required name of the other side. */
struct tls_conn;
struct tls_conn *tls_conn_new(struct rpc_tls *t, int fd, const char *host, struct mu_err *err);
void tls_conn_free(struct tls_conn *c); /* NULL is allowed */
/* As readv and writev; they also perform the handshake.  EAGAIN: wait for the socket.  EPROTO: the
 * other side is rejected (tls_conn_error_text).  Written data may stay buffered (tls_conn_unsent)
 * until the next tls_writev, which may be empty. */
ssize_t tls_readv(struct tls_conn *c, const struct iovec *iov, int n);
ssize_t tls_writev(struct tls_conn *c, const struct iovec *iov, int n);
bool tls_conn_unsent(const struct tls_conn *c);
bool tls_conn_unread(const struct tls_conn *c); /* decrypted data is buffered */
const char *tls_conn_error_text(const struct tls_conn *c);

#endif
