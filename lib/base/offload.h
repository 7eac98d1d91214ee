/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for blocking work such as creating a session or registering a graph, so that RPC threads
 * never block.  Threads start on demand, up to a limit, and run until mu_offload_free. */
#ifndef MU_LIB_BASE_OFFLOAD_H
#define MU_LIB_BASE_OFFLOAD_H

struct mu_offload;
struct mu_offload *mu_offload_new(unsigned max_threads);
/* Runs the queued functions, then joins the threads. */
void mu_offload_free(struct mu_offload *o);
void mu_offload_run(struct mu_offload *o, void (*fn)(void *arg), void *arg);

#endif
