/* SPDX-License-Identifier: Apache-2.0 */
/* Access to a work queue without waiting, for tests whose thread alone takes keys. */
#ifndef MU_TESTS_WORKQUEUE_NEXT_H
#define MU_TESTS_WORKQUEUE_NEXT_H

#include <math.h>

#include "operator/controller/workqueue.h"

/* Returns when the next key is ready, by the clock of the queue: 0 now, INFINITY never. */
static inline double workqueue_next(struct workqueue *q)
{
	double next;

	pthread_mutex_lock(&q->lock);
	next = !TAILQ_EMPTY(&q->ready)    ? 0
	       : TAILQ_EMPTY(&q->delayed) ? INFINITY
					  : TAILQ_FIRST(&q->delayed)->due;
	pthread_mutex_unlock(&q->lock);
	return next;
}

/* Like workqueue_get(), but returns NULL when no key is ready. */
static inline char *workqueue_try(struct workqueue *q)
{
	const struct work_item *item;
	bool any;

	pthread_mutex_lock(&q->lock);
	any = !TAILQ_EMPTY(&q->ready);
	TAILQ_FOREACH(item, &q->delayed, at)
	{
		any = any || (item->due <= q->now() && !item->held);
	}
	pthread_mutex_unlock(&q->lock);
	return any ? workqueue_get(q) : NULL;
}

#endif
