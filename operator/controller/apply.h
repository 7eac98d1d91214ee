/* SPDX-License-Identifier: Apache-2.0 */
/* Does what a plan says. */
#ifndef CONTROLLER_APPLY_H
#define CONTROLLER_APPLY_H

#include "operator/controller/reconcile.h"

/* Creates of the plan, whose status then says of them what came of it, before that is stored, the
 * rest after it: a controller that dies in between must not forget why a pod is gone.  Each returns
 * the first error, after having tried the other actions unless the server is away; apply_creates
 * else returns how many objects it made. */
int apply_creates(struct reconcile *r, struct job_plan *plan, struct mu_err *err);
int apply_removals(struct reconcile *r, const struct job_plan *plan, struct mu_err *err);

#endif
