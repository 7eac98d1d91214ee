/* SPDX-License-Identifier: Apache-2.0 */
/* Reports how a job recovers from the loss of a parameter server: that no step was reported since,
 * and by how much the step fell. */
#include <inttypes.h>
#include <stdio.h>

#include "operator/plan/planner.h"

/* The index of the ps pod that was created last, or NULL. */
static const struct task_index *newest_ps(const struct planner *p)
{
	const struct task_index *newest = NULL;

	plan_each_wanted (p, x)
		if (x->task->kind == TASK_PS && x->pod && !x->pod->deleting &&
		    (!newest || x->pod->created > newest->pod->created))
			newest = x;
	return newest;
}

/* True when this ps replaces an earlier pod: the chief starts after the first ps pods. */
static bool was_replaced(const struct planner *p, const struct task_index *ps)
{
	const struct observed_pod *chief = p->chief ? p->chief->pod : NULL;

	return ps->record->attempts > 0 || (chief && ps->pod->created > chief->created);
}

void plan_report_recovery(struct planner *p)
{
	const struct task_index *ps = newest_ps(p);
	double last_step = p->observed->last_progress;

	if (ps && last_step > 0 && last_step >= p->status->start_time &&
	    ps->pod->created > last_step)
		status_set(p, COND_RUNNING, true, PLAN_RECOVERING,
			   "%s/%d has started again and no step has been reported since; the "
			   "workers connect to it and restore the last checkpoint",
			   ps->task->name, ps->index);
}

void plan_report_step_reset(struct planner *p)
{
	int64_t before = p->observed->status.progress.step, after = p->observed->progress.step;
	const struct task_index *ps = newest_ps(p);
	bool saved = p->spec->train.checkpoint_path != NULL;

	if (after <= 0 || after >= before || !ps || !was_replaced(p, ps))
		return;
	/* without a chief a worker reports the step, which may be one behind */
	if (!p->chief || !p->chief->pod || p->chief->pod->phase != POD_RUNNING)
		return;
	p->status->conditions[COND_STEP_RESET].set = false; /* so that each reset has a new time */
	status_set(p, COND_STEP_RESET, true, saved ? "CheckpointRestored" : "NoCheckpoint",
		   "the parameters of %s/%d were lost and the step went back from %" PRId64
		   " to %" PRId64 "; %s",
		   ps->task->name, ps->index, before, after,
		   saved ? "the last checkpoint was restored, a smaller checkpoint.everySeconds "
			   "loses less"
			 : "there is no checkpoint to restore, set spec.checkpoint in a new job");
	p->plan->urgent = true;
}
