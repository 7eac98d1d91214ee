/* SPDX-License-Identifier: Apache-2.0 */
/* A received message: a gRPC byte buffer of many slices, or bytes of this process. */
#ifndef MU_TASK_RPC_BYTES_H
#define MU_TASK_RPC_BYTES_H

#include "task/rpc/channel.h"

struct grpc_byte_buffer;

struct rpc_bytes {
	struct grpc_byte_buffer *buffer; /* owned; NULL: own has the message */
	char *own;                       /* the message in one piece; owned */
	size_t own_len;
	struct mu_tensor lent; /* set: own has room for its bytes at lent_at, they are not there */
	size_t lent_at, lent_len;
};

void bytes_own(struct rpc_bytes *b, char *data, size_t len);                 /* takes data */
void bytes_receive(struct rpc_bytes *b, struct grpc_byte_buffer *buffer);    /* takes buffer */
/* m as it is received: one slice for each part. */
void bytes_from_message(struct rpc_bytes *b, const struct rpc_message *m);
/* A message of this process: its largest payload is lent, the rest copied. */
void bytes_borrow(struct rpc_bytes *b, const struct rpc_message *m);
void bytes_give_back(struct rpc_bytes *b); /* the lent payload; it is not read any more */
void bytes_fini(struct rpc_bytes *b);
size_t bytes_len(const struct rpc_bytes *b);
/* Bytes [offset, offset + len), as far as the message has them. */
void bytes_copy(const struct rpc_bytes *b, size_t offset, size_t len, void *to);
void message_flatten(const struct rpc_message *m, struct mu_buf *to); /* appends */

#endif
