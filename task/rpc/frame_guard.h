/* SPDX-License-Identifier: Apache-2.0 */
/* Limits the header block that a client of this process's servers may send. */
#ifndef MU_TASK_RPC_FRAME_GUARD_H
#define MU_TASK_RPC_FRAME_GUARD_H

/* Watches a connection that gRPC has just accepted. */
void frame_guard_watch(int fd);

#endif
