/* SPDX-License-Identifier: Apache-2.0 */
/* A call on the server, with operations of its source: the network, or this process.
 *
 * References: one of the source, and one of the handler until it replies. */
#ifndef MU_TASK_RPC_CALL_H
#define MU_TASK_RPC_CALL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/map.h"
#include "task/rpc/bytes.h"
#include "task/rpc/server.h"

struct rpc_server {
	struct rpc_method *methods; /* copied */
	unsigned n_methods;
	struct mu_map by_path;
	void *ctx;
	struct mu_offload *offload;
	struct listener *listener;
	pthread_mutex_t lock; /* guards the members below; no other lock is taken under it */
	pthread_cond_t changed;
	unsigned calls; /* calls that are not freed yet */
	bool stopping;
};

struct rpc_call_ops {
	/* Sends the reply, or the error if m is NULL.  Called once, before the handler's reference
	 * is released. */
	void (*send)(struct rpc_call *c, const struct rpc_message *m, const struct mu_err *err);
	void (*free)(struct rpc_call *c); /* frees the memory; the request is freed before */
	uint32_t (*client_id)(struct rpc_call *c); /* (optional); NULL: this process */
};
struct rpc_call {
	_Atomic unsigned refs;
	const struct rpc_call_ops *ops;
	struct rpc_server *server;
	const struct rpc_method *method;
	struct rpc_bytes request;
	bool is_counted; /* in the server's `calls` */
	/* Guarded by the server's lock. */
	enum { RPC_OPEN, RPC_CANCELLING, RPC_REPLIED } state;
	bool cancelled;      /* the caller has cancelled or disconnected */
	pthread_t canceller; /* the thread that runs on_cancel */
	void (*on_cancel)(void *arg);
	void *on_cancel_arg;
};

const struct rpc_method *rpc_find_method(const struct rpc_server *s, const char *path);
/* Counts the call on its server; false if the server is stopping. */
bool rpc_call_enter(struct rpc_call *c);
void rpc_call_handle(struct rpc_call *c);        /* runs the handler; takes one reference */
void rpc_call_on_disconnect(struct rpc_call *c); /* the caller has cancelled or disconnected */
void rpc_call_unref(struct rpc_call *c);

#endif
