/* SPDX-License-Identifier: Apache-2.0 */
/* Device names: "/job:J/replica:R/task:T/device:TYPE:N".
 *
 * A part that is missing or '*' matches any value.  The legacy forms "/cpu:0" and "/gpu:*" are
 * accepted too.
 */
#ifndef MU_LIB_GRAPH_DEVICE_NAME_H
#define MU_LIB_GRAPH_DEVICE_NAME_H

#include "lib/base/buf.h"

struct mu_device_name {
	char job[128]; /* "": any */
	int replica, task;
	char type[32]; /* "CPU"; "": any */
	int index;     /* this and the other numbers: -1 for any */
};

int mu_device_parse(struct mu_device_name *out, const char *text, struct mu_err *err);
/* Overwrites the fields of d that are set in `inner`. */
void mu_device_merge(struct mu_device_name *d, const struct mu_device_name *inner);
/* True if d equals the pattern in every field that is set in the pattern. */
bool mu_device_matches(const struct mu_device_name *d, const struct mu_device_name *pattern);
/* Sets the fields of `other` in d.  Returns false, with d unchanged, if a field has another value
 * in d. */
bool mu_device_intersect(struct mu_device_name *d, const struct mu_device_name *other);
void mu_device_write(struct mu_buf *b, const struct mu_device_name *d);
/* Returns the length of the task part of a full name, "/job:J/replica:R/task:T"; 0 if it has none.
 */
size_t mu_device_task_len(const char *full_name);
bool mu_device_same_task(const char *full_name, const char *other);

#endif
