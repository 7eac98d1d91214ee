/* SPDX-License-Identifier: Apache-2.0 */
/* The gRPC client: a channel to one address, asynchronous and blocking unary calls. */
#ifndef MU_TASK_RPC_CHANNEL_H
#define MU_TASK_RPC_CHANNEL_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

/* Limits for reconnection.  A replacement pod has a new IP address, and packets to the old one get
 * no reply.  So an attempt to connect must end soon, and must resolve the name again. */
enum {
	RPC_CONNECT_TIMEOUT_MS = 2000, /* for each address of a name; enough for two SYNs and TLS */
	RPC_BACKOFF_INITIAL_MS = 50,
	RPC_BACKOFF_MAX_MS = 1000,
};

struct rpc_channel;

/* A received message; the span is borrowed from it. */
struct rpc_bytes;
struct mu_span rpc_bytes_flat(struct rpc_bytes *b);

/* A message to send: a head, an optional tensor payload, and the parts of `next`.  The head is
 * copied.  The payload's buffer is referenced until it is sent. */
struct rpc_message {
	struct mu_span head;
	const struct mu_tensor *payload; /* NULL: none; below 1 KiB a copy in the head is cheaper */
	size_t payload_len;
	const struct rpc_message *next; /* NULL: none */
};

/* target: "host:port", "grpc://host:port" or "unix:path".  Does not connect yet. */
int rpc_channel_open(const char *target, struct rpc_channel **out, struct mu_err *err);
/* The same with mutual TLS; references tls.  NULL: unencrypted. */
struct rpc_tls;
int rpc_channel_open_tls(const char *target, struct rpc_tls *tls, struct rpc_channel **out,
			 struct mu_err *err);
/* Cancels the running calls and returns after their last `done`.  Must not be called from a queue
 * thread, or with a lock held that a `done` takes. */
void rpc_channel_close(struct rpc_channel *ch);
/* True if the last attempt to connect failed; why gets the reason and the address. */
bool rpc_channel_is_disconnected(struct rpc_channel *ch, struct mu_err *why);

enum rpc_flag {
	RPC_WAIT_FOR_READY =
	    1,              /* wait for the connection, up to the deadline, instead of failing */
	RPC_WAIT_SHORT = 2, /* wait a few seconds, then fail with UNAVAILABLE */
};

/* err is NULL on success; reply is borrowed.  Called on a queue thread, so it must not block. */
typedef void (*rpc_done)(void *arg, const struct mu_err *err, struct rpc_bytes *reply);
/* timeout_ms <= 0: no limit.  Returns the call's id for rpc_out_cancel.  done is called exactly
 * once, on another thread, perhaps before rpc_start returns.  If the call cannot be started,
 * returns 0 with err filled, and done is not called. */
uint64_t rpc_start(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		   long timeout_ms, unsigned flags, rpc_done done, void *arg, struct mu_err *err);
void rpc_out_cancel(struct rpc_channel *ch, uint64_t call); /* no effect if it has ended */
/* Blocks the calling thread, which must not be a queue thread. */
int rpc_call(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
	     long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err);
/* A callback for waiting callers.  It runs on the calling thread at next_ms and returns the time of
 * its next run. */
struct rpc_wait_callback {
	int64_t (*fn)(void *arg);
	void *arg;
	int64_t next_ms;
};
/* As rpc_call, with a callback. */
int rpc_call_with_callback(struct rpc_channel *ch, const char *method,
			   const struct rpc_message *request, long timeout_ms, unsigned flags,
			   const struct rpc_wait_callback *callback, struct mu_buf *reply,
			   struct mu_err *err);

#endif
