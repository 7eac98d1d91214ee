/* SPDX-License-Identifier: Apache-2.0 */
/* The status write of a reconcile. */
#ifndef CONTROLLER_STATUS_H
#define CONTROLLER_STATUS_H

#include "operator/controller/reconcile.h"

/* Patches the job's status when it differs from the wanted one. */
int status_update(struct reconcile *r, const struct job_status *wanted, struct mu_err *err);
/* What turns `from` into `to` as a JSON merge patch; NULL when they are equal. */
cJSON *merge_patch(const cJSON *from, const cJSON *to);

#endif
