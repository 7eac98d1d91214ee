/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC server.  Handlers run on the completion queue threads and must not block.  A handler
 * replies to its call exactly once, at any time and from any thread. */
#ifndef MU_TASK_RPC_SERVER_H
#define MU_TASK_RPC_SERVER_H

#include "task/rpc/channel.h"

struct rpc_server;
struct rpc_tls;
struct rpc_call; /* one request; invalid after rpc_reply or rpc_reply_error */

/* Writes the serialized reply, or fails. */
typedef int rpc_responder(void *ctx, struct mu_span request, struct mu_buf *reply,
			  struct mu_err *err);
struct rpc_method {       /* one of the functions is set */
	const char *path; /* "/tensorflow.MasterService/RunStep" */
	void (*handle)(struct rpc_call *call, void *ctx);
	rpc_responder *respond;         /* its result is the reply */
	rpc_responder *respond_offload; /* the same on an offload thread, where it may block */
};
struct rpc_server_options {
	const char *const *addresses; /* "host:port", "unix:path"; port 0 picks one */
	unsigned n_addresses;
	struct rpc_tls *tls; /* (optional) required on the first n_secured addresses; borrowed for
				the server's life */
	unsigned n_secured;
	const struct rpc_method *methods;
	unsigned n_methods;
	void *ctx;
	struct mu_offload *offload; /* for respond_offload; borrowed */
	size_t max_message;         /* 0: 2 GiB - 1 */
};
/* ports[i] gets the bound port.  Fails with ALREADY_EXISTS if a port is in use. */
int rpc_server_start(const struct rpc_server_options *o, struct rpc_server **out, int *ports,
		     struct mu_err *err);
void rpc_server_stop(struct rpc_server *s,
		     long grace_ms); /* rejects new calls, waits, cancels, frees */

struct rpc_bytes *rpc_request(struct rpc_call *call); /* borrowed until the reply */
/* Returns a hash of the client's address; 0 for this process.  It is the same for all clients of a
 * Unix socket. */
uint32_t rpc_client_id(struct rpc_call *call);
void rpc_reply(struct rpc_call *call, const struct rpc_message *m);
void rpc_reply_error(struct rpc_call *call, const struct mu_err *err);
/* fn(arg) is called at most once, if the caller cancels or disconnects before the reply: from a
 * queue thread, or from rpc_on_cancel if the caller has cancelled before.  It is not called after
 * rpc_reply* has returned, unless fn itself has replied. */
void rpc_on_cancel(struct rpc_call *call, void (*fn)(void *arg), void *arg);

/* rpc_call for a caller in the server's process, without the network.  Blocks. */
int rpc_local_call(struct rpc_server *s, const char *path, const struct rpc_message *request,
		   long timeout_ms, struct mu_buf *reply, struct mu_err *err);

#endif
