/* SPDX-License-Identifier: Apache-2.0 */
/* Client side of gRPC: a channel to one address, asynchronous and blocking unary calls.
 * task/rpc/ is the only folder that includes gRPC's headers. */
#ifndef MU_TASK_RPC_CHANNEL_H
#define MU_TASK_RPC_CHANNEL_H

#include "lib/base/buf.h"
#include "lib/tensor/tensor.h"

struct rpc_channel;

/* Received bytes in the slices they came in. */
struct rpc_bytes;
size_t rpc_bytes_len(const struct rpc_bytes *b);
/* The whole message in one piece: borrowed when it came in one slice, else flattened once (and
 * kept). */
struct mu_span rpc_bytes_flat(struct rpc_bytes *b);
/* Copies len bytes at offset without flattening; the caller has checked the range. */
void rpc_bytes_copy(const struct rpc_bytes *b, size_t offset, size_t len, void *to);

/* A message to send: a head that is copied, then optionally a tensor's payload that is only
 * borrowed (one reference is held until gRPC is done with it), then a tail that is copied, then
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
/* Calls in flight end with CANCELLED; returns when the last done has.  Not from a channel's thread,
 * nor with a lock held that a done takes. */
void rpc_channel_close(struct rpc_channel *ch);

enum rpc_flag {
	RPC_WAIT_FOR_READY = 1, /* wait for the connection, up to the deadline, instead of failing */
	RPC_WAIT_A_LITTLE = 2,  /* wait for it a few seconds, then fail with UNAVAILABLE */
};

/* err NULL on success; reply is borrowed.  From one of the channels' own threads: do not block. */
typedef void (*rpc_done)(void *arg, const struct mu_err *err, struct rpc_bytes *reply);
/* timeout_ms <= 0: none.  Returns the call's number for rpc_out_cancel.  done is called exactly
 * once, perhaps before rpc_start returns.  0 when the call could not be started, with err filled
 * and done never called. */
uint64_t rpc_start(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		   long timeout_ms, unsigned flags, rpc_done done, void *arg, struct mu_err *err);
void rpc_out_cancel(struct rpc_channel *ch, uint64_t call); /* nothing when it has ended */
/* Blocks the calling thread, which must not be one of the channel's. */
int rpc_call(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
	     long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err);

#endif
