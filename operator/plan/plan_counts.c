/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the pods of each task type for status.tasks. */
#include <stdio.h>

#include "operator/plan/plan_internal.h"

/* One entry for each task type, in the order of the spec; the stored kernels are kept. */
void plan_name_tasks(struct planner *p)
{
	struct job_status *s = p->status;

	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		const char *name = p->spec->tasks[t].name;
		struct task_status made = {0};
		for (unsigned i = 0; i < p->seen->status.n_tasks; i++)
			if (strcmp(p->seen->status.tasks[i].name, name) == 0)
				made = p->seen->status.tasks[i];
		snprintf(made.name, sizeof made.name, "%s", name);
		s->tasks[t] = made;
	}
	s->n_tasks = p->spec->n_tasks;
}

static bool is_live(const struct observed_pod *pod)
{
	return pod && !pod->deleting && !pod->is_departure_pod &&
	       (pod->phase == POD_PENDING || pod->phase == POD_RUNNING ||
		pod->phase == POD_UNKNOWN);
}

/* Pods that the plan deletes at the end of the job do not count as active: this status is often the
 * last one. */
static void uncount_deleted(struct planner *p)
{
	for (unsigned i = 0; i < p->plan->n_actions && plan_has_ended(p); i++) {
		const struct plan_action *a = &p->plan->actions[i];
		int t = a->uid && a->task ? plan_task_position(p->spec, a->task) : -1;
		const struct observed_pod *pod =
		    t >= 0 && a->index >= 0 && a->index < p->width[t] ? p->pods[t][a->index] : NULL;

		if (is_live(pod) && strcmp(pod->uid, a->uid) == 0) {
			p->status->tasks[t].active--;
			p->status->tasks[t].ready -= pod->ready;
		}
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

void plan_count_tasks(struct planner *p)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		const struct task_spec *task = &p->spec->tasks[t];
		struct task_status *s = &p->status->tasks[t];
		s->desired = task->replicas;
		s->ready = s->active = s->succeeded = s->failed = 0;
		for (int i = 0; i < p->width[t]; i++) {
			const struct observed_pod *pod = p->pods[t][i];
			bool live = is_live(pod);
			s->active += live;
			s->ready += live && pod->ready;
			s->failed += pod && pod->phase == POD_FAILED;
			if (pod)
				note_kernels(s, task, pod);
		}
	}
	for (unsigned i = 0; i < p->status->n_ledger; i++) {
		int t = plan_task_position(p->spec, p->status->ledger[i].task);
		if (t >= 0)
			p->status->tasks[t].succeeded += p->status->ledger[i].done;
	}
	uncount_deleted(p);
}
