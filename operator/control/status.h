/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a job: made from a plan, compared, stored. */
#ifndef CONTROL_STATUS_H
#define CONTROL_STATUS_H

#include "operator/control/reconcile.h"

/* Patches the job's status when `wanted` (JSON object, taken) differs from what is stored.
 * hash: status_hash of it, remembered when it is stored; 0: not. */
int status_store(struct reconcile *r, cJSON *wanted, uint64_t hash, struct mu_err *err);
/* The whole status of a plan: the plan's own part (text: as job_status_write has it), progress, and
 * the summary for the columns. */
cJSON *status_wanted(struct reconcile *r, const struct job_status *status, struct mu_span text);
/* Of all that status_wanted is made of: the same again needs no second comparison. */
uint64_t status_hash(const struct reconcile *r, struct mu_span text);
/* A status that says why the spec of this generation cannot be used, instead of the stored one: a
 * job that had not begun has failed, until its spec is corrected; one that runs is not ready, and
 * goes on; one that is over stays what it was. */
cJSON *status_invalid(const cJSON *stored, const cJSON *generation, const char *why, double now);
/* What turns `from` into `to` as a JSON merge patch; NULL when they are equal. */
cJSON *merge_patch(const cJSON *from, const cJSON *to);

#endif
