/* SPDX-License-Identifier: Apache-2.0 */
/* Event recorder: Kubernetes events about jobs. */
#ifndef CONTROLLER_EVENTS_H
#define CONTROLLER_EVENTS_H

#include <pthread.h>

#include "lib/base/map.h"

struct reconcile;
struct pending_event;

struct event_recorder {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mu_map recent;                /* job UID, reason and note -> struct event_series */
	struct pending_event *first, **last; /* not posted yet */
	unsigned n;                          /* of them */
	bool stopped;
	_Atomic unsigned posting; /* threads that post them: one, or none */
};

void events_init(struct event_recorder *e);
void events_fini(struct event_recorder *e);
/* Records an event about the job; the same one within five minutes becomes a series. */
void event_record(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Thread start routine: posts events; returns once stopped and all are posted or given up. */
void *events_run(void *controller);
void events_stop(struct event_recorder *e);

#endif
