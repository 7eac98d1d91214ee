/* SPDX-License-Identifier: Apache-2.0 */
/* Server side of gRPC.  Handlers run on the threads of the completion queue and do not block.  A
 * handler keeps the call as long as it likes and answers it exactly once. */
#ifndef MU_TASK_RPC_SERVER_H
#define MU_TASK_RPC_SERVER_H

#include "task/rpc/channel.h"

struct rpc_server;
struct rpc_tls;
struct rpc_call; /* one request; gone after rpc_reply or rpc_reply_error */

struct rpc_method {
	const char *path; /* "/tensorflow.MasterService/RunStep" */
	void (*handle)(struct rpc_call *call, void *ctx);
};
/* How a caller in this process waits for its answer instead of sleeping.  enter is called before
 * the call starts; when it returns true, wait and leave follow.  wait returns at until_ms
 * (monotonic; 0: no limit), soon after *over, or earlier.  wake makes wait look at *over. */
struct rpc_wait {
	bool (*enter)(void *ctx);
	void (*wait)(void *ctx, const _Atomic bool *over, int64_t until_ms);
	void (*leave)(void *ctx);
	void (*wake)(void *ctx);
	void *ctx; /* NULL: callers sleep */
};
struct rpc_server_options {
	const char *const *addresses; /* "host:port", "unix:path"; port 0 picks one */
	unsigned n_addresses;
	struct rpc_tls *tls; /* (optional) the first n_secured addresses speak it and nothing else;
				borrowed for the server's life */
	unsigned n_secured;
	const struct rpc_method *methods;
	unsigned n_methods;
	void *ctx;
	size_t max_message;   /* 0: 2 GiB - 1 */
	struct rpc_wait wait; /* (optional) */
};
/* A taken port is ALREADY_EXISTS "port N on HOST is already in use". ports[i] gets the real
 * port. */
int rpc_server_start(const struct rpc_server_options *o, struct rpc_server **out, int *ports,
		     struct mu_err *err);
void rpc_server_stop(struct rpc_server *s,
		     long grace_ms); /* refuses new calls, waits, cancels, frees */

struct rpc_bytes *rpc_request(struct rpc_call *call); /* borrowed until the call is answered */
/* A hash of the client's address; 0 for this process.  Clients of a unix socket share one. */
uint32_t rpc_client_id(struct rpc_call *call);
void rpc_reply(struct rpc_call *call, const struct rpc_message *m);
void rpc_reply_error(struct rpc_call *call, const struct mu_err *err);
/* fn(arg) is called at most once if the caller goes away before the answer, from a queue thread or,
 * when it has gone already, from here; never after rpc_reply* has returned, unless that was called
 * by fn. */
void rpc_on_cancel(struct rpc_call *call, void (*fn)(void *arg), void *arg);

/* rpc_call without a network, for a caller in the server's process: blocks; the same errors. */
int rpc_local_call(struct rpc_server *s, const char *path, const struct rpc_message *request,
		   long timeout_ms, struct mu_buf *reply, struct mu_err *err);

#endif
