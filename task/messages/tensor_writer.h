/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a message with tensors without copying large payloads.  All other bytes are in one buffer,
 * with a list of the offsets at which payloads are inserted. */
#ifndef MU_TASK_MESSAGES_TENSOR_WRITER_H
#define MU_TASK_MESSAGES_TENSOR_WRITER_H

#include "task/rpc/channel.h"

struct tensor_insertion {
	size_t at;
	const struct mu_tensor *payload;
	size_t len;
};
struct tensor_writer {
	struct mu_buf buf;
	struct tensor_insertion *insertions;
	unsigned n_insertions;
	struct rpc_message *messages;
};

void tensor_writer_fini(struct tensor_writer *w);
/* Appends field `number` with a TensorProto.  Borrows t until the message is sent. */
void tensor_writer_put(struct tensor_writer *w, uint32_t number, const struct mu_tensor *t);
/* Appends field `number` with a NamedTensorProto {name=1, tensor=2}. */
void tensor_writer_put_named(struct tensor_writer *w, uint32_t number, const char *name,
			     const struct mu_tensor *t);
/* Returns the whole message; borrows w. */
const struct rpc_message *tensor_writer_message(struct tensor_writer *w);

#endif
