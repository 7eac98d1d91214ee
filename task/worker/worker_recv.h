/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_WORKER_WORKER_RECV_H
#define MU_TASK_WORKER_WORKER_RECV_H

#include "task/worker/worker.h"

/* Replies to a RecvTensor call when its tensor has been sent. */
void worker_recv(struct worker *w, struct rpc_call *call);

/* Replies when all members of the group have joined. */
void worker_join_collective(struct worker *w, struct rpc_call *call);

#endif
