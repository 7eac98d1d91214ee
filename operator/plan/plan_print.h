/* SPDX-License-Identifier: Apache-2.0 */
/* What would be done first for a job, without a cluster: the same lines from `muster validate
 * --plan` and `muster-operator --dry-run`. */
#ifndef MUSTER_PLAN_PRINT_H
#define MUSTER_PLAN_PRINT_H

#include "operator/plan/job_plan.h"

/* Called for each action in order; what it borrows is gone afterwards. */
typedef void plan_print_fn(void *arg, const struct job_spec *spec, const struct plan_action *a);

/* Plays a cluster in which every pod that is created becomes ready at once, until the plan asks for
 * nothing more.  Appends one line for each action to `out`, or calls each for it instead. */
void plan_print(struct mu_buf *out, const struct job_spec *spec, const struct plan_options *options,
		plan_print_fn *each, void *arg);

#endif
