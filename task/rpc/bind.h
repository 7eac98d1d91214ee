/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses that a server listens on. */
#ifndef MU_TASK_RPC_BIND_H
#define MU_TASK_RPC_BIND_H

#include "task/rpc/core.h"

/* Adds a plaintext listener for "host:port" or "unix:path"; *port gets the real port (0 for a unix
 * socket). */
int bind_listen(grpc_server *server, const char *address, int *port, struct mu_err *err);

#endif
