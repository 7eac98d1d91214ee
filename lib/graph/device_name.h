/* SPDX-License-Identifier: Apache-2.0 */
/* Device names: "/job:J/replica:R/task:T/device:TYPE:N", any part of which may be missing or '*'.
 *
 * Also read are the old forms "/cpu:0" and "/gpu:*".  A field that is missing or '*' is free.
 */
#ifndef MU_GRAPH_DEVICE_NAME_H
#define MU_GRAPH_DEVICE_NAME_H

#include "lib/base/buf.h"

struct mu_device_name {
	char job[128]; /* "": free */
	int replica, task;
	char type[32]; /* "CPU"; "": free */
	int index;     /* numbers: -1 when free */
};

int mu_device_parse(struct mu_device_name *out, const char *text, struct mu_err *err);
/* Field by field, what `inner` says wins. */
void mu_device_merge(struct mu_device_name *d, const struct mu_device_name *inner);
/* Every field that the pattern fixes is the same in d. */
bool mu_device_matches(const struct mu_device_name *d, const struct mu_device_name *pattern);
/* Adds to d what `other` fixes; false, and d as it was, when they contradict each other. */
bool mu_device_intersect(struct mu_device_name *d, const struct mu_device_name *other);
void mu_device_write(struct mu_buf *b, const struct mu_device_name *d);
/* Length of the task part of a full name: "/job:J/replica:R/task:T"; 0 when it has none. */
size_t mu_device_task_len(const char *full_name);

#endif
