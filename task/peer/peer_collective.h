/* SPDX-License-Identifier: Apache-2.0 */
/* Collective ops between tasks: the choice of the leader and the message to it.
 *
 * The leader is the chief, else worker 0, else the first task of the cluster.  Every task makes the
 * same choice, which is also that of MultiWorkerMirroredStrategy for collective_group_leader. */
#ifndef MU_TASK_PEER_PEER_COLLECTIVE_H
#define MU_TASK_PEER_PEER_COLLECTIVE_H

#include "task/peer/peer.h"
#include "task/runtime/collective.h"

/* The reply is a RecvTensorResponse. */
#define COLLECTIVE_PATH "/muster.CollectiveService/Join"

struct collective_hooks peers_collective_hooks(struct peers *ps); /* without `combine` */
/* The part borrows from bytes and the arena, but owns its tensor. */
int peer_collective_parse(struct collective_part *out, struct mu_span bytes, struct mu_arena *a,
			  struct mu_err *err);

#endif
