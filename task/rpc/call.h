/* SPDX-License-Identifier: Apache-2.0 */
/* A call as the server and its source (the network, or this process) share it.
 *
 * References: the source's, and the handler's until the call is answered. */
#ifndef MU_TASK_RPC_CALL_H
#define MU_TASK_RPC_CALL_H

#include <pthread.h>
#include <stdatomic.h>

#include "task/rpc/bytes.h"
#include "task/rpc/server.h"

struct rpc_call_ops {
	/* Once, the handler's reference still held: a reply, or the error when m is NULL. */
	void (*send)(struct rpc_call *c, const struct rpc_message *m, const struct mu_err *err);
	void (*free)(struct rpc_call *c);          /* its memory; its request is gone already */
	uint32_t (*client_id)(struct rpc_call *c); /* (optional); NULL: this process */
};
struct rpc_call {
	_Atomic unsigned refs;
	const struct rpc_call_ops *ops;
	struct rpc_server *server;
	const struct rpc_method *method;
	struct rpc_bytes request;
	bool counted; /* by the server */
	/* under the server's lock */
	enum { RPC_OPEN, RPC_CANCELLING, RPC_ANSWERED } state;
	bool gone; /* the caller is */
	pthread_t canceller;
	void (*on_cancel)(void *arg);
	void *on_cancel_arg;
};

const struct rpc_method *rpc_find_method(const struct rpc_server *s, const char *path);
const struct rpc_wait *rpc_server_wait(const struct rpc_server *s); /* NULL: callers sleep */
/* The server counts the call; false when it is stopping. */
bool rpc_call_enter(struct rpc_call *c);
void rpc_call_handle(struct rpc_call *c); /* has a method and a request; takes one reference */
void rpc_call_gone(struct rpc_call *c);   /* the caller is; needs no answer any more */
void rpc_call_unref(struct rpc_call *c);

#endif
