/* SPDX-License-Identifier: Apache-2.0 */
/* The network side of a server: gRPC's listeners, and the calls that come by them. */
#ifndef MU_TASK_RPC_LISTEN_H
#define MU_TASK_RPC_LISTEN_H

#include "task/rpc/server.h"

struct listener;

/* The options outlive the listener as far as methods go (borrowed); ports[i] gets the real port. */
int listener_start(struct rpc_server *server, const struct rpc_server_options *o,
		   struct listener **out, int *ports, struct mu_err *err);
void listener_close(struct listener *l);      /* accepts no new connection and no new call */
void listener_cancel_all(struct listener *l); /* as if all callers had gone away */
/* After listener_close: false when connections are left after ms. */
bool listener_wait_closed(struct listener *l, long ms);
void listener_free(struct listener *l); /* is closed; no call is left */

#endif
