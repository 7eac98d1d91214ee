/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the bytes of tensors sent to and received from each other task. */
#ifndef MU_TASK_RUNTIME_TRAFFIC_H
#define MU_TASK_RUNTIME_TRAFFIC_H

#include <stdint.h>

#include "lib/base/buf.h"

struct traffic; /* thread-safe */
struct traffic *traffic_new(void);
void traffic_free(struct traffic *t);

/* The counters of one task; valid as long as the struct traffic. */
struct traffic_line {
	char *task;
	_Atomic uint64_t in, out;
};
/* Returns the counters of a task; NULL if the limit of counted tasks is reached.  device: any
 * device of the task, or the task's prefix.  Callers keep the result for each edge. */
struct traffic_line *traffic_line(struct traffic *t, struct mu_span device);
/* Calls fn() for each task with traffic. */
void traffic_each(struct traffic *t,
		  void (*fn)(void *arg, const char *task, uint64_t in, uint64_t out), void *arg);

#endif
