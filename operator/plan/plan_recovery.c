/* SPDX-License-Identifier: Apache-2.0 */
/* Reports how a job recovers from the loss of a parameter server: that no step has come since, and
 * how far the step went back. */
#include <inttypes.h>
#include <stdio.h>

#include "operator/plan/plan_internal.h"

/* The ps pod that was created last, or NULL. */
static const struct observed_pod *newest_ps(const struct planner *p)
{
	const struct observed_pod *newest = NULL;

	plan_each_index (p, task, i) {
		const struct observed_pod *pod = plan_pod_at(p, task, i);

		if (task->kind == TASK_PS && pod && !pod->deleting &&
		    (!newest || pod->created > newest->created))
			newest = pod;
	}
	return newest;
}

static const struct observed_pod *chief_pod(const struct planner *p)
{
	const struct task_spec *chief = job_spec_chief(p->spec);

	return chief && chief->replicas ? p->pods[chief - p->spec->tasks][0] : NULL;
}

/* True when this ps is not the first of its index: the chief starts after the first ones. */
static bool was_replaced(const struct planner *p, const struct observed_pod *ps)
{
	const struct index_status *e = index_status_find(p->status, ps->task, ps->index);
	const struct observed_pod *chief = chief_pod(p);

	return (e && e->attempts > 0) || (chief && ps->created > chief->created);
}

void plan_report_recovery(struct planner *p)
{
	const struct observed_pod *ps = newest_ps(p);
	double last_step = p->seen->last_progress;

	if (ps && last_step > 0 && last_step >= p->status->start_time && ps->created > last_step)
		status_set(p, COND_RUNNING, true, PLAN_RECOVERING,
			   "%s/%d has started again and no step has been reported since; the "
			   "workers connect to it and restore the last checkpoint",
			   ps->task, ps->index);
}

void plan_report_step_reset(struct planner *p)
{
	int64_t before = p->seen->status.progress.step, after = p->seen->progress.step;
	const struct observed_pod *ps = newest_ps(p);
	bool saved = p->spec->train.checkpoint_path != NULL;

	if (after <= 0 || after >= before || !ps || !was_replaced(p, ps))
		return;
	p->status->conditions[COND_STEP_RESET].set = false; /* each reset has a time of its own */
	status_set(p, COND_STEP_RESET, true, saved ? "CheckpointRestored" : "NoCheckpoint",
		   "the parameters of %s/%d were lost and the step went back from %" PRId64
		   " to %" PRId64 "; %s",
		   ps->task, ps->index, before, after,
		   saved ? "the last checkpoint was restored, a smaller checkpoint.everySeconds "
			   "loses less"
			 : "there is no checkpoint to restore, set spec.checkpoint in a new job");
	p->plan->urgent = true;
}
