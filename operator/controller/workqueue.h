/* SPDX-License-Identifier: Apache-2.0 */
/* Work queue of job keys: de-duplicating, delaying, with exponential backoff per key.
 *
 * Two workers never hold the same key: a key that is added while a worker holds it is handed out
 * again after workqueue_done.  workqueue_add_after delays a key by a given time.
 * workqueue_add_rate_limited delays it after a failure: by 5 ms, doubled for each failure up to
 * 60 s, until workqueue_forget. workqueue_add cancels both delays. */
#ifndef MU_OPERATOR_CONTROLLER_WORKQUEUE_H
#define MU_OPERATOR_CONTROLLER_WORKQUEUE_H

#include <pthread.h>
#include <sys/queue.h>

#include "lib/base/buf.h"
#include "lib/base/histogram.h"
#include "lib/base/map.h"

struct work_item {
	char *key;
	TAILQ_ENTRY(work_item) at; /* in the list of ready, or of delayed items */
	bool ready, held, dirty;   /* dirty: added while held */
	double due;                /* delayed when > 0 */
	double ready_since;
	int failures;
};

struct workqueue {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mu_map items;                              /* key -> struct work_item */
	TAILQ_HEAD(work_items, work_item) ready, delayed; /* delayed: by due */
	unsigned depth, retries, adds;
	bool stopped;
	struct mu_histogram waited; /* from ready to workqueue_get */
	double (*now)(void);        /* monotonic seconds */
};

void workqueue_init(struct workqueue *q, double (*now)(void));
void workqueue_fini(struct workqueue *q);
void workqueue_add(struct workqueue *q, const char *key);
void workqueue_add_after(struct workqueue *q, const char *key, double seconds);
void workqueue_add_rate_limited(struct workqueue *q, const char *key);
void workqueue_forget(struct workqueue *q, const char *key);
/* Waits for a key (new memory); NULL once stopped.  The worker calls workqueue_done for it. */
char *workqueue_get(struct workqueue *q);
void workqueue_done(struct workqueue *q, const char *key);
void workqueue_stop(struct workqueue *q);
void workqueue_metrics(struct workqueue *q, struct mu_buf *out);

#endif
