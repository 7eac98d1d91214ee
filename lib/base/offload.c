/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/base/offload.h"

#include <pthread.h>
#include <stdbool.h>

#include "lib/base/mem.h"
#include "lib/base/sleepers.h"
#include "lib/base/thread.h"

struct work_item {
	struct work_item *next;
	void (*fn)(void *arg);
	void *arg;
};
struct mu_offload {
	pthread_mutex_t lock;
	struct mu_sleepers sleepers;
	struct work_item *first, **last;
	unsigned queued, idle, n_threads, max_threads;
	bool stopping;
	pthread_t *threads;
};

struct mu_offload *mu_offload_new(unsigned max_threads)
{
	struct mu_offload *o = MU_NEW(struct mu_offload);

	pthread_mutex_init(&o->lock, NULL);
	o->last = &o->first;
	o->max_threads = max_threads;
	o->threads = MU_NEW_ARRAY(pthread_t, max_threads);
	return o;
}

static void *offload_thread(void *arg)
{
	struct mu_offload *o = arg;
	struct work_item *j;

	pthread_mutex_lock(&o->lock);
	for (;;) {
		o->idle++;
		while (!o->first && !o->stopping)
			mu_sleep(&o->sleepers, &o->lock);
		o->idle--;
		j = o->first;
		if (!j)
			break;
		o->first = j->next;
		if (!o->first)
			o->last = &o->first;
		o->queued--;
		pthread_mutex_unlock(&o->lock);
		j->fn(j->arg);
		free(j);
		pthread_mutex_lock(&o->lock);
	}
	pthread_mutex_unlock(&o->lock);
	return NULL;
}

void mu_offload_run(struct mu_offload *o, void (*fn)(void *arg), void *arg)
{
	struct work_item *j = MU_NEW(struct work_item);

	*j = (struct work_item){.fn = fn, .arg = arg};
	pthread_mutex_lock(&o->lock);
	*o->last = j;
	o->last = &j->next;
	o->queued++;
	if (o->queued > o->idle && o->n_threads < o->max_threads &&
	    mu_thread_start(&o->threads[o->n_threads], offload_thread, o))
		o->n_threads++;
	mu_wake_one(&o->sleepers);
	pthread_mutex_unlock(&o->lock);
}

void mu_offload_free(struct mu_offload *o)
{
	if (!o)
		return;
	pthread_mutex_lock(&o->lock);
	o->stopping = true;
	mu_wake_all(&o->sleepers);
	pthread_mutex_unlock(&o->lock);
	for (unsigned i = 0; i < o->n_threads; i++)
		pthread_join(o->threads[i], NULL);
	pthread_mutex_destroy(&o->lock);
	free(o->threads);
	free(o);
}
