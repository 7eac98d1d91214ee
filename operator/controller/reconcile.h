/* SPDX-License-Identifier: Apache-2.0 */
/* The reconcile of one job. */
#ifndef CONTROLLER_RECONCILE_H
#define CONTROLLER_RECONCILE_H

#include "operator/controller/controller.h"

/* The state of one reconcile. */
struct reconcile {
	struct controller *controller;
	const struct snapshot *seen;
	const struct job_spec *spec;
	double now;
	bool behind; /* a pod that the plan took for missing exists, with an older cluster epoch */
	double wake; /* seconds until the next reconcile; 0: no need */
};
/* Requests a reconcile at this time at the latest; 0: no request. */
static inline void requeue_at(struct reconcile *r, double when)
{
	double left = when > r->now ? when - r->now : 0.01;

	if (when > 0 && (r->wake <= 0 || left < r->wake))
		r->wake = left;
}
#define REQUEUE_SOON_S 0.03 /* after our own changes, for which no watch event comes */
/* Reconciles the job with this key.  Returns 0 with *requeue_after in seconds (0: no need), or an
 * error after which the caller retries with backoff. */
int reconcile(struct controller *c, const char *key, double *requeue_after, struct mu_err *err);

#endif
