/* SPDX-License-Identifier: Apache-2.0 */
/* The status write of a reconcile. */
#ifndef CONTROLLER_STATUS_H
#define CONTROLLER_STATUS_H

#include "operator/controller/reconcile.h"

/* Writes the status of the plan when it differs from the stored one, and records its transitions.
 * Unless at_once, the rate limit may delay the write to a later reconcile. */
int status_update(struct reconcile *r, const struct job_plan *plan, bool at_once,
		  struct mu_err *err);
/* Reports a spec that the schema let through and that cannot be used. */
int status_report_invalid(struct reconcile *r, struct mu_err *err);

#endif
