/* SPDX-License-Identifier: Apache-2.0 */
/* The conditions and the index statuses, in memory. */
#include <stdarg.h>
#include <stdio.h>

#include "operator/api/job_status.h"

const char *const job_phase_names[] = {"",          "Pending",   "Running", "Restarting",
				       "Suspended", "Succeeded", "Failed",  NULL};
const struct condition_kind condition_kinds[] = {
    [COND_CREATED] = {"Created", .healthy = true},
    [COND_READY] = {"Ready", .healthy = true},
    [COND_RUNNING] = {"Running", EVENT_WITH_PHASE, .healthy = true},
    [COND_RESTARTING] = {"Restarting", EVENT_WITH_PHASE, .warning = true},
    [COND_SUSPENDED] = {"Suspended", EVENT_WITH_PHASE},
    [COND_SUCCEEDED] = {"Succeeded", EVENT_WITH_PHASE, .healthy = true},
    [COND_FAILED] = {"Failed", EVENT_WITH_PHASE, .warning = true},
    [COND_KERNELS] = {"KernelsMissing", EVENT_ALWAYS, .warning = true},
    [COND_REJECTED] = {"PodsRejected", EVENT_WITH_PHASE},
    [COND_WORKERS_AWAITED] = {"WorkersAwaited", EVENT_ALWAYS, .warning = true, .printed = true},
    [COND_STEP_RESET] = {"StepReset", EVENT_ALWAYS, .warning = true, .recurs = true,
			 .printed = true},
};

int condition_type_of(const char *name)
{
	for (int i = 0; i < JOB_CONDITIONS; i++)
		if (strcmp(condition_kinds[i].name, name) == 0)
			return i;
	return -1;
}

const char *const end_reason_names[] = {
    [END_UNKNOWN] = "",
    [END_TARGET_REACHED] = "TargetReached",
    [END_VALIDATION_STOPPED] = "ValidationStopped",
    [END_FINISH_REQUESTED] = "FinishRequested",
    [END_TERMINATED] = "Terminated",
    NULL,
};

enum end_reason end_reason_of(const char *name)
{
	int i = mu_word_index(name, end_reason_names);

	return i < 0 ? END_UNKNOWN : (enum end_reason)i;
}

void condition_set(struct condition *c, bool status, double now, const char *reason,
		   const char *fmt, ...)
{
	va_list ap;

	if (!c->set || c->status != status)
		c->since = now;
	c->set = true;
	c->status = status;
	snprintf(c->reason, sizeof c->reason, "%s", reason);
	va_start(ap, fmt);
	vsnprintf(c->message, sizeof c->message, fmt, ap);
	va_end(ap);
}

void job_status_set_invalid(struct job_status *s, int64_t generation, const char *why, double now)
{
	bool started = s->start_time > 0;
	struct condition *c = &s->conditions[started ? COND_READY : COND_FAILED];

	if (s->completion_time > 0)
		return;
	condition_set(c, !started, now, PLAN_INVALID_SPEC, "%s%s", why,
		      started ? "; running tasks continue, and nothing is started or ended until "
				"that is corrected"
			      : "");
	if (!started)
		s->phase = JOB_FAILED;
	s->observed_generation = generation;
}

const struct condition *job_status_trouble(const struct job_status *s)
{
	static const char *const quiet[] = {"Waiting", "Suspended", NULL};
	const struct condition *failed = &s->conditions[COND_FAILED];
	const struct condition *ready = &s->conditions[COND_READY];
	const struct condition *restarting = &s->conditions[COND_RESTARTING];
	const struct condition *running = &s->conditions[COND_RUNNING];

	if (s->phase == JOB_FAILED || s->phase == JOB_SUCCEEDED)
		return failed->set && failed->status ? failed : NULL;
	if (mu_word_index(ready->reason, quiet) >= 0)
		return restarting->set && restarting->status ? restarting : NULL;
	if (ready->set && !ready->status)
		return ready;
	return strcmp(running->reason, PLAN_RECOVERING) == 0 ? running : NULL;
}

void index_status_init(struct index_status *e, const char *task, int index)
{
	*e = (struct index_status){.index = index, .exit_code = -1};
	snprintf(e->task, sizeof e->task, "%s", task);
}

bool index_status_is_blank(const struct index_status *e)
{
	return !e->attempts && !e->done && !e->no_gpu && !e->pending_departure_size;
}

int index_status_compare(const void *x, const void *y)
{
	const struct index_status *a = x, *b = y;
	int order = strcmp(a->task, b->task);

	return order ? order : (a->index > b->index) - (a->index < b->index);
}

struct index_status *index_status_get_or_add(struct job_status *s, const char *task, int index)
{
	struct index_status new;
	unsigned at = s->n_indexes;

	index_status_init(&new, task, index);
	while (at && index_status_compare(&s->indexes[at - 1], &new) > 0) /* mostly in order */
		at--;
	if (at && index_status_compare(&s->indexes[at - 1], &new) == 0)
		return &s->indexes[at - 1];
	s->indexes = mu_xrealloc(s->indexes, (s->n_indexes + 1) * sizeof s->indexes[0]);
	memmove(&s->indexes[at + 1], &s->indexes[at], (s->n_indexes - at) * sizeof s->indexes[0]);
	s->n_indexes++;
	s->indexes[at] = new;
	return &s->indexes[at];
}

void job_status_fini(struct job_status *s)
{
	free(s->indexes);
	free(s->security.secret);
	*s = (struct job_status){0};
}

void job_status_copy(struct job_status *to, const struct job_status *from)
{
	*to = *from;
	to->indexes = NULL;
	if (from->security.secret)
		to->security.secret = mu_xstrdup(from->security.secret);
	if (!from->n_indexes)
		return;
	to->indexes = MU_NEW_ARRAY(struct index_status, from->n_indexes);
	memcpy(to->indexes, from->indexes, from->n_indexes * sizeof from->indexes[0]);
}
