/* SPDX-License-Identifier: Apache-2.0 */
/* Reports an object of the job that the API server rejects: a quota, an admission rule, a template
 * with mistakes. */
#include "operator/plan/plan_internal.h"

#define TOO_LARGE "make the pod's template, command or environment smaller, or have fewer replicas"

#define BAD_TEMPLATE "correct the task in the manifest, and the job goes on"

/* Reasons and advice for refused pods, chosen by a phrase of the API server's message.  An
 * admission rule may quote a sentence of validation, so its row comes first. */
static const struct refusal {
	const char *says, *reason, *advice;
	bool final; /* the server answers the same until the manifest changes */
} refusals[] = {
    {"denied the request", "CreateRefused", "change the manifest, or the rule that forbids it",
     false},
    {"denied request", "CreateRefused", "change the manifest, or the rule that forbids it", false},
    {"strict decoding error", "TemplateInvalid", BAD_TEMPLATE, true},
    {"cannot be handled as a Pod", "TemplateInvalid", BAD_TEMPLATE, true},
    {" is invalid: ", "TemplateInvalid", BAD_TEMPLATE, true},
    {"exceeded quota", "QuotaExceeded", "raise the quota or lower replicas, and the job goes on",
     false},
    {"request is too large", "ObjectTooLarge", TOO_LARGE, false},
    {"larger than max", "ObjectTooLarge", TOO_LARGE, false},
    {"entity too large", "ObjectTooLarge", TOO_LARGE, false},
    {"no podgroups of", "GangUnavailable",
     "install the gang scheduler, or use run.gang: none in a new job", false},
    {"", "CreateRefused", "change the manifest, or the rule that forbids it", false},
};

static const struct refusal *refusal_of(const char *why)
{
	unsigned i = 0;

	while (!strstr(why, refusals[i].says))
		i++;
	return &refusals[i];
}

const char *job_plan_advice(const char *why)
{
	return refusal_of(why)->advice;
}

bool job_plan_refusal_is_final(const char *why)
{
	return refusal_of(why)->final;
}

/* The condition keeps since when, for schedulingDeadlineSeconds.  It is removed once nothing is
 * left to create, not before: a new operator, or one that could not reach the API server, does not
 * know of the rejection. */
void plan_report_rejected(struct planner *p)
{
	const char *why = p->seen->refused;
	const struct refusal *is = why ? refusal_of(why) : NULL;

	if (is) {
		status_set(p, COND_REFUSED, true, is->reason, "%s: %.190s", is->advice, why);
		status_set(p, COND_READY, false, is->reason, "%s: %.190s", is->advice, why);
	} else if (!plan_creates(p->plan)) {
		p->status->conditions[COND_REFUSED] = (struct condition){0};
	}
}
