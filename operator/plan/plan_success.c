/* SPDX-License-Identifier: Apache-2.0 */
/* The success policy: the end of the chief, or of every worker, completes the job. */
#include "operator/plan/planner.h"

bool plan_has_succeeded(const struct planner *p)
{
	if (p->spec->success == SUCCESS_CHIEF || !job_spec_chief(p->spec))
		return p->chief && p->chief->record->done;
	bool any = false; /* a job without workers waits for some */
	plan_each_wanted (p, x)
		if (x->task->kind == TASK_CHIEF || x->task->kind == TASK_WORKER) {
			any = true;
			if (!x->record->done)
				return false;
		}
	return any;
}

bool plan_decides_success(const struct job_spec *s, const struct task_spec *t)
{
	return t == job_spec_chief(s) ||
	       (s->success == SUCCESS_ALL_WORKERS && t->kind == TASK_WORKER);
}
