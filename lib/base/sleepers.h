/* SPDX-License-Identifier: Apache-2.0 */
/* A LIFO list of sleeping threads.  mu_wake_one wakes the thread that went to sleep last, because
 * its caches are the warmest.
 *
 * Each thread has its own condition variable.  In glibc before 2.41, signalling a condition with
 * several waiters may in rare cases wake none (glibc bug 25847). */
#ifndef MU_LIB_BASE_SLEEPERS_H
#define MU_LIB_BASE_SLEEPERS_H

#include <pthread.h>
#include <stdbool.h>

struct mu_sleeper {
	struct mu_sleeper *next;
	pthread_cond_t wake;
	bool asleep;
};
struct mu_sleepers {
	struct mu_sleeper *last; /* guarded by the caller's lock, which all functions require */
};

/* Sleeps until woken.  The caller holds the lock, before and after. */
static inline void mu_sleep(struct mu_sleepers *s, pthread_mutex_t *lock)
{
	struct mu_sleeper self = {
	    .next = s->last, .wake = PTHREAD_COND_INITIALIZER, .asleep = true};

	s->last = &self;
	while (self.asleep)
		pthread_cond_wait(&self.wake, lock);
	pthread_cond_destroy(&self.wake);
}

/* Returns false if no thread sleeps. */
static inline bool mu_wake_one(struct mu_sleepers *s)
{
	struct mu_sleeper *sleeper = s->last;

	if (!sleeper)
		return false;
	s->last = sleeper->next;
	sleeper->asleep = false;
	/* The sleeper is still valid: its thread needs the lock to return. */
	pthread_cond_signal(&sleeper->wake);
	return true;
}

static inline void mu_wake_all(struct mu_sleepers *s)
{
	while (mu_wake_one(s))
		;
}

#endif
