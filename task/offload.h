/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for what may block (a session's creation, a graph's registration), so that the threads
 * that serve calls never do.  They come on demand, up to a limit, and stay. */
#ifndef MU_TASK_OFFLOAD_H
#define MU_TASK_OFFLOAD_H

struct offload;
struct offload *offload_new(unsigned max_threads);
/* Runs what is queued, then joins. */
void offload_free(struct offload *o);
void offload_run(struct offload *o, void (*fn)(void *arg), void *arg);

#endif
