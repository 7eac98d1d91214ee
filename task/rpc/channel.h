/* SPDX-License-Identifier: Apache-2.0 */
/* Client side of gRPC: a channel to one address, asynchronous and blocking unary calls. */
#ifndef MU_TASK_RPC_CHANNEL_H
#define MU_TASK_RPC_CHANNEL_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

/* How fast a channel finds a peer again.  A pod that replaces another has another IP address, and
 * nothing answers at the old one.  So an attempt to connect must end soon, and each attempt must
 * resolve the name anew: a long attempt at the old address is time without a training step. */
enum {
	RPC_CONNECT_TIMEOUT_MS = 2000, /* for each address of a name: two SYNs, and TLS */
	RPC_BACKOFF_INITIAL_MS = 50,
	RPC_BACKOFF_MAX_MS = 1000,
};

struct rpc_channel;

/* A received message; borrows. */
struct rpc_bytes;
struct mu_span rpc_bytes_flat(struct rpc_bytes *b);

/* A message to send: a head that is copied, then optionally a tensor's payload that is only
 * borrowed (one reference is held until it is with the system), then a tail that is copied, then
 * what `next` says. */
struct rpc_message {
	struct mu_span head;
	const struct mu_tensor *payload; /* NULL: none; small payloads are copied */
	size_t payload_len;
	struct mu_span tail;
	const struct rpc_message *next; /* NULL: the end */
};

/* target: "host:port", "grpc://host:port" or "unix:path".  Makes no connection yet. */
int rpc_channel_open(const char *target, struct rpc_channel **out, struct mu_err *err);
/* By mutual TLS; shares tls.  NULL: as above. */
struct rpc_tls;
int rpc_channel_open_tls(const char *target, struct rpc_tls *tls, struct rpc_channel **out,
			 struct mu_err *err);
/* Calls in flight end with CANCELLED; returns when the last done has.  Not from a channel's thread,
 * nor with a lock held that a done takes. */
void rpc_channel_close(struct rpc_channel *ch);
/* Whether the last attempt to connect failed, and why, with the address; false also before there
 * was one. */
bool rpc_channel_is_away(struct rpc_channel *ch, struct mu_err *why);

enum rpc_flag {
	RPC_WAIT_FOR_READY =
	    1,                 /* wait for the connection, up to the deadline, instead of failing */
	RPC_WAIT_A_LITTLE = 2, /* wait for it a few seconds, then fail with UNAVAILABLE */
};

/* err NULL on success; reply is borrowed.  From one of the channels' own threads: do not block. */
typedef void (*rpc_done)(void *arg, const struct mu_err *err, struct rpc_bytes *reply);
/* timeout_ms <= 0: none.  Returns the call's number for rpc_out_cancel.  done is called exactly
 * once, perhaps before rpc_start returns, but never by it.  0 when the call could not be started,
 * with err filled and done never called. */
uint64_t rpc_start(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		   long timeout_ms, unsigned flags, rpc_done done, void *arg, struct mu_err *err);
void rpc_out_cancel(struct rpc_channel *ch, uint64_t call); /* nothing when it has ended */
/* Blocks the calling thread, which must not be one of the channel's. */
int rpc_call(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
	     long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err);
/* tell runs on the calling thread at next_ms, and then at each time that it returned last. */
struct rpc_meanwhile {
	int64_t (*tell)(void *arg);
	void *arg;
	int64_t next_ms;
};
/* As rpc_call. */
int rpc_call_telling(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		     long timeout_ms, unsigned flags, const struct rpc_meanwhile *meanwhile,
		     struct mu_buf *reply, struct mu_err *err);

#endif
