/* SPDX-License-Identifier: Apache-2.0 */
/* The compute threads of a task: a queue of small intrusive jobs, and a parallel loop.
 *
 * A job must not wait for another job of the pool.  But it may call the parallel loop: the caller
 * works too, and waits only for pieces that other threads have started.
 */
#ifndef MU_TASK_RUNTIME_THREAD_POOL_H
#define MU_TASK_RUNTIME_THREAD_POOL_H

#include <stdint.h>

#include "lib/base/err.h"

struct pool_job {
	struct pool_job *next;
	void (*run)(struct pool_job *job);
};

struct thread_pool;
/* threads 0: one for each CPU */
int thread_pool_new(unsigned threads, struct thread_pool **out, struct mu_err *err);
void thread_pool_free(struct thread_pool *p); /* runs the queued jobs, then joins the threads */
unsigned thread_pool_size(const struct thread_pool *p);
void thread_pool_add(struct thread_pool *p, struct pool_job *job); /* borrowed until it runs */
/* Calls body for parts of [0, n), of at least `grain` elements, on the pool and the caller's
 * thread; returns when all are done.  p NULL: calls it here, once. */
void thread_pool_parallel(struct thread_pool *p, int64_t n, int64_t grain,
			  void (*body)(void *arg, int64_t from, int64_t to), void *arg);

#endif
