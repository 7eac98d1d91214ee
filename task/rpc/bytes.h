/* SPDX-License-Identifier: Apache-2.0 */
/* Messages as gRPC byte buffers. */
#ifndef MU_TASK_RPC_BYTES_H
#define MU_TASK_RPC_BYTES_H

#include <grpc/slice.h>

#include "task/rpc/channel.h"

struct grpc_byte_buffer;

struct rpc_bytes {
	struct grpc_byte_buffer *buffer; /* owned; NULL: no message */
	grpc_slice flat;                 /* the message in one piece, after rpc_bytes_flat; owned */
};

void bytes_receive(struct rpc_bytes *b, struct grpc_byte_buffer *buffer); /* takes buffer */
void bytes_fini(struct rpc_bytes *b);
/* Copies the small parts of m and borrows its large payloads.  The caller destroys the buffer. */
struct grpc_byte_buffer *message_to_buffer(const struct rpc_message *m);
void message_flatten(const struct rpc_message *m, struct mu_buf *to); /* appends */

#endif
