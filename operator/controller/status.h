/* SPDX-License-Identifier: Apache-2.0 */
/* The status write of a reconcile. */
#ifndef CONTROLLER_STATUS_H
#define CONTROLLER_STATUS_H

#include "operator/controller/reconcile.h"

/* Writes the status of the plan when it differs from the stored one, and records its transitions.
 */
int status_update(struct reconcile *r, const struct job_plan *plan, struct mu_err *err);
/* Seconds that the rate limit delays that write; 0: it is due. */
double status_delay(const struct reconcile *r, const struct job_plan *plan);
/* Reports a spec that the schema let through and that cannot be used. */
int status_report_invalid(struct reconcile *r, struct mu_err *err);

#endif
