/* SPDX-License-Identifier: Apache-2.0 */
/* The Secret of a job with its certificates. */
#ifndef CONTROLLER_CERTS_H
#define CONTROLLER_CERTS_H

#include "operator/controller/reconcile.h"

/* How long ago the CA of the job's next certificates was spread, when they are here and the status
 * trusts it; else 0. */
double certs_next_since(struct reconcile *r);

/* Does what the plan says of the Secret and notes it in the plan's status, which is to be stored
 * before anything else is done: 1; 0 when it says nothing. */
int certs_apply(struct reconcile *r, struct job_plan *plan, struct mu_err *err);

#endif
