/* SPDX-License-Identifier: Apache-2.0 */
/* The Secret of a job with its certificates. */
#ifndef CONTROLLER_CERTS_H
#define CONTROLLER_CERTS_H

#include "operator/controller/reconcile.h"

/* Does what the plan says of the Secret and notes it in the plan's status, which is to be stored
 * before anything else is done: 1; 0 when it says nothing. */
int certs_apply(struct reconcile *r, struct job_plan *plan, struct mu_err *err);

#endif
