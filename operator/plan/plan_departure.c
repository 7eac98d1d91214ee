/* SPDX-License-Identifier: Apache-2.0 */
/* Graceful departure of synchronous workers.
 *
 * A synchronous worker that is scaled away must deregister, or its peers wait for its gradient
 * forever.  Workers deregister on SIGTERM.  A worker that is killed first, or whose node is lost,
 * does not, and no other pod replaces it.
 *
 * So the status records how many workers may have joined, as soon as one runs.  The history of an
 * index records a pending departure when its worker is scaled away.  A worker that ends with 0 or
 * 143 has deregistered.  For any other the planner creates a departure pod (MUSTER_LEAVE=1), which
 * deregisters in its place.  Deregistering twice is harmless.
 */
#include "operator/plan/plan_internal.h"

enum {
	DEPARTURE_ATTEMPTS_MAX = 3,
	DEPARTURE_RETRY_S = 5,     /* between two attempts; grows with each attempt */
	DEPARTURE_TIMEOUT_S = 120, /* includes the placement and the start of the pod */
	EXIT_TERMINATED = 143,
};

static bool is_synchronous(const struct planner *p, const struct task_spec *t)
{
	return p->spec->program == PROGRAM_TRAIN && p->spec->train.sync && t->kind == TASK_WORKER;
}

static bool has_deregistered(const struct observed_pod *pod)
{
	return plan_pod_has_ended(pod) &&
	       (pod->exit_code == 0 || pod->exit_code == EXIT_TERMINATED);
}

static void set_pending_departure(struct planner *p, const struct task_spec *t, int index)
{
	struct index_status *e = index_status_get(p->status, t->name, index);
	int workers = p->status->tasks[t - p->spec->tasks].desired;

	if (e->done || e->pending_departure_size)
		return;
	e->pending_departure_size = workers > index ? workers : index + 1;
	e->departure_attempts = 0;
	e->retry_at = 0; /* it was the delay of a worker */
	p->plan->record_now = true;
}

/* Placed workers count with the first that runs: they run within moments, and each new number costs
 * a write. */
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
	p->plan->record_now = true;
}

void plan_note_departures(struct planner *p)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		const struct task_spec *task = &p->spec->tasks[t];
		struct task_status *s = &p->status->tasks[t];

		if (!is_synchronous(p, task))
			continue;
		note_joined(p, task);
		for (; s->joined > task->replicas; s->joined--) {
			int i = s->joined - 1;
			const struct observed_pod *pod = i < p->width[t] ? p->pods[t][i] : NULL;

			/* a departure pod may be deleted before it has deregistered */
			if (!pod || !has_deregistered(pod))
				set_pending_departure(p, task, i);
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
	p->plan->record_now = true;
	index_status_drop_if_blank(p->status, e);
}

/* True when the pod stays for now. */
static bool departure_pod_stays(struct planner *p, const struct observed_pod *pod)
{
	double until = pod->created + DEPARTURE_TIMEOUT_S;

	if (plan_pod_has_ended(pod) || p->now >= until)
		return false;
	plan_requeue_at(p, until);
	return true;
}

bool plan_departure_pod_stays(struct planner *p, const struct observed_pod *pod)
{
	return pod->is_departure_pod && departure_pod_stays(p, pod);
}

/* Counts the failed pod as an attempt, once: the next pod is created after retry_at. */
static void count_attempt(struct planner *p, const struct observed_pod *pod)
{
	struct index_status *e = index_status_find(p->status, pod->task, pod->index);

	if (!e || !e->pending_departure_size || pod->deleting || e->retry_at > pod->created)
		return;
	e->departure_attempts++;
	e->retry_at = p->now + e->departure_attempts * DEPARTURE_RETRY_S;
	p->plan->record_now = true;
}

bool plan_surplus_pod_stays(struct planner *p, const struct task_spec *t,
			    const struct observed_pod *pod)
{
	if (!is_synchronous(p, t))
		return false;
	if (has_deregistered(pod)) {
		clear_pending_departure(p, t, pod->index);
	} else if (pod->is_departure_pod) {
		if (departure_pod_stays(p, pod))
			return true;
		count_attempt(p, pod);
	} else if (pod->phase != POD_PENDING) {
		set_pending_departure(p, t, pod->index);
	}
	return false;
}

static void report_stuck_departure(struct planner *p, const struct index_status *e)
{
	p->plan->urgent = true;
	status_set(p, COND_DEPARTURE_STUCK, true, "CannotLeave",
		   "%.63s/%d was removed and did not deregister, and %d departure pods failed: the "
		   "other workers may wait for its gradient; scale %.63s to %d or more, or stop "
		   "the job (run.suspend) and start it again",
		   e->task, e->index, e->departure_attempts, e->task, e->index + 1);
}

static void create_departure_pod(struct planner *p, const struct task_spec *t,
				 struct index_status *e)
{
	if (e->departure_attempts >= DEPARTURE_ATTEMPTS_MAX)
		report_stuck_departure(p, e);
	else
		plan_create(p, t, e->index, e->pending_departure_size);
}

void plan_create_departure_pods(struct planner *p)
{
	struct condition *stuck = &p->status->conditions[COND_DEPARTURE_STUCK];
	const struct condition was = *stuck;

	*stuck = (struct condition){0};
	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		const struct task_spec *task = &p->spec->tasks[t];

		for (unsigned i = is_synchronous(p, task) ? p->status->n_ledger : 0; i-- > 0;) {
			struct index_status *e = &p->status->ledger[i];
			const struct observed_pod *pod;

			if (strcmp(e->task, task->name) != 0)
				continue;
			if (!e->pending_departure_size)
				continue;
			pod = e->index < p->width[t] ? p->pods[t][e->index] : NULL;
			if (e->index >= task->replicas && !pod)
				create_departure_pod(p, task, e);
			/* the worker is back and takes part again */
			if (e->index < task->replicas && pod && !pod->is_departure_pod &&
			    pod->phase == POD_RUNNING)
				clear_pending_departure(p, task, e->index);
		}
	}
	if (stuck->set && was.set)
		stuck->since = was.since;
}

/* Workers of a job that starts again wait only for each other. */
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
