/* SPDX-License-Identifier: Apache-2.0 */
/* Workers who train in step are waited for until they say that they leave, which one does when it
 * gets a SIGTERM.  One that is scaled away may end in another way: it was killed just then, or its
 * node was lost, or it had been deleted by force and its successor did not run yet.  Nobody would
 * start it again, and the others would wait for ever.  So the status has how many may have joined,
 * stored as soon as one runs, and the ledger notes of each of them that is scaled away that it
 * pending_departure_size a word; one that ends as leavers do has given it, and in the place of any
 * other a pod is made that takes part only to leave (MUSTER_LEAVE).
 *
 * A word too many does no harm: where nobody saw how a pod ended, one is sent.
 */
#include "operator/plan/plan_internal.h"

enum {
	MOST_SEND_OFFS = 3,
	RETRY_SECONDS = 5,   /* from the making of one to that of the next, and longer each time */
	LEAVE_SECONDS = 120, /* from its making; it has to be placed and started as any pod */
	EXIT_TERMINATED = 143
};

static bool in_step(const struct planner *p, const struct task_spec *t)
{
	return p->spec->program == PROGRAM_TRAIN && p->spec->train.sync && t->kind == TASK_WORKER;
}

static bool has_left(const struct observed_pod *pod)
{
	return (pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED) &&
	       (pod->exit_code == 0 || pod->exit_code == EXIT_TERMINATED);
}

static void owe(struct planner *p, const struct task_spec *t, int index)
{
	struct index_status *e = index_status_get(p->status, t->name, index);
	int workers = p->status->tasks[t - p->spec->tasks].desired;

	if (e->done || e->pending_departure_size)
		return;
	e->pending_departure_size = workers > index ? workers : index + 1;
	e->departure_attempts = 0;
	e->retry_at = 0; /* that was for who came back to work */
	p->plan->write_status_first = true;
}

/* Those that are placed count with the first that runs: they follow within moments, and each number
 * costs a write. */
static void note_joined(struct planner *p, const struct task_spec *t)
{
	const struct observed_pod *const *pods = p->pods[t - p->spec->tasks];
	struct task_status *s = &p->status->tasks[t - p->spec->tasks];
	int ran = 0, placed = 0;

	for (int i = 0; i < t->replicas; i++) {
		if (!pods[i] || pods[i]->is_departure_pod)
			continue;
		if (pods[i]->phase != POD_PENDING)
			ran = placed = i + 1;
		else if (pods[i]->node)
			placed = i + 1;
	}
	if (ran <= s->joined)
		return;
	s->joined = placed;
	p->plan->write_status_first = true;
}

void plan_note_departures(struct planner *p)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		const struct task_spec *task = &p->spec->tasks[t];
		struct task_status *s = &p->status->tasks[t];

		if (!in_step(p, task))
			continue;
		note_joined(p, task);
		for (; s->joined > task->replicas; s->joined--) {
			int i = s->joined - 1;
			const struct observed_pod *pod = i < p->width[t] ? p->pods[t][i] : NULL;

			/* one that was sent to leave may have been made by a look whose
			 * status was never stored, and may go before it has left */
			if (!pod || !has_left(pod))
				owe(p, task, i);
		}
	}
}

static void clear_pending_departure(struct planner *p, const struct task_spec *t, int index)
{
	struct index_status *e = index_status_find(p->status, t->name, index);

	if (!e || !e->pending_departure_size)
		return;
	e->pending_departure_size = e->departure_attempts = 0;
	e->retry_at = 0;
	p->plan->write_status_first = true;
	index_status_drop_if_blank(p->status, e);
}

/* True when the pod stays for now. */
static bool departure_pod_stays(struct planner *p, const struct observed_pod *pod)
{
	double until = pod->created + LEAVE_SECONDS;

	if (pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED || p->now >= until)
		return false;
	plan_requeue_at(p, until);
	return true;
}

bool plan_departure_pod_stays(struct planner *p, const struct observed_pod *pod)
{
	return pod->is_departure_pod && departure_pod_stays(p, pod);
}

bool plan_surplus_pod_stays(struct planner *p, const struct task_spec *t,
			    const struct observed_pod *pod)
{
	if (!in_step(p, t))
		return false;
	if (has_left(pod))
		clear_pending_departure(p, t, pod->index);
	else if (pod->is_departure_pod)
		return departure_pod_stays(p, pod);
	else if (pod->phase != POD_PENDING)
		owe(p, t, pod->index);
	return false;
}

static void report_stuck_departure(struct planner *p, const struct index_status *e)
{
	p->plan->urgent = true;
	status_set(p, COND_DEPARTURE_STUCK, true, "CannotLeave",
		   "%.63s/%d was scaled away without a word and nobody could be sent to leave for "
		   "it (%d tries): the other workers may wait for it; scale %.63s to %d or more, "
		   "or stop the job (run.suspend) and start it again",
		   e->task, e->index, e->departure_attempts, e->task, e->index + 1);
}

static void create_departure_pod(struct planner *p, const struct task_spec *t,
				 struct index_status *e)
{
	if (e->departure_attempts >= MOST_SEND_OFFS) {
		report_stuck_departure(p, e);
		return;
	}
	if (!plan_create(p, t, e->index, e->pending_departure_size))
		return;
	e->departure_attempts++;
	e->retry_at = p->now + e->departure_attempts * RETRY_SECONDS;
	p->plan->write_status_first = true;
}

/* The tries are for pods that end without having left, not for what a quota or a rule refuses: that
 * is told on its own, and may take as long as it likes. */
void job_plan_not_made(struct job_plan *plan, const struct plan_action *a)
{
	struct index_status *e = a->pod && a->pod->is_departure_pod
				     ? index_status_find(&plan->status, a->task, a->index)
				     : NULL;

	if (!e || !e->departure_attempts)
		return;
	e->departure_attempts--;
	e->retry_at = 0;
}

void plan_create_departure_pods(struct planner *p)
{
	struct condition *said = &p->status->conditions[COND_DEPARTURE_STUCK];
	const struct condition was = *said;

	*said = (struct condition){0};
	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		const struct task_spec *task = &p->spec->tasks[t];

		for (unsigned i = in_step(p, task) ? p->status->n_ledger : 0; i-- > 0;) {
			struct index_status *e = &p->status->ledger[i];
			const struct observed_pod *pod;

			if (strcmp(e->task, task->name) != 0)
				continue;
			if (!e->pending_departure_size)
				continue;
			pod = e->index < p->width[t] ? p->pods[t][e->index] : NULL;
			if (e->index >= task->replicas && !pod)
				create_departure_pod(p, task, e);
			/* back in the job, it takes part again */
			if (e->index < task->replicas && pod && !pod->is_departure_pod &&
			    pod->phase == POD_RUNNING)
				clear_pending_departure(p, task, e->index);
		}
	}
	if (said->set && was.set)
		said->since = was.since;
}

/* Whoever starts the job anew waits only for those that there are then. */
void plan_forget_departures(struct planner *p)
{
	for (unsigned i = p->status->n_ledger; i-- > 0;) {
		struct index_status *e = &p->status->ledger[i];

		if (!e->pending_departure_size)
			continue;
		e->retry_at = 0;
		e->pending_departure_size = e->departure_attempts = 0;
		index_status_drop_if_blank(p->status, e);
	}
	for (unsigned t = 0; t < p->status->n_tasks; t++)
		p->status->tasks[t].joined = 0;
	p->status->conditions[COND_DEPARTURE_STUCK] = (struct condition){0};
}
