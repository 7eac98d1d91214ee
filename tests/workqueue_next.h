/* SPDX-License-Identifier: Apache-2.0 */
/* Work queues of tests with one thread that takes keys. */
#ifndef MU_TESTS_WORKQUEUE_NEXT_H
#define MU_TESTS_WORKQUEUE_NEXT_H

#include <math.h>

#include "operator/controller/workqueue.h"

/* When the next key is ready, by the queue's clock: 0 now, INFINITY never. */
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

/* As workqueue_get without waiting; NULL when none is ready. */
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
