/* SPDX-License-Identifier: Apache-2.0 */
/* Event recorder: Kubernetes events about jobs, of events.k8s.io/v1.
 *
 * Events are best effort: an event that the API server rejects is lost.  The conditions of a job
 * have all the important information. */
#ifndef MU_OPERATOR_CONTROLLER_EVENTS_H
#define MU_OPERATOR_CONTROLLER_EVENTS_H

#include <pthread.h>

#include "lib/base/map.h"

struct reconcile;

struct event_recorder {
	pthread_mutex_t lock;
	struct recent_event {
		uint64_t hash; /* of job UID, reason and note */
		double posted;
	} recent[4096]; /* by hash */
};

void events_init(struct event_recorder *e);
void events_fini(struct event_recorder *e);
/* Posts an event about the job, unless the same one was posted within five minutes. */
void event_record(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
