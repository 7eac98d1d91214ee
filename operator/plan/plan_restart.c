/* SPDX-License-Identifier: Apache-2.0 */
/* Records how the pods of an index ended, and decides whether it runs again. */
#include <stdio.h>

#include "lib/base/backoff.h"
#include "operator/plan/plan_internal.h"

enum { BACKOFF_FIRST = 1 };

/* Exit codes 1 to 127 come from the program.  Codes from 128 on are signals, which come from
 * outside (out of memory, a node that shuts down) and may not occur again. */
static bool exit_may_pass(int code)
{
	return code < 0 || code >= 128;
}

bool plan_may_restart(const struct planner *p, const struct task_spec *t,
		      const struct index_status *e)
{
	switch (t->restart) {
	case RESTART_NEVER:
		return false;
	case RESTART_ON_FAILURE:
	case RESTART_ALWAYS:
		return true;
	case RESTART_EXIT_CODE:
		/* a server that ends too early runs again, also after exit code 0 */
		return exit_may_pass(e->exit_code) || (t->kind == TASK_PS && e->exit_code == 0);
	}
	return false;
}

bool plan_is_done(const struct planner *p, const struct task_spec *t, int index)
{
	const struct index_status *e = index_status_find(p->status, t->name, index);

	return e && e->done;
}

double plan_backoff(int failures)
{
	return mu_backoff(failures - 1, BACKOFF_FIRST, PLAN_BACKOFF_MOST);
}

/* An evicted program may end with 0 because it was terminated. */
static bool ended_well(const struct observed_pod *pod)
{
	return pod->phase == POD_SUCCEEDED || (pod->exit_code == 0 && !pod->disrupted);
}

/* True when the success of the job depends on the end of this task type. */
static bool decides(const struct job_spec *s, const struct task_spec *t)
{
	return t == job_spec_chief(s) ||
	       (s->success == SUCCESS_ALL_WORKERS && t->kind == TASK_WORKER);
}

/* An end with 0 is final, except for a server while the job runs and for the policy Always.  It is
 * final under Always, too, when the success of the job depends on it. */
static bool end_is_final(const struct planner *p, const struct task_spec *t,
			 const struct observed_pod *pod)
{
	if (!ended_well(pod))
		return false;
	if (t->kind == TASK_PS)
		return plan_has_ended(p) || plan_has_succeeded(p);
	return t->restart != RESTART_ALWAYS || decides(p->spec, t);
}

static void count_end(struct planner *p, const struct task_spec *t, const struct observed_pod *pod)
{
	struct index_status *e = index_status_get(p->status, t->name, pod->index);
	bool zero = ended_well(pod), no_gpu;

	if (strcmp(e->uid, pod->uid) == 0 || e->done || pod->created < e->created)
		return;
	e->created = pod->created;
	snprintf(e->uid, sizeof e->uid, "%s", pod->uid);
	snprintf(e->reason, sizeof e->reason, "%s",
		 pod->reason ? pod->reason
		 : zero      ? "Completed"
			     : "Error");
	snprintf(e->node, sizeof e->node, "%s", pod->node ? pod->node : "");
	e->exit_code = pod->phase == POD_SUCCEEDED ? 0 : pod->exit_code;
	e->attempts++;
	no_gpu = plan_gpu_fallback(p, t, pod);
	if (!no_gpu)
		plan_report_kernels(p, t, pod);
	e->done = end_is_final(p, t, pod);
	e->uncounted = (pod->disrupted || no_gpu) && !zero;
	if (e->done || e->uncounted || plan_has_ended(p) || (zero && t->restart == RESTART_ALWAYS)) {
		e->retry_at = 0;
		return;
	}
	e->failures++;
	p->status->restarts += plan_task_counts(t);
	e->retry_at = p->now + plan_backoff(e->failures);
}

/* Servers are recorded last: their end is final only when the chief is done. */
void plan_record_terminated_pods(struct planner *p)
{
	for (int pass = 0; pass < 2; pass++)
		for (unsigned t = 0; t < p->spec->n_tasks; t++)
			for (int i = 0; i < p->width[t]; i++) {
				const struct task_spec *task = &p->spec->tasks[t];
				const struct observed_pod *pod = p->pods[t][i];
				if ((task->kind == TASK_PS) == (pass == 1) && pod &&
				    !pod->ended_by_deletion && !pod->is_departure_pod &&
				    plan_pod_has_ended(pod))
					count_end(p, task, pod);
			}
}
