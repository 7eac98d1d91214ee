/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the pods of each task type for status.tasks. */
#include <stdio.h>

#include "operator/plan/planner.h"

/* One entry for each task type, in the order of the spec; the stored facts are kept. */
void plan_name_tasks(struct planner *p)
{
	struct job_status *s = p->status;

	s->n_tasks = p->spec->n_tasks;
	for (unsigned t = 0; t < s->n_tasks; t++) {
		const char *name = p->spec->tasks[t].name;
		struct task_status stored = {0};

		for (unsigned i = 0; i < p->observed->status.n_tasks; i++)
			if (strcmp(p->observed->status.tasks[i].name, name) == 0)
				stored = p->observed->status.tasks[i];
		snprintf(stored.name, sizeof stored.name, "%s", name);
		s->tasks[t] = stored;
	}
}

/* Takes the kernels that the task reported, else those that its pod was created for, unless the
 * task may choose better kernels and the status has them. */
static void note_kernels(struct task_status *s, const struct task_spec *t,
			 const struct observed_pod *pod)
{
	const char *chosen = pod->chosen_kernels ? pod->chosen_kernels : "";

	if (pod->kernels)
		snprintf(s->kernels, sizeof s->kernels, "%s", pod->kernels);
	else if (*chosen && (!s->kernels[0] || pod->gpu || strcmp(chosen, t->kernels) == 0))
		snprintf(s->kernels, sizeof s->kernels, "%s", chosen);
}

/* Pods that the plan deletes at the end of the job do not count as active: this status is often the
 * last one. */
void plan_count_tasks(struct planner *p)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		struct task_status *s = &p->status->tasks[t];

		s->desired = p->spec->tasks[t].replicas;
		s->ready = s->active = s->succeeded = s->failed = 0;
	}
	plan_each_index (p, x) {
		bool live = plan_pod_is_live(x->pod) && !(x->ends && plan_has_ended(p));

		x->status->active += live;
		x->status->ready += live && x->pod->ready;
		x->status->failed += x->pod && x->pod->phase == POD_FAILED;
		x->status->succeeded += x->history->done;
		if (x->pod)
			note_kernels(x->status, x->task, x->pod);
	}
}
