/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that sleep until one of them is wanted: the one that went to sleep last, whose caches are
 * the warmest.
 *
 * Not one condition for all of them: in glibc before 2.41 a signal to several waiters may, rarely,
 * wake none (its bug 25847), and what it was for stands still.  Here each waits on its own. */
#ifndef MU_BASE_SLEEPERS_H
#define MU_BASE_SLEEPERS_H

#include <pthread.h>
#include <stdbool.h>

struct mu_sleeper {
	struct mu_sleeper *next;
	pthread_cond_t wake;
	bool asleep;
};
struct mu_sleepers {
	struct mu_sleeper *last; /* guarded by the lock that each call is given, or holds */
};

/* Until it is woken.  The lock is held before and after. */
static inline void mu_sleep(struct mu_sleepers *s, pthread_mutex_t *lock)
{
	struct mu_sleeper self = {
	    .next = s->last, .wake = PTHREAD_COND_INITIALIZER, .asleep = true};

	s->last = &self;
	while (self.asleep)
		pthread_cond_wait(&self.wake, lock);
	pthread_cond_destroy(&self.wake);
}

/* False: nobody sleeps. */
static inline bool mu_wake_one(struct mu_sleepers *s)
{
	struct mu_sleeper *one = s->last;

	if (!one)
		return false;
	s->last = one->next;
	one->asleep = false;
	pthread_cond_signal(&one->wake); /* it cannot be gone: it needs the lock first */
	return true;
}

static inline void mu_wake_all(struct mu_sleepers *s)
{
	while (mu_wake_one(s))
		;
}

#endif
