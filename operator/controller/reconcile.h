/* SPDX-License-Identifier: Apache-2.0 */
/* One look at one job. */
#ifndef CONTROLLER_RECONCILE_H
#define CONTROLLER_RECONCILE_H

#include "operator/controller/controller.h"

/* What a reconcile works on. */
struct reconcile {
	struct controller *controller;
	const struct snapshot *seen;
	const struct job_spec *spec;
	double now;
	bool behind; /* the plan took a pod for missing that is there, and knows an older cluster */
	double wake; /* sooner than the plan's, when an action wants another look; 0: none */
};
/* Asks for another look at this time at the latest; 0 is no time. */
static inline void requeue_at(struct reconcile *r, double when)
{
	double left = when > r->now ? when - r->now : 0.01;

	if (when > 0 && (r->wake <= 0 || left < r->wake))
		r->wake = left;
}
#define REQUEUE_SOON_S 0.03 /* for what we have changed ourselves and no watch will tell of */
/* One look at one job.  Returns 0 with *wake (seconds from now, 0: none), or an error after which
 * the job should be looked at again soon. */
int reconcile(struct controller *c, const char *key, double *wake, struct mu_err *err);

#endif
