/* SPDX-License-Identifier: Apache-2.0 */
/* Threads for what may block (a session's creation, a graph's registration), so that the threads
 * that serve calls never do.  They come on demand, up to a limit, and stay. */
#ifndef MU_BASE_OFFLOAD_H
#define MU_BASE_OFFLOAD_H

struct mu_offload;
struct mu_offload *mu_offload_new(unsigned max_threads);
/* Runs what is queued, then joins. */
void mu_offload_free(struct mu_offload *o);
void mu_offload_run(struct mu_offload *o, void (*fn)(void *arg), void *arg);

#endif
