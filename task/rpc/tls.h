/* SPDX-License-Identifier: Apache-2.0 */
/* Mutual TLS of gRPC servers and channels, from a certificate folder (lib/tls/tls_context.h). */
#ifndef MU_TASK_RPC_TLS_H
#define MU_TASK_RPC_TLS_H

#include "lib/base/err.h"

struct rpc_tls;
struct mu_tls_context;
int rpc_tls_open(const char *folder, struct rpc_tls **out, struct mu_err *err);
struct rpc_tls *rpc_tls_ref(struct rpc_tls *t);
void rpc_tls_unref(struct rpc_tls *t); /* NULL is allowed */
struct mu_tls_context *
rpc_tls_context(struct rpc_tls *t); /* context of the same folder; borrowed */

/* The caller releases the credentials. */
struct grpc_server_credentials *rpc_tls_server_credentials(struct rpc_tls *t);
struct grpc_channel_credentials *rpc_tls_channel_credentials(struct rpc_tls *t);

#endif
