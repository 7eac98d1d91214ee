/* SPDX-License-Identifier: Apache-2.0 */
/* Reports an object that the API server rejects: by quota, admission rule or invalid template. */
#include <stdio.h>

#include "operator/plan/planner.h"

#define TOO_LARGE "make the pod's template, command or environment smaller, or have fewer replicas"

#define BAD_TEMPLATE "correct the task in the manifest, and the job goes on"

/* Reasons and advice for rejected pods, chosen by a phrase of the API server's message.  An
 * admission rule may quote a sentence of validation, so its row comes first. */
static const struct rejection {
	const char *phrase, *reason, *advice;
	bool of_task; /* the message is about the task in the manifest */
} rejections[] = {
    {"failed calling webhook", "WebhookUnavailable",
     "an admission webhook of the cluster does not answer, repair or remove it", false},
    {"Internal error occurred:", "AdmissionFailed",
     "admission fails in the API server, see its log and the webhooks of the cluster", false},
    {"denied the request", "FailedCreate", "change the manifest, or the rule that forbids it",
     false},
    {"denied request", "FailedCreate", "change the manifest, or the rule that forbids it", false},
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
    {"", "FailedCreate", "change the manifest, or the rule that forbids it", false},
};

static const struct rejection *rejection_of(const char *why)
{
	unsigned i = 0;

	while (!strstr(why, rejections[i].phrase))
		i++;
	return &rejections[i];
}

const char *job_plan_advice(const char *why)
{
	return rejection_of(why)->advice;
}

void job_plan_rejected(struct job_plan *plan, const struct plan_action *a, const char *why,
		       unsigned more, double now)
{
	struct condition *c = &plan->status.conditions[COND_REJECTED];
	const struct condition before = *c;
	const struct rejection *row = rejection_of(why);
	bool counts = !a->pod || plan_task_counts(a->pod->spec);
	const char *reason = counts ? row->reason : PLAN_TENSORBOARD_REJECTED;
	char task[JOB_MAX_NAME + sizeof("spec.tasks.: ")] = "", others[32] = "";

	if (row->of_task && a->pod)
		snprintf(task, sizeof(task), "spec.tasks.%s: ", a->pod->task);
	if (more)
		snprintf(others, sizeof(others), " (and %u more)", more);
	if (counts != plan_rejection_counts(c)) /* restart the deadline */
		*c = (struct condition){0};
	condition_set(c, true, now, reason, "%s: %s%.190s%s", row->advice, task, why, others);
	if (counts)
		condition_set(&plan->status.conditions[COND_READY], false, now, reason, "%s",
			      c->message);
	if (!before.status || strcmp(before.reason, reason) != 0)
		plan->urgent = true;
}

static bool creates_objects(const struct job_plan *plan)
{
	for (unsigned i = 0; i < plan->n_actions; i++)
		if (action_creates(plan->actions[i].kind) ||
		    plan->actions[i].kind == ACTION_MAKE_SECRET)
			return true;
	return false;
}

/* Keeps the condition until the plan creates no object.  schedulingDeadlineSeconds counts from the
 * start of the condition. */
void plan_report_rejected(struct planner *p)
{
	struct condition *c = &p->status->conditions[COND_REJECTED];

	if (!creates_objects(p->plan))
		*c = (struct condition){0};
	else if (plan_rejection_counts(c))
		status_set(p, COND_READY, false, c->reason, "%s", c->message);
}
