/* SPDX-License-Identifier: Apache-2.0 */
/* Changes the number of tasks. */
#ifndef MU_CLI_SCALE_H
#define MU_CLI_SCALE_H

#include "operator/api/job_spec.h"

/* text is "worker=4". Changes the replicas in s; summary: "worker 1 -> 4". */
int scale_apply(struct job_spec *s, const char *text, char *summary, size_t size,
		struct mu_err *err);

#endif
