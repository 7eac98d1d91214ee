/* SPDX-License-Identifier: Apache-2.0 */
/* Graceful departure of synchronous workers.
 *
 * A synchronous worker that is scaled away must deregister, or its peers wait for its gradient
 * forever.  Workers deregister on SIGTERM.  A worker that is killed first, or whose node is lost,
 * does not, and no other pod replaces it.
 *
 * So the status records how many workers may have joined, as soon as one runs.  The status of an
 * index records a pending departure when its worker is scaled away.  A worker that ends with 0 or
 * 143 has deregistered.  For any other the planner creates a departure pod (MUSTER_LEAVE=1), which
 * deregisters in its place.  Deregistering twice is harmless. */
#include <math.h>

#include "operator/plan/planner.h"

enum {
	DEPARTURE_ATTEMPTS_MAX = 3,
	DEPARTURE_RETRY_S = 5,     /* between two attempts; grows with each attempt */
	DEPARTURE_TIMEOUT_S = 120, /* includes the placement and the start of the pod */
	EXIT_TERMINATED = 143,
};

/* Only the built-in trainer deregisters. */
static bool is_synchronous(const struct planner *p, const struct task_spec *t)
{
	return p->spec->program == PROGRAM_TRAIN && p->spec->train.sync && t->kind == TASK_WORKER;
}

/* 143 counts for a worker only: a departure pod may be terminated before it has deregistered. */
static bool has_deregistered(const struct observed_pod *pod)
{
	return plan_pod_has_ended(pod) &&
	       (pod->exit_code == 0 ||
		(pod->exit_code == EXIT_TERMINATED && !pod->is_departure_pod));
}

/* size: of the cluster that the worker leaves; 0: no departure is pending. */
static void set_pending_departure(struct planner *p, struct index_status *e, int size)
{
	e->pending_departure_size = size;
	e->departure_attempts = 0;
	e->retry_at = 0; /* it was the restart delay of the worker */
	p->plan->urgent = true;
}

static void begin_departure(struct planner *p, const struct task_index *x)
{
	int workers = x->status->desired; /* of the last plan */

	if (!x->record->done && !x->record->pending_departure_size)
		set_pending_departure(p, x->record, workers > x->index ? workers : x->index + 1);
}

static void end_departure(struct planner *p, const struct task_index *x)
{
	if (x->record->pending_departure_size)
		set_pending_departure(p, x->record, 0);
}

/* Records scheduled workers once a worker runs: they run soon, and each new number costs a write.
 */
static void record_joined(struct planner *p, unsigned t)
{
	struct task_status *s = &p->status->tasks[t];
	int ran = 0, placed = 0;

	for (unsigned i = p->first[t]; i < p->first[t + 1]; i++) {
		const struct task_index *x = &p->indices[i];

		if (!x->wanted || !x->pod || x->pod->is_departure_pod)
			continue;
		if (x->pod->phase != POD_PENDING)
			ran = placed = x->index + 1;
		else if (x->pod->node)
			placed = x->index + 1;
	}
	if (ran <= s->joined)
		return;
	s->joined = placed;
	p->plan->urgent = true;
}

void plan_record_departures(struct planner *p)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++) {
		struct task_status *s = &p->status->tasks[t];

		if (!is_synchronous(p, &p->spec->tasks[t]))
			continue;
		record_joined(p, t);
		for (; s->joined > p->spec->tasks[t].replicas; s->joined--) {
			const struct task_index *x = plan_index(p, s->name, s->joined - 1);

			if (x && (!x->pod || !has_deregistered(x->pod)))
				begin_departure(p, x);
		}
	}
}

bool plan_departure_pod_stays(struct planner *p, const struct observed_pod *pod)
{
	return !plan_pod_has_ended(pod) && !plan_is_due(p, pod->created + DEPARTURE_TIMEOUT_S);
}

/* Counts the failed pod as an attempt, once: the next pod is created after retry_at. */
static void count_attempt(struct planner *p, struct index_status *e, const struct observed_pod *pod)
{
	if (!e->pending_departure_size || pod->deleting || e->retry_at > pod->created)
		return;
	e->departure_attempts++;
	/* the API server's times of creation are whole seconds */
	e->retry_at = floor(p->now) + e->departure_attempts * DEPARTURE_RETRY_S;
	p->plan->urgent = true;
}

bool plan_surplus_pod_stays(struct planner *p, const struct task_index *x,
			    const struct observed_pod *pod)
{
	if (!is_synchronous(p, x->task))
		return false;
	if (has_deregistered(pod)) {
		end_departure(p, x);
	} else if (pod->is_departure_pod) {
		if (plan_departure_pod_stays(p, pod))
			return true;
		count_attempt(p, x->record, pod);
	} else if (pod->phase != POD_PENDING) {
		begin_departure(p, x);
	}
	return false;
}

static void report_awaited_worker(struct planner *p, const struct index_status *e)
{
	status_set(p, COND_WORKERS_AWAITED, true, "NotDeregistered",
		   "%.63s/%d was removed and did not deregister, and %d departure pods failed: the "
		   "other workers may wait for its gradient; scale %.63s to %d or more, or stop "
		   "the job (run.suspend) and start it again",
		   e->task, e->index, e->departure_attempts, e->task, e->index + 1);
}

void plan_create_departure_pods(struct planner *p)
{
	struct condition *awaited = &p->status->conditions[COND_WORKERS_AWAITED];
	const struct condition before = *awaited;

	*awaited = (struct condition){0};
	plan_each_index (p, x) {
		const struct index_status *e = x->record;

		if (!is_synchronous(p, x->task) || !e->pending_departure_size)
			continue;
		/* the worker runs again */
		if (x->wanted && x->pod && !x->pod->is_departure_pod &&
		    x->pod->phase == POD_RUNNING)
			end_departure(p, x);
		else if (!x->wanted && !x->pod && e->departure_attempts < DEPARTURE_ATTEMPTS_MAX)
			plan_create_pod(p, x, e->pending_departure_size);
		else if (!x->wanted && !x->pod)
			report_awaited_worker(p, e);
	}
	if (awaited->set && before.set)
		awaited->since = before.since;
	p->plan->urgent = p->plan->urgent || awaited->set != before.set;
}

/* Workers of a job that starts again wait only for each other. */
void plan_forget_departures(struct planner *p)
{
	plan_each_index (p, x) {
		x->status->joined = 0;
		end_departure(p, x);
	}
	p->status->conditions[COND_WORKERS_AWAITED] = (struct condition){0};
}
