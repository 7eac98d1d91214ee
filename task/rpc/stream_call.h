/* SPDX-License-Identifier: Apache-2.0 */
/* A bidirectional streaming call to a server, with blocking functions.  One thread at a time may
 * use a stream; rpc_stream_cancel may run concurrently.  A stream is unusable after an error. */
#ifndef MU_TASK_RPC_STREAM_CALL_H
#define MU_TASK_RPC_STREAM_CALL_H

#include "lib/base/buf.h"

struct rpc_stream;
/* Connects to "host:port" without TLS and starts the call.  Waits at most timeout_ms. */
int rpc_stream_open(const char *target, const char *method, long timeout_ms,
		    struct rpc_stream **out, struct mu_err *err);
/* Returns when the connection has accepted the message. */
int rpc_stream_send(struct rpc_stream *s, struct mu_span message, long timeout_ms,
		    struct mu_err *err);
int rpc_stream_send_end(struct rpc_stream *s, long timeout_ms, struct mu_err *err);
/* Receives a message of at most 4 MiB.  OUT_OF_RANGE: the server has ended the stream. */
int rpc_stream_receive(struct rpc_stream *s, long timeout_ms, struct mu_buf *message,
		       struct mu_err *err);
void rpc_stream_cancel(struct rpc_stream *s); /* from any thread: makes waiting functions fail */
void rpc_stream_free(struct rpc_stream *s);   /* NULL is allowed; cancels the call */

#endif
