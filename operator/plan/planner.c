/* SPDX-License-Identifier: Apache-2.0 */
/* The indices and the actions of a plan. */
#include "operator/plan/planner.h"

#include <stdio.h>

enum { INDEX_LIMIT = 10 * JOB_MAX_REPLICAS }; /* pods beyond it are deleted */

static void count_index(int *width, const struct task_spec *t, const char *task, int index)
{
	if (index >= *width && index < INDEX_LIMIT && strcmp(t->name, task) == 0)
		*width = index + 1;
}

static int count_indices(const struct planner *p, const struct task_spec *t)
{
	int width = t->replicas;

	for (unsigned i = 0; i < p->observed->n_pods; i++)
		count_index(&width, t, p->observed->pods[i].task, p->observed->pods[i].index);
	for (unsigned i = 0; i < p->observed->status.n_indexes; i++)
		count_index(&width, t, p->observed->status.indexes[i].task,
			    p->observed->status.indexes[i].index);
	for (unsigned i = 0; i < p->observed->status.n_tasks; i++)
		count_index(&width, t, p->observed->status.tasks[i].name,
			    p->observed->status.tasks[i].joined - 1);
	return width;
}

void planner_init(struct planner *p)
{
	const struct task_spec *tasks = p->spec->tasks, *chief = job_spec_chief(p->spec);
	const struct job_status *stored = &p->observed->status;
	unsigned n_tasks = p->spec->n_tasks;
	struct task_index *x;

	for (unsigned t = 0; t < n_tasks; t++)
		p->first[t + 1] = p->first[t] + (unsigned)count_indices(p, &tasks[t]);
	p->indices = MU_ARENA_ARRAY(&p->plan->arena, struct task_index, p->first[n_tasks] + 1);
	free(p->status->indexes);
	p->status->indexes = MU_NEW_ARRAY(struct index_status, p->first[n_tasks] + 1);
	for (unsigned t = 0; t < n_tasks; t++)
		for (unsigned i = p->first[t]; i < p->first[t + 1]; i++) {
			int index = (int)(i - p->first[t]);

			p->indices[i] = (struct task_index){.task = &tasks[t],
							    .status = &p->status->tasks[t],
							    .record = &p->status->indexes[i],
							    .index = index,
							    .wanted = index < tasks[t].replicas};
			index_status_init(&p->status->indexes[i], tasks[t].name, index);
		}
	for (unsigned i = 0; i < stored->n_indexes; i++)
		if ((x = plan_index(p, stored->indexes[i].task, stored->indexes[i].index)))
			*x->record = stored->indexes[i];
	for (unsigned i = 0; i < p->observed->n_pods; i++)
		if ((x = plan_index(p, p->observed->pods[i].task, p->observed->pods[i].index)))
			x->pod = &p->observed->pods[i];
	p->chief = chief ? plan_index(p, chief->name, 0) : NULL;
}

void planner_fini(struct planner *p)
{
	struct job_status *s = p->status;

	s->n_indexes = 0;
	plan_each_index (p, x)
		if (!index_status_is_blank(x->record))
			s->indexes[s->n_indexes++] = *x->record;
	qsort(s->indexes, s->n_indexes, sizeof(s->indexes[0]), index_status_compare);
	mu_cluster_fini(&p->cluster);
}

struct task_index *plan_index(const struct planner *p, const char *task, int index)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++)
		if (strcmp(p->spec->tasks[t].name, task) == 0 && index >= 0 &&
		    (unsigned)index < p->first[t + 1] - p->first[t])
			return &p->indices[p->first[t] + (unsigned)index];
	return NULL;
}

const char *plan_pod_name(const struct planner *p, const char *task, int index)
{
	return plan_text(p, "%s-%s-%d", p->spec->name, task, index);
}

struct plan_action *plan_add_action(struct planner *p, enum action_kind kind, const char *task,
				    int index, const char *reason, const char *message)
{
	struct job_plan *plan = p->plan;
	struct plan_action *a;

	if (plan->n_actions == plan->cap_actions) {
		plan->cap_actions = plan->cap_actions ? 2 * plan->cap_actions : 16;
		plan->actions =
		    mu_xrealloc(plan->actions, plan->cap_actions * sizeof plan->actions[0]);
	}
	a = &plan->actions[plan->n_actions++];
	*a = (struct plan_action){.kind = kind,
				  .task = task,
				  .index = index,
				  .name = task ? plan_pod_name(p, task, index) : NULL,
				  .reason = reason,
				  .message = message};
	return a;
}

void plan_add_pod_action(struct planner *p, enum action_kind kind, const struct observed_pod *pod,
			 const char *reason, const char *message)
{
	struct task_index *x = plan_index(p, pod->task, pod->index);

	plan_add_action(p, kind, pod->task, pod->index, reason, message)->uid = pod->uid;
	if (x && x->pod == pod)
		x->ends = true;
}

void plan_delete_pod(struct planner *p, const struct observed_pod *pod, const char *reason,
		     const char *message)
{
	if (!pod->deleting)
		plan_add_pod_action(p, ACTION_DELETE_POD, pod, reason, message);
}

void plan_requeue_at(struct planner *p, double at)
{
	if (at > p->now && (!p->plan->requeue_at || at < p->plan->requeue_at))
		p->plan->requeue_at = at;
}

bool plan_is_due(struct planner *p, double at)
{
	plan_requeue_at(p, at);
	return p->now >= at;
}

/* Volcano's group waits in Pending and Inqueue, the plug-ins' in PreScheduling and Scheduling. */
bool plan_gang_waits(const struct planner *p)
{
	static const char *const waiting[] = {"Pending",    "Inqueue", "PreScheduling",
					      "Scheduling", "Unknown", NULL};

	return mu_word_index(p->observed->group_phase, waiting) >= 0;
}

/* ---- status.tasks ---- */

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

/* Records the kernels that the task reported, else those that its pod was created for.  If the task
 * may choose better kernels, the latter do not replace recorded kernels. */
static void record_kernels(struct task_status *s, const struct task_spec *t,
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
		bool ends = x->ends || (x->pod && x->pod->finish_requested_at > 0);
		bool live = plan_pod_is_live(x->pod) && !(ends && plan_has_ended(p));

		x->status->active += live;
		x->status->ready += live && x->pod->ready;
		x->status->failed += x->pod && x->pod->phase == POD_FAILED;
		x->status->succeeded += x->record->done;
		if (x->pod)
			record_kernels(x->status, x->task, x->pod);
	}
}
