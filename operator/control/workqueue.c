/* SPDX-License-Identifier: Apache-2.0 */
/* An item lives in the map while it is ready, delayed, in a worker's hands or has failures to
 * remember.  The heap holds delayed items by due time; an item is in it at most once, with the
 * earliest time asked for.
 *
 * Of the workers that have nothing to do one watches the clock and the others sleep: else each
 * passing of a time would wake them all, for one item. */
#include "operator/control/workqueue.h"

#include <math.h>
#include <time.h>

static const double again_first = 0.005, again_max = 1000.0;

struct work_item {
	char *key;
	struct work_item *next;
	bool ready, held, dirty; /* dirty: added while held */
	double due;              /* in the heap when > 0 */
	unsigned at;             /* place in the heap */
	int failures;
};

static void place(struct workqueue *q, unsigned i, struct work_item *item)
{
	q->heap[i] = item;
	item->at = i;
}

static void sift_up(struct workqueue *q, unsigned i)
{
	struct work_item *item = q->heap[i];

	for (; i > 0 && q->heap[(i - 1) / 2]->due > item->due; i = (i - 1) / 2)
		place(q, i, q->heap[(i - 1) / 2]);
	place(q, i, item);
}

static void sift_down(struct workqueue *q, unsigned i)
{
	struct work_item *item = q->heap[i];

	for (unsigned child; (child = 2 * i + 1) < q->n_heap; i = child) {
		if (child + 1 < q->n_heap && q->heap[child + 1]->due < q->heap[child]->due)
			child++;
		if (q->heap[child]->due >= item->due)
			break;
		place(q, i, q->heap[child]);
	}
	place(q, i, item);
}

static void heap_put(struct workqueue *q, struct work_item *item, double due)
{
	if (item->due > 0) {
		if (due < item->due) {
			item->due = due;
			sift_up(q, item->at);
		}
		return;
	}
	if (q->n_heap == q->cap_heap) {
		q->cap_heap = q->cap_heap ? 2 * q->cap_heap : 64;
		q->heap = mu_xrealloc(q->heap, q->cap_heap * sizeof(struct work_item *));
	}
	item->due = due;
	place(q, q->n_heap, item);
	sift_up(q, q->n_heap++);
}

static void heap_remove(struct workqueue *q, struct work_item *item)
{
	struct work_item *last;

	if (item->due <= 0)
		return;
	last = q->heap[--q->n_heap];
	item->due = 0;
	if (last != item) {
		place(q, item->at, last);
		sift_up(q, last->at);
		sift_down(q, last->at);
	}
}

void workqueue_init(struct workqueue *q, double (*now)(void))
{
	pthread_condattr_t attr;

	memset(q, 0, sizeof(*q));
	pthread_mutex_init(&q->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&q->changed, &attr);
	pthread_cond_init(&q->sooner, &attr);
	pthread_condattr_destroy(&attr);
	mu_map_init(&q->items);
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
	free(q->heap);
	pthread_cond_destroy(&q->sooner);
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

/* Appends it to the ready ones; false when it was one, or is in somebody's hands. */
static bool make_ready(struct workqueue *q, struct work_item *item)
{
	heap_remove(q, item);
	if (item->held)
		item->dirty = true;
	if (item->held || item->ready)
		return false;
	item->ready = true;
	item->next = NULL;
	if (q->tail)
		q->tail->next = item;
	else
		q->head = item;
	q->tail = item;
	q->depth++;
	return true;
}

/* One of those who wait: who watches the clock only if nobody else does nothing. */
static void wake_one(struct workqueue *q)
{
	pthread_cond_signal(q->idle ? &q->changed : &q->sooner);
}

void workqueue_add(struct workqueue *q, const char *key)
{
	pthread_mutex_lock(&q->lock);
	q->adds++;
	if (make_ready(q, item_of(q, key)))
		wake_one(q);
	pthread_mutex_unlock(&q->lock);
}

static void delay(struct workqueue *q, struct work_item *item, double seconds)
{
	if (item->ready)
		return;
	heap_put(q, item, q->now() + (seconds > 0 ? seconds : 0.001));
	if (item->at == 0) /* sooner than what is waited for */
		pthread_cond_signal(q->timed ? &q->sooner : &q->changed);
}

void workqueue_after(struct workqueue *q, const char *key, double seconds)
{
	pthread_mutex_lock(&q->lock);
	delay(q, item_of(q, key), seconds);
	pthread_mutex_unlock(&q->lock);
}

void workqueue_again(struct workqueue *q, const char *key)
{
	struct work_item *item;
	double wait;

	pthread_mutex_lock(&q->lock);
	item = item_of(q, key);
	wait = ldexp(again_first, item->failures < 20 ? item->failures : 20);
	item->failures++;
	q->retries++;
	delay(q, item, wait > again_max ? again_max : wait);
	pthread_mutex_unlock(&q->lock);
}

void workqueue_forget(struct workqueue *q, const char *key)
{
	struct work_item *item;

	pthread_mutex_lock(&q->lock);
	item = mu_map_get(&q->items, key);
	if (item)
		item->failures = 0;
	pthread_mutex_unlock(&q->lock);
}

/* Takes the first ready item; moves what is due first. */
static char *take(struct workqueue *q)
{
	struct work_item *item;
	double now = q->now();

	while (q->n_heap && q->heap[0]->due <= now)
		make_ready(q, q->heap[0]);
	item = q->head;
	if (!item)
		return NULL;
	q->head = item->next;
	if (!q->head)
		q->tail = NULL;
	q->depth--;
	item->ready = false;
	item->held = true;
	return mu_xstrdup(item->key);
}

char *workqueue_try(struct workqueue *q)
{
	char *key;

	pthread_mutex_lock(&q->lock);
	key = q->stopped ? NULL : take(q);
	pthread_mutex_unlock(&q->lock);
	return key;
}

double workqueue_next(struct workqueue *q)
{
	double next;

	pthread_mutex_lock(&q->lock);
	next = q->head ? 0 : q->n_heap ? q->heap[0]->due : INFINITY;
	pthread_mutex_unlock(&q->lock);
	return next;
}

static void wait_timed(struct workqueue *q)
{
	double until = q->heap[0]->due;
	struct timespec t = {(time_t)until, (long)((until - (double)(time_t)until) * 1e9)};

	q->timed = true;
	pthread_cond_timedwait(&q->sooner, &q->lock, &t);
	q->timed = false;
}

static void wait_idle(struct workqueue *q)
{
	q->idle++;
	pthread_cond_wait(&q->changed, &q->lock);
	q->idle--;
}

char *workqueue_get(struct workqueue *q)
{
	char *key = NULL;

	pthread_mutex_lock(&q->lock);
	while (!q->stopped && !(key = take(q))) {
		if (q->n_heap && !q->timed)
			wait_timed(q);
		else
			wait_idle(q);
	}
	/* whoever was woken for this may have been one and the same who takes it; and somebody has
	 * to watch the clock instead of us */
	if (q->head || (q->n_heap && !q->timed))
		wake_one(q);
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
			wake_one(q);
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
	pthread_cond_broadcast(&q->sooner);
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
}
