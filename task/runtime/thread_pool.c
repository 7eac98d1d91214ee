/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/thread_pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "lib/base/cpus.h"
#include "lib/base/denormals.h"
#include "lib/base/mem.h"
#include "lib/base/sleepers.h"

struct thread_pool {
	pthread_mutex_t lock;
	struct mu_sleepers idle;
	struct pool_job *first, **last;
	unsigned size;
	bool stopping;
	pthread_t threads[];
};

static void *pool_thread(void *arg)
{
	struct thread_pool *p = arg;

	mu_flush_denormals();
	pthread_mutex_lock(&p->lock);
	for (;;) {
		struct pool_job *job = p->first;
		if (!job) {
			if (p->stopping)
				break;
			mu_sleep(&p->idle, &p->lock);
			continue;
		}
		p->first = job->next;
		if (!p->first)
			p->last = &p->first;
		pthread_mutex_unlock(&p->lock);
		job->run(job);
		pthread_mutex_lock(&p->lock);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

int thread_pool_new(unsigned threads, struct thread_pool **out, struct mu_err *err)
{
	unsigned n = threads ? threads : mu_cpus();
	struct thread_pool *p = mu_xcalloc(1, sizeof *p + n * sizeof p->threads[0]);

	pthread_mutex_init(&p->lock, NULL);
	p->last = &p->first;
	for (; p->size < n; p->size++) {
		int rc = pthread_create(&p->threads[p->size], NULL, pool_thread, p);
		if (rc) {
			thread_pool_free(p);
			return mu_fail_errno(err, rc, "cannot start a compute thread");
		}
		pthread_setname_np(p->threads[p->size], "compute");
	}
	*out = p;
	return 0;
}

void thread_pool_free(struct thread_pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->stopping = true;
	mu_wake_all(&p->idle);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < p->size; i++)
		pthread_join(p->threads[i], NULL);
	pthread_mutex_destroy(&p->lock);
	free(p);
}

unsigned thread_pool_size(const struct thread_pool *p)
{
	return p->size;
}

void thread_pool_add(struct thread_pool *p, struct pool_job *job)
{
	job->next = NULL;
	pthread_mutex_lock(&p->lock);
	*p->last = job;
	p->last = &job->next;
	mu_wake_one(&p->idle);
	pthread_mutex_unlock(&p->lock);
}

/* ---- parallel loop ---- */

/* Shared by the caller and its helpers.  A helper that starts late finds no piece left and only
 * releases its reference, so the caller does not wait for it. */
struct loop {
	void (*body)(void *arg, int64_t from, int64_t to);
	void *arg;
	int64_t n, piece, pieces;
	_Atomic int64_t next, finished;
	_Atomic unsigned refs;
	pthread_mutex_t lock;
	pthread_cond_t all_finished;
	struct helper {
		struct pool_job job;
		struct loop *loop;
	} helpers[];
};

static void loop_unref(struct loop *l)
{
	if (atomic_fetch_sub(&l->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&l->lock);
	pthread_cond_destroy(&l->all_finished);
	free(l);
}

static void loop_work(struct loop *l)
{
	int64_t i;

	while ((i = atomic_fetch_add(&l->next, 1)) < l->pieces) {
		int64_t from = i * l->piece, to = from + l->piece < l->n ? from + l->piece : l->n;
		l->body(l->arg, from, to);
		if (atomic_fetch_add(&l->finished, 1) + 1 == l->pieces) {
			pthread_mutex_lock(&l->lock);
			pthread_cond_signal(&l->all_finished);
			pthread_mutex_unlock(&l->lock);
		}
	}
}

static void helper_run(struct pool_job *job)
{
	struct loop *l = MU_CONTAINER(job, struct helper, job)->loop;

	loop_work(l);
	loop_unref(l);
}

/* Waits for the last pieces of the helpers. */
static void loop_wait(struct loop *l)
{
	pthread_mutex_lock(&l->lock);
	while (atomic_load(&l->finished) != l->pieces)
		pthread_cond_wait(&l->all_finished, &l->lock);
	pthread_mutex_unlock(&l->lock);
}

void thread_pool_parallel(struct thread_pool *p, int64_t n, int64_t grain,
			  void (*body)(void *arg, int64_t from, int64_t to), void *arg)
{
	if (grain < 1)
		grain = 1;
	if (!p || p->size < 2 || n < 2 * grain) {
		if (n > 0)
			body(arg, 0, n);
		return;
	}
	/* A few pieces per thread, to balance the load. */
	int64_t max_pieces = (int64_t)p->size * 4,
		pieces = n / grain < max_pieces ? n / grain : max_pieces;
	unsigned helpers = pieces - 1 < p->size ? (unsigned)(pieces - 1) : p->size;
	struct loop *l = mu_xcalloc(1, sizeof *l + helpers * sizeof l->helpers[0]);
	l->body = body;
	l->arg = arg;
	l->n = n;
	l->piece = (n + pieces - 1) / pieces;
	l->pieces = (n + l->piece - 1) / l->piece;
	atomic_init(&l->refs, helpers + 1);
	pthread_mutex_init(&l->lock, NULL);
	pthread_cond_init(&l->all_finished, NULL);
	for (unsigned i = 0; i < helpers; i++) {
		l->helpers[i].loop = l;
		l->helpers[i].job.run = helper_run;
		thread_pool_add(p, &l->helpers[i].job);
	}
	loop_work(l);
	loop_wait(l);
	loop_unref(l);
}
