/* SPDX-License-Identifier: Apache-2.0 */
/* The network side of a server: gRPC listeners and their calls. */
#ifndef MU_TASK_RPC_LISTEN_H
#define MU_TASK_RPC_LISTEN_H

#include "task/rpc/server.h"

struct listener;

/* Borrows o->methods.  ports[i] gets the bound port. */
int listener_start(struct rpc_server *server, const struct rpc_server_options *o,
		   struct listener **out, int *ports, struct mu_err *err);
void listener_close(struct listener *l);      /* rejects new connections and calls */
void listener_cancel_all(struct listener *l); /* cancels all calls */
/* After listener_close: waits up to ms.  False if connections are left. */
bool listener_wait_closed(struct listener *l, long ms);
void listener_free(struct listener *l); /* must be closed, without calls */

#endif
