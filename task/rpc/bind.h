/* SPDX-License-Identifier: Apache-2.0 */
/* Adds a listening address to a gRPC server. */
#ifndef MU_TASK_RPC_BIND_H
#define MU_TASK_RPC_BIND_H

#include <grpc/grpc_security.h>

#include "lib/base/err.h"

/* "host:port" or "unix:path"; *port gets the bound port, 0 for a unix socket.  Borrows creds. */
int bind_listen(grpc_server *server, const char *address, grpc_server_credentials *creds, int *port,
		struct mu_err *err);

#endif
