/* SPDX-License-Identifier: Apache-2.0 */
/* A list sorted by time is enough: a task has few timers, one per step with a deadline. */
#include "lib/base/timer.h"

#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "lib/base/mem.h"
#include "lib/base/thread.h"

/* Limits delays, which may come from a client, so that the sum with the time does not overflow. */
#define MAX_DELAY_MS (1000L * 3600 * 24 * 365)

struct entry {
	struct entry *next;
	uint64_t id;
	int64_t due_ms;
	void (*fn)(void *arg);
	void *arg;
};
struct mu_timer {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	pthread_t thread;
	bool running, stopping;
	bool frees_itself; /* mu_timer_free ran on the timer thread, which destroys the timer when
			      it ends */
	int64_t wake_ms;   /* wake-up time of the thread, no later than first->due_ms */
	struct entry *first;
	uint64_t last_id;
};

struct mu_timer *mu_timer_new(void)
{
	struct mu_timer *t = MU_NEW(struct mu_timer);

	t->wake_ms = INT64_MAX;
	pthread_mutex_init(&t->lock, NULL);
	pthread_cond_init(&t->changed, NULL);
	return t;
}

static void destroy(struct mu_timer *t)
{
	for (struct entry *e = t->first, *next; e; e = next) {
		next = e->next;
		free(e);
	}
	pthread_mutex_destroy(&t->lock);
	pthread_cond_destroy(&t->changed);
	free(t);
}

static void *timer_thread(void *arg)
{
	struct mu_timer *t = arg;

	pthread_mutex_lock(&t->lock);
	while (!t->stopping) {
		int64_t now = mu_clock_ms();
		struct entry *e = t->first;

		if (e && e->due_ms <= now) {
			t->first = e->next;
			pthread_mutex_unlock(&t->lock);
			e->fn(e->arg);
			free(e);
			pthread_mutex_lock(&t->lock);
			continue;
		}
		if (t->wake_ms <= now)
			t->wake_ms = e ? e->due_ms : INT64_MAX;
		mu_cond_wait_until(&t->changed, &t->lock, t->wake_ms);
	}
	bool frees_itself = t->frees_itself;
	pthread_mutex_unlock(&t->lock);
	if (frees_itself)
		destroy(t);
	return NULL;
}

uint64_t mu_timer_add(struct mu_timer *t, long ms, void (*fn)(void *arg), void *arg)
{
	struct entry *e = MU_NEW(struct entry), **p;
	uint64_t id;

	*e = (struct entry){.due_ms = mu_clock_ms() + (ms < MAX_DELAY_MS ? ms : MAX_DELAY_MS),
			    .fn = fn,
			    .arg = arg};
	pthread_mutex_lock(&t->lock);
	if (!t->running)
		t->running = mu_thread_start(&t->thread, timer_thread, t);
	id = e->id = ++t->last_id;
	for (p = &t->first; *p && (*p)->due_ms <= e->due_ms; p = &(*p)->next)
		;
	e->next = *p;
	*p = e;
	if (e->due_ms < t->wake_ms) { /* otherwise the thread wakes up early enough */
		t->wake_ms = e->due_ms;
		pthread_cond_signal(&t->changed);
	}
	pthread_mutex_unlock(&t->lock);
	return id;
}

bool mu_timer_cancel(struct mu_timer *t, uint64_t id)
{
	struct entry *e;

	pthread_mutex_lock(&t->lock);
	for (struct entry **p = &t->first; (e = *p); p = &e->next)
		if (e->id == id) {
			*p = e->next;
			break;
		}
	pthread_mutex_unlock(&t->lock);
	free(e);
	return e != NULL;
}

void mu_timer_free(struct mu_timer *t)
{
	if (!t)
		return;
	pthread_mutex_lock(&t->lock);
	t->stopping = true;
	t->frees_itself = t->running && pthread_equal(t->thread, pthread_self());
	pthread_cond_signal(&t->changed);
	pthread_mutex_unlock(&t->lock);
	if (t->frees_itself) { /* the caller is the timer thread, so the timer still exists */
		pthread_detach(t->thread);
		return;
	}
	if (t->running)
		pthread_join(t->thread, NULL);
	destroy(t);
}
