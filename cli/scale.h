/* SPDX-License-Identifier: Apache-2.0 */
/* Another number of tasks. */
#ifndef CLI_SCALE_H
#define CLI_SCALE_H

#include "operator/api/job_spec.h"

/* "worker=4": what the manifest says from now on; said: "worker 1 -> 4". */
int scale_apply(struct job_spec *s, const char *text, char *said, size_t size, struct mu_err *err);

#endif
