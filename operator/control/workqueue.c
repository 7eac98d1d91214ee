/* SPDX-License-Identifier: Apache-2.0 */
/* An item lives in the map while it is ready, delayed, in a worker's hands or has failures to
 * remember.  The heap holds delayed items by due time; an item is in it at most once, with the
 * earliest time asked for.
 *
 * A wake-up costs more than most looks.  So nobody is woken while a worker is awake that comes back
 * by itself: it takes what is ready then, and sees to the clock.  Only when it is about to wait for
 * something else (workqueue_lend), or much has gathered, another is woken: the one that went to
 * sleep last, whose memory is still in the caches.  Of those who sleep one watches the clock.
 *
 * Each sleeps on a semaphore of its own, posted when the lock is free again: woken from a condition
 * it would at once sleep once more, for the lock. */
#include "operator/control/workqueue.h"

#include <math.h>
#include <semaphore.h>
#include <time.h>

enum { BACKLOG = 16 }; /* ready items that one worker at a time may take in turn */
static const double again_first = 0.005, again_max = 1000.0;

/* A worker that sleeps, on its stack. */
struct work_sleeper {
	struct work_sleeper *next;
	sem_t go;
	bool woken; /* go is posted, or about to be */
};

/* The queue that this thread works for, from its first item on. */
static __thread struct workqueue *mine;

struct work_item {
	char *key;
	struct work_item *next;
	bool ready, held, dirty; /* dirty: added while held */
	double due;              /* in the heap when > 0 */
	double since;            /* … it is ready */
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
	memset(q, 0, sizeof(*q));
	pthread_mutex_init(&q->lock, NULL);
	mu_map_init(&q->items);
	q->waited.bounds = mu_histogram_calls;
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

/* Appends it to the ready ones, unless it is one or is in somebody's hands. */
static void make_ready(struct workqueue *q, struct work_item *item)
{
	heap_remove(q, item);
	if (item->held)
		item->dirty = true;
	if (item->held || item->ready)
		return;
	item->ready = true;
	item->since = q->now();
	item->next = NULL;
	if (q->tail)
		q->tail->next = item;
	else
		q->head = item;
	q->tail = item;
	q->depth++;
}

/* ---- who sleeps, and who is woken ---- */

/* It has been taken from those who sleep, for `post`. */
static struct work_sleeper *woken(struct workqueue *q, struct work_sleeper *s)
{
	s->woken = true;
	q->awake++;
	return s;
}

/* The one who watches the clock, so that it looks at it anew. */
static struct work_sleeper *rouse_watcher(struct workqueue *q)
{
	struct work_sleeper *s = q->watcher;

	q->watcher = NULL;
	return woken(q, s);
}

/* One of those who sleep; NULL when all are awake. */
static struct work_sleeper *rouse(struct workqueue *q)
{
	struct work_sleeper *s = q->asleep;

	if (!s)
		return q->watcher ? rouse_watcher(q) : NULL;
	q->asleep = s->next;
	return woken(q, s);
}

/* Somebody, when there is something to see to and nobody who will come by. */
static struct work_sleeper *rouse_if_needed(struct workqueue *q)
{
	bool something = q->head || (q->n_heap && !q->watcher);

	return !q->stopped && ((something && !q->awake) || q->depth > BACKLOG) ? rouse(q) : NULL;
}

/* Without the lock. */
static void post(struct work_sleeper *s)
{
	if (s)
		sem_post(&s->go);
}

static void sleep_until_posted(struct work_sleeper *s)
{
	while (sem_wait(&s->go) != 0)
		;
}

/* Until posted, or until then. */
static bool posted_by(struct work_sleeper *s, double until)
{
	struct timespec t = {(time_t)until, (long)((until - (double)(time_t)until) * 1e9)};

	return sem_clockwait(&s->go, CLOCK_MONOTONIC, &t) == 0;
}

/* Sleeps until there may be something; the lock is held before and after. */
static void doze(struct workqueue *q)
{
	bool watches = q->n_heap && !q->watcher, posted = false;
	double until = watches ? q->heap[0]->due : 0;
	struct work_sleeper self = {.next = q->asleep};

	sem_init(&self.go, 0, 0);
	if (watches)
		q->watcher = &self;
	else
		q->asleep = &self;
	pthread_mutex_unlock(&q->lock);
	if (watches)
		posted = posted_by(&self, until);
	else
		sleep_until_posted(&self);
	pthread_mutex_lock(&q->lock);
	if (watches && !self.woken) {
		q->watcher = NULL;
		q->awake++;
	} else if (watches && !posted) { /* who has taken us is about to */
		sleep_until_posted(&self);
	}
	sem_destroy(&self.go);
}

void workqueue_lend(struct workqueue *q)
{
	struct work_sleeper *s;

	if (mine != q)
		return;
	pthread_mutex_lock(&q->lock);
	q->awake--;
	s = rouse_if_needed(q);
	pthread_mutex_unlock(&q->lock);
	post(s);
}

void workqueue_resume(struct workqueue *q)
{
	if (mine != q)
		return;
	pthread_mutex_lock(&q->lock);
	q->awake++;
	pthread_mutex_unlock(&q->lock);
}

/* ---- items ---- */

void workqueue_add(struct workqueue *q, const char *key)
{
	struct work_sleeper *s;

	pthread_mutex_lock(&q->lock);
	q->adds++;
	make_ready(q, item_of(q, key));
	s = rouse_if_needed(q);
	pthread_mutex_unlock(&q->lock);
	post(s);
}

/* Returns whom to post. */
static struct work_sleeper *delay(struct workqueue *q, struct work_item *item, double seconds)
{
	if (item->ready)
		return NULL;
	heap_put(q, item, q->now() + (seconds > 0 ? seconds : 0.001));
	if (item->at == 0 && q->watcher) /* sooner than what is waited for */
		return rouse_watcher(q);
	return rouse_if_needed(q);
}

void workqueue_after(struct workqueue *q, const char *key, double seconds)
{
	struct work_sleeper *s;

	pthread_mutex_lock(&q->lock);
	s = delay(q, item_of(q, key), seconds);
	pthread_mutex_unlock(&q->lock);
	post(s);
}

void workqueue_again(struct workqueue *q, const char *key)
{
	struct work_sleeper *s;
	struct work_item *item;
	double wait;

	pthread_mutex_lock(&q->lock);
	item = item_of(q, key);
	wait = ldexp(again_first, item->failures < 20 ? item->failures : 20);
	item->failures++;
	q->retries++;
	s = delay(q, item, wait > again_max ? again_max : wait);
	pthread_mutex_unlock(&q->lock);
	post(s);
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
	mu_histogram_add(&q->waited, now - item->since);
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

bool workqueue_is_behind(struct workqueue *q)
{
	bool behind;

	pthread_mutex_lock(&q->lock);
	behind = q->depth > BACKLOG;
	pthread_mutex_unlock(&q->lock);
	return behind;
}

char *workqueue_get(struct workqueue *q)
{
	struct work_sleeper *s = NULL;
	char *key = NULL;

	pthread_mutex_lock(&q->lock);
	if (mine != q)
		q->awake++;
	mine = q;
	while (!q->stopped && !(key = take(q))) {
		q->awake--;
		doze(q);
	}
	if (key) {
		s = q->depth > BACKLOG ? rouse(q) : NULL;
	} else {
		q->awake--;
		mine = NULL;
	}
	pthread_mutex_unlock(&q->lock);
	post(s);
	return key;
}

void workqueue_done(struct workqueue *q, const char *key)
{
	struct work_sleeper *s = NULL;
	struct work_item *item;

	pthread_mutex_lock(&q->lock);
	item = mu_map_get(&q->items, key);
	if (item) {
		item->held = false;
		if (item->dirty) {
			item->dirty = false;
			make_ready(q, item);
			s = rouse_if_needed(q);
		} else if (!item->ready && item->due <= 0 && item->failures == 0) {
			mu_map_del(&q->items, key);
			free(item->key);
			free(item);
		}
	}
	pthread_mutex_unlock(&q->lock);
	post(s);
}

void workqueue_stop(struct workqueue *q)
{
	struct work_sleeper *all = NULL, *s, *next;

	pthread_mutex_lock(&q->lock);
	q->stopped = true;
	while ((s = rouse(q))) {
		s->next = all;
		all = s;
	}
	pthread_mutex_unlock(&q->lock);
	for (s = all; s; s = next) {
		next = s->next; /* it is gone once it is posted */
		post(s);
	}
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
	mu_histogram_head("workqueue_queue_duration_seconds", out);
	mu_histogram_write(&q->waited, "workqueue_queue_duration_seconds", "name=\"jobs\"", out);
}
