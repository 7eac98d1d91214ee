/* SPDX-License-Identifier: Apache-2.0 */
/* How many bytes of tensors this task has sent to, and received from, each other. */
#ifndef MU_TASK_RUNTIME_TRAFFIC_H
#define MU_TASK_RUNTIME_TRAFFIC_H

#include <stdint.h>

#include "lib/base/buf.h"

struct traffic; /* any thread */
struct traffic *traffic_new(void);
void traffic_free(struct traffic *t);

/* What crosses to and from one task; lives as long as the traffic does. */
struct traffic_line {
	char *task;
	_Atomic uint64_t in, out;
};
/* device: any of the other task's, or its prefix.  Looked up once for an edge, so that a tensor
 * costs an addition.  NULL when too many tasks are counted already. */
struct traffic_line *traffic_line(struct traffic *t, struct mu_span device);
/* Of tasks with any. */
void traffic_each(struct traffic *t,
		  void (*see)(void *arg, const char *task, uint64_t in, uint64_t out), void *arg);

#endif
