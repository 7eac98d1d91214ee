/* SPDX-License-Identifier: Apache-2.0 */
/* Executes the actions of a plan. */
#ifndef CONTROLLER_APPLY_H
#define CONTROLLER_APPLY_H

#include "operator/controller/reconcile.h"

/* The creates of the plan, before the status is written: the planned status then has their results.
 * Returns the first error, or the number of created objects.  After an error the other actions are
 * tried, unless the API server is away. */
int apply_creates(struct reconcile *r, struct job_plan *plan, struct mu_err *err);
/* The deletes of the plan, after the status is written: an operator that dies in between must not
 * forget why a pod was deleted. */
int apply_removals(struct reconcile *r, const struct job_plan *plan, struct mu_err *err);

/* ---- shared by apply.c and apply_creates.c ---- */
/* The path of an object of the job's namespace; name NULL: of all of its kind.  Returns new. */
char *apply_path(const struct reconcile *r, enum object_kind kind, const char *name);
/* True when the controller of the object is this job. */
bool apply_is_ours(const struct reconcile *r, const cJSON *object);
/* Keeps the first error.  True when the other actions would fail too. */
bool apply_keep_error(int rc, const struct mu_err *mine, int *first, struct mu_err *err);

#endif
