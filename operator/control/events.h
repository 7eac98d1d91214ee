/* SPDX-License-Identifier: Apache-2.0 */
/* What people are told of a job. */
#ifndef CONTROL_EVENTS_H
#define CONTROL_EVENTS_H

#include <pthread.h>

#include "lib/base/map.h"

struct control;
struct reconcile;

/* An event that waits to be written. */
struct event_letter {
	struct event_letter *next;
	char *path, *body;
	bool series;
	double since;
	/* of one that tells what was made, else NULL: of which job, under which name, what, and its
	 * key in `recent` */
	char *uid, *name, *made, *key;
};
enum event_urgency { EVENTS_WARNING, EVENTS_NORMAL, EVENT_QUEUES };
struct event_queue {
	struct event_letter *first, **last;
};
struct event_log {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mu_map recent; /* hash of what it says -> struct event_series */
	struct mu_map made;   /* uid of a job -> its letter that waits and tells what was made */
	struct event_queue queues[EVENT_QUEUES];
	unsigned n; /* in all of them */
	bool stopped;
	_Atomic bool posting; /* a thread writes them */
};

void events_init(struct event_log *e);
void events_fini(struct event_log *e);
/* An event about the job; one that was said within five minutes becomes a series. */
void event_say(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
/* "created WHAT", in one event with what was made before and has not been written yet. */
void event_made(struct reconcile *r, const char *what);

/* Writes events behind what matters more; returns when stopped and all are written, or given up. */
void *events_run(void *control);
void events_stop(struct event_log *e);
/* As that thread would now, without waiting: false when none is due. */
bool events_write_due(struct control *control);

#endif
