/* SPDX-License-Identifier: Apache-2.0 */
/* A message as it was received, and one to send in one piece. */
#ifndef MU_TASK_RPC_BYTES_H
#define MU_TASK_RPC_BYTES_H

#include "task/rpc/channel.h"

struct rpc_bytes {
	char *own; /* owned; NULL is the empty message */
	size_t own_len;
	struct mu_tensor lent; /* set: own has room for its bytes at lent_at, they are not there */
	size_t lent_at, lent_len;
	struct mu_tensor tensor; /* what would follow went straight into it; owned */
};

void bytes_own(struct rpc_bytes *b, char *data, size_t len); /* takes data */
/* A message of this process: its largest payload is lent, the rest copied. */
void bytes_borrow(struct rpc_bytes *b, const struct rpc_message *m);
void bytes_give_back(struct rpc_bytes *b); /* what was lent; nobody reads it any more */
void bytes_fini(struct rpc_bytes *b);
void message_flatten(const struct rpc_message *m, struct mu_buf *to); /* appends */

#endif
