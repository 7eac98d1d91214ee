/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS between tasks.  A folder has tls.crt, tls.key and ca.crt (PEM), as a Kubernetes secret
 * volume has them.  Both ends of a connection present tls.crt, and accept only a certificate that
 * ca.crt signed.  Files that are replaced take effect for connections made after that. */
#ifndef MU_TASK_RPC_TLS_H
#define MU_TASK_RPC_TLS_H

#include "lib/base/err.h"

struct rpc_tls;
/* The files must be there and fit together. */
int rpc_tls_open(const char *folder, struct rpc_tls **out, struct mu_err *err);
struct rpc_tls *rpc_tls_ref(struct rpc_tls *t);
void rpc_tls_unref(struct rpc_tls *t); /* NULL is fine */

/* A new OpenSSL connection with the files as they are now; NULL: OpenSSL has no memory. */
struct ssl_st *rpc_tls_new_ssl(struct rpc_tls *t);

/* For gRPC; new ones, which the caller releases. */
struct grpc_server_credentials *rpc_tls_server_credentials(struct rpc_tls *t);
struct grpc_channel_credentials *rpc_tls_channel_credentials(struct rpc_tls *t);

#endif
