/* SPDX-License-Identifier: Apache-2.0 */
/* Keys that need a look, each once, never in two hands.
 *
 * A key that is added while a worker has it is handed out again after workqueue_done.  Delays are
 * of two kinds: workqueue_after (a deadline) and workqueue_again (a failure: 5 ms doubling to
 * 1000 s for each failure in a row, until workqueue_forget).  Adding a key at once overtakes both.
 */
#ifndef CONTROL_WORKQUEUE_H
#define CONTROL_WORKQUEUE_H

#include <pthread.h>

#include "lib/base/buf.h"
#include "lib/base/histogram.h"
#include "lib/base/map.h"

struct workqueue {
	pthread_mutex_t lock;
	struct mu_map items;           /* key -> struct work_item */
	struct work_item *head, *tail; /* ready */
	struct work_item **heap;       /* delayed, by due */
	unsigned n_heap, cap_heap, depth, retries, adds;
	struct work_sleeper *asleep;  /* the last first */
	struct work_sleeper *watcher; /* sleeps until the first of the heap is due */
	unsigned awake;               /* workers that come back by themselves */
	bool stopped;
	struct mu_histogram waited; /* from ready to taken */
	double (*now)(void);        /* monotonic seconds */
};

void workqueue_init(struct workqueue *q, double (*now)(void));
void workqueue_fini(struct workqueue *q);
void workqueue_add(struct workqueue *q, const char *key);
void workqueue_after(struct workqueue *q, const char *key, double seconds);
void workqueue_again(struct workqueue *q, const char *key);
void workqueue_forget(struct workqueue *q, const char *key);
/* Waits for a key (new memory); NULL once stopped.  A thread that got one comes back for the next
 * after workqueue_done: until it does, nobody else may be woken for what becomes ready. */
char *workqueue_get(struct workqueue *q);
/* So one that has a key and is about to wait for something else says so, and when it has waited.
 * Of other threads they do nothing. */
void workqueue_lend(struct workqueue *q);
void workqueue_resume(struct workqueue *q);
/* As workqueue_get without waiting; NULL when none is ready. */
char *workqueue_try(struct workqueue *q);
/* When the next key is ready, by the queue's clock: 0 now, INFINITY never. */
double workqueue_next(struct workqueue *q);
/* Whether more wait than the workers take in a moment. */
bool workqueue_is_behind(struct workqueue *q);
void workqueue_done(struct workqueue *q, const char *key);
void workqueue_stop(struct workqueue *q);
void workqueue_metrics(struct workqueue *q, struct mu_buf *out);

#endif
