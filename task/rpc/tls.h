/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS between tasks.  A folder has tls.crt, tls.key and ca.crt (PEM), as a Kubernetes secret
 * volume has them; both ends of a connection show tls.crt, and only who shows a certificate that
 * ca.crt vouches for is heard.  Files that are replaced count for the connections made after that.
 */
#ifndef MU_TASK_RPC_TLS_H
#define MU_TASK_RPC_TLS_H

#include <sys/uio.h>

#include "lib/base/err.h"

struct rpc_tls;
/* The files must be there and fit together. */
int rpc_tls_open(const char *folder, struct rpc_tls **out, struct mu_err *err);
struct rpc_tls *rpc_tls_ref(struct rpc_tls *t);
void rpc_tls_unref(struct rpc_tls *t); /* NULL is fine */

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
/* The handshake is not over: nothing can be written yet.  Who calls by HTTP/2 begins it. */
bool tls_conn_shaking(const struct tls_conn *c);
void tls_conn_begin(struct tls_conn *c);
const char *tls_conn_why(const struct tls_conn *c);

#endif
