/* SPDX-License-Identifier: Apache-2.0 */
/* An item is in the map while it is ready, delayed, held by a worker, or has failures to count.  It
 * is delayed at most once, to the earliest time. */
#include "operator/controller/workqueue.h"

#include <math.h>
#include <time.h>

#include "lib/base/backoff.h"
#include "lib/base/cond.h"

static const double BACKOFF_FIRST_S = 0.005, BACKOFF_MAX_S = 60;

static void remove_delayed(struct workqueue *q, struct work_item *item)
{
	if (item->due > 0)
		TAILQ_REMOVE(&q->delayed, item, at);
	item->due = 0;
}

static void insert_delayed(struct workqueue *q, struct work_item *item, double due)
{
	struct work_item *next;

	if (item->due > 0 && item->due <= due)
		return;
	remove_delayed(q, item);
	item->due = due;
	/* most items are delayed by the same time, and come last */
	next = TAILQ_LAST(&q->delayed, work_items);
	next = next && next->due <= due ? NULL : TAILQ_FIRST(&q->delayed);
	while (next && next->due <= due)
		next = TAILQ_NEXT(next, at);
	if (next)
		TAILQ_INSERT_BEFORE(next, item, at);
	else
		TAILQ_INSERT_TAIL(&q->delayed, item, at);
}

/* When the first delayed item is due; INFINITY: there is none. */
static double first_due(const struct workqueue *q)
{
	return TAILQ_EMPTY(&q->delayed) ? INFINITY : TAILQ_FIRST(&q->delayed)->due;
}

void workqueue_init(struct workqueue *q, double (*now)(void))
{
	memset(q, 0, sizeof(*q));
	pthread_mutex_init(&q->lock, NULL);
	pthread_cond_init(&q->changed, NULL);
	mu_map_init(&q->items);
	TAILQ_INIT(&q->ready);
	TAILQ_INIT(&q->delayed);
	q->waited.bounds = mu_histogram_call_bounds;
	q->now = now;
}

void workqueue_fini(struct workqueue *q)
{
	mu_map_each (&q->items, s) {
		struct work_item *item = s->value;
		free(item->key);
		free(item);
	}
	mu_map_fini(&q->items);
	pthread_cond_destroy(&q->changed);
	pthread_mutex_destroy(&q->lock);
}

static struct work_item *item_of(struct workqueue *q, const char *key)
{
	struct work_item *item = mu_map_get(&q->items, key);

	if (!item) {
		item = MU_NEW(struct work_item);
		item->key = mu_xstrdup(key);
		mu_map_put(&q->items, key, item);
	}
	return item;
}

/* Appends the item to the ready list, unless it is in it or a worker holds it. */
static void make_ready(struct workqueue *q, struct work_item *item)
{
	remove_delayed(q, item);
	if (item->held)
		item->dirty = true;
	if (item->held || item->ready)
		return;
	item->ready = true;
	item->ready_since = q->now();
	TAILQ_INSERT_TAIL(&q->ready, item, at);
	q->depth++;
	pthread_cond_signal(&q->changed);
}

void workqueue_add(struct workqueue *q, const char *key)
{
	pthread_mutex_lock(&q->lock);
	q->adds++;
	make_ready(q, item_of(q, key));
	pthread_mutex_unlock(&q->lock);
}

/* The lock is held. */
static void delay(struct workqueue *q, struct work_item *item, double seconds)
{
	if (item->ready)
		return;
	insert_delayed(q, item, q->now() + (seconds > 0 ? seconds : 0.001));
	if (item->due == first_due(q)) /* a worker that waits for the clock waits for less now */
		pthread_cond_signal(&q->changed);
}

void workqueue_add_after(struct workqueue *q, const char *key, double seconds)
{
	pthread_mutex_lock(&q->lock);
	delay(q, item_of(q, key), seconds);
	pthread_mutex_unlock(&q->lock);
}

void workqueue_add_rate_limited(struct workqueue *q, const char *key)
{
	struct work_item *item;

	pthread_mutex_lock(&q->lock);
	item = item_of(q, key);
	delay(q, item, mu_backoff(item->failures, BACKOFF_FIRST_S, BACKOFF_MAX_S));
	item->failures++;
	q->retries++;
	pthread_mutex_unlock(&q->lock);
}

void workqueue_forget(struct workqueue *q, const char *key)
{
	struct work_item *item;

	pthread_mutex_lock(&q->lock);
	if ((item = mu_map_get(&q->items, key)))
		item->failures = 0;
	pthread_mutex_unlock(&q->lock);
}

/* Takes the first ready item, after moving the due ones to the ready list. */
static char *take(struct workqueue *q)
{
	struct work_item *item;
	double now = q->now();

	while (first_due(q) <= now)
		make_ready(q, TAILQ_FIRST(&q->delayed));
	item = TAILQ_FIRST(&q->ready);
	if (!item)
		return NULL;
	TAILQ_REMOVE(&q->ready, item, at);
	q->depth--;
	item->ready = false;
	item->held = true;
	mu_histogram_add(&q->waited, now - item->ready_since);
	return mu_xstrdup(item->key);
}

char *workqueue_get(struct workqueue *q)
{
	char *key = NULL;

	pthread_mutex_lock(&q->lock);
	while (!q->stopped && !(key = take(q)))
		mu_cond_wait_until(&q->changed, &q->lock,
				   TAILQ_EMPTY(&q->delayed) ? INT64_MAX
							    : (int64_t)ceil(first_due(q) * 1000));
	pthread_mutex_unlock(&q->lock);
	return key;
}

void workqueue_done(struct workqueue *q, const char *key)
{
	struct work_item *item;

	pthread_mutex_lock(&q->lock);
	item = mu_map_get(&q->items, key);
	if (item) {
		item->held = false;
		if (item->dirty) {
			item->dirty = false;
			make_ready(q, item);
		} else if (!item->ready && item->due <= 0 && item->failures == 0) {
			mu_map_del(&q->items, key);
			free(item->key);
			free(item);
		}
	}
	pthread_mutex_unlock(&q->lock);
}

void workqueue_stop(struct workqueue *q)
{
	pthread_mutex_lock(&q->lock);
	q->stopped = true;
	pthread_cond_broadcast(&q->changed);
	pthread_mutex_unlock(&q->lock);
}

void workqueue_metrics(struct workqueue *q, struct mu_buf *out)
{
	pthread_mutex_lock(&q->lock);
	mu_buf_printf(
	    out,
	    "# TYPE workqueue_depth gauge\nworkqueue_depth{name=\"jobs\"} %u\n"
	    "# TYPE workqueue_adds_total counter\nworkqueue_adds_total{name=\"jobs\"} %u\n"
	    "# TYPE workqueue_retries_total counter\n"
	    "workqueue_retries_total{name=\"jobs\"} %u\n",
	    q->depth, q->adds, q->retries);
	pthread_mutex_unlock(&q->lock);
	mu_histogram_write_type("workqueue_queue_duration_seconds", out);
	mu_histogram_write(&q->waited, "workqueue_queue_duration_seconds", "name=\"jobs\"", out);
}
