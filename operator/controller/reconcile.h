/* SPDX-License-Identifier: Apache-2.0 */
/* The reconcile of one job, and its steps. */
#ifndef MU_OPERATOR_CONTROLLER_RECONCILE_H
#define MU_OPERATOR_CONTROLLER_RECONCILE_H

#include "operator/controller/controller.h"

/* The state of one reconcile. */
struct reconcile {
	struct controller *controller;
	const struct snapshot *snapshot;
	const struct job_spec *spec; /* NULL when it is invalid; then there is no plan */
	struct job_plan *plan;
	char token_digest[MU_TOKEN_SIZE];
	double now;
	double requeue_after; /* seconds until the next reconcile; 0: no need */
	bool job_is_stale;    /* a write failed: the job has a newer resourceVersion */
	int first_error;      /* code of the first action that failed; 0: none */
	struct mu_err first_message;
};
/* Requests a reconcile at this time at the latest; 0: no request. */
static inline void requeue_at(struct reconcile *r, double when)
{
	double left = when > r->now ? when - r->now : 0.01;

	if (when > 0 && (r->requeue_after <= 0 || left < r->requeue_after))
		r->requeue_after = left;
}
#define REJECTED_RETRY_S      30   /* no watch event reports that a retry would succeed */
#define BEING_DELETED_RETRY_S 2    /* an object of an earlier job has the same name */
#define REQUEUE_SOON_S        0.03 /* after changes by the operator, which have no watch event */
/* Reconciles the job with this key.  Returns 0 with *requeue_after in seconds (0: no need), or an
 * error after which the caller retries with backoff. */
int reconcile(struct controller *c, const char *key, double *requeue_after, struct mu_err *err);

/* ---- the steps ---- */

/* Executes the plan's action on the Secret, then stores the status, before any pod that trusts the
 * certificates is created.  Returns 1 if it did; 0: nothing to do, or the API server rejects it. */
int certs_apply(struct reconcile *r, struct mu_err *err);
/* The creates of the plan.  Returns 1 when an object was created or found: the next reconcile,
 * which sees it, writes the status.  0 when none was: the planned status has the rejections.  An
 * error when the API server was not reached.  Other errors are in first_error. */
int apply_creates(struct reconcile *r);
/* The deletes of the plan. */
void apply_removals(struct reconcile *r);

/* The path of an object of the job's namespace; name NULL: of all of its kind.  Returns new. */
char *apply_path(const struct reconcile *r, enum object_kind kind, const char *name);

/* Writes the status of the plan when it differs from the stored one, and records its transitions.
 * Unless at_once, the rate limit may delay the write to a later reconcile. */
int status_update(struct reconcile *r, bool at_once, struct mu_err *err);
/* Reports a spec that the schema accepts and that cannot be used. */
int status_report_invalid(struct reconcile *r, struct mu_err *err);

#endif
