/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a plan: record terminated pods, decide whether the job has ended, clean up or create
 * and delete pods, set the conditions. */
#include "operator/plan/job_plan.h"

#include <stdio.h>

#include "operator/api/kinds.h"
#include "operator/plan/planner.h"

/* Seconds from the end of the grace period of a pod on a lost node to its forced deletion. */
enum { LOST_NODE_TIMEOUT_S = 15 };

/* Deletes the pods of indices beyond the replicas of the spec. */
static void delete_surplus(struct planner *p)
{
	for (unsigned i = 0; i < p->observed->n_pods; i++) {
		const struct observed_pod *pod = &p->observed->pods[i];
		const struct task_index *x = plan_index(p, pod->task, pod->index);

		if (!x || (!x->wanted && !plan_surplus_pod_stays(p, x, pod)))
			plan_delete_pod(
			    p, pod, "ScaledDown",
			    plan_text(p, "%.63s: the manifest asks for fewer", pod->task));
	}
}

static bool is_lost(const struct planner *p, const char *node)
{
	for (unsigned i = 0; i < p->observed->n_nodes; i++)
		if (strcmp(p->observed->nodes[i].name, node) == 0)
			return p->observed->nodes[i].lost;
	return p->observed->n_nodes > 0; /* the node was removed from the cluster */
}

/* Deletes terminating pods of lost nodes by force, because no kubelet there confirms their end. */
static void force_delete_lost(struct planner *p)
{
	for (unsigned i = 0; i < p->observed->n_pods; i++) {
		const struct observed_pod *pod = &p->observed->pods[i];

		if (!pod->deleting || pod->deletion_due <= 0 || !pod->node ||
		    !is_lost(p, pod->node) ||
		    !plan_is_due(p, pod->deletion_due + LOST_NODE_TIMEOUT_S))
			continue;
		plan_add_pod_action(
		    p, ACTION_FORCE_DELETE_POD, pod, "NodeLost",
		    plan_text(p,
			      "%.63s/%d: node %.100s does not respond; the pod is deleted by force",
			      pod->task, pod->index, pod->node));
	}
}

/* True when every ps runs and, with `ready`, its server answers. */
static bool all_ps(const struct planner *p, bool ready)
{
	plan_each_wanted (p, x)
		if (x->task->kind == TASK_PS &&
		    (!x->pod || x->pod->deleting || x->pod->phase != POD_RUNNING ||
		     (ready && !x->pod->ready)))
			return false;
	return true;
}

/* Deletes a pod that has ended, or that waits for a GPU that no node has. The next plan creates it
 * again. */
static void delete_ended_pod(struct planner *p, const struct task_index *x)
{
	const struct observed_pod *pod = x->pod;
	const char *fallback;

	if (pod->is_departure_pod) {
		if (!plan_departure_pod_stays(p, pod))
			plan_delete_pod(p, pod, "DepartureEnded",
					plan_text(p, "%s/%d runs again", pod->task, pod->index));
		return;
	}
	if (x->record->done)
		return;
	if ((fallback = plan_gpu_fallback(p, x)))
		plan_delete_pod(p, pod, "GpuFallback", fallback);
	else if (plan_pod_has_ended(pod))
		plan_delete_pod(p, pod, "Restarting",
				plan_text(p, "%s/%d %s and runs again", pod->task, pod->index,
					  pod->disrupted ? "was disrupted" : "has ended"));
}

/* Creates the PodGroup of a gang-scheduled job, or changes its size. */
static void put_group(struct planner *p)
{
	int members = 0; /* pods that the job has, or will have */
	bool missing = false;

	if (gangs[p->spec->gang].group == KINDS)
		return;
	plan_each_wanted (p, x) {
		bool is_member = plan_task_counts(x->task) && !x->record->done;

		members += is_member;
		missing = missing || (is_member && !x->pod);
	}
	/* The group keeps its size while all members exist.  A member that starts again must not
	 * wait for members that are done. */
	if (!p->observed->group || (members != p->observed->group && missing))
		plan_add_action(p, ACTION_PUT_GROUP, NULL, members, "Created",
				plan_text(p, "%d pods are placed together", members));
}

static void create_objects(struct planner *p)
{
	/* The pods of a gang are placed together: workers cannot wait until every ps is ready */
	bool workers_may_start = p->spec->gang != GANG_NONE || all_ps(p, true);
	bool secured = plan_security(p);

	if (p->spec->network_policy && !p->observed->policy)
		plan_add_action(p, ACTION_CREATE_POLICY, NULL, 0, "Created",
				"who may talk to the tasks of the job");
	put_group(p);
	if (!p->observed->service)
		plan_add_action(p, ACTION_CREATE_SERVICE, NULL, 0, "Created",
				"the name under which tasks find each other");
	plan_record_departures(p);
	delete_surplus(p);
	if (secured && all_ps(p, true))
		plan_create_departure_pods(p);
	/* TensorBoard comes last: a quota that rejects it rejects no other pod */
	plan_each_wanted (p, x) {
		if (x->task->kind == TASK_TENSORBOARD && !p->options->image_tensorboard)
			continue;
		if (x->pod)
			delete_ended_pod(p, x);
		else if (secured && !x->record->done &&
			 (workers_may_start || x->task->kind == TASK_PS))
			plan_create_pod(p, x, 0);
	}
}

/* e: the index that starts again, or NULL. */
static void set_restarting(struct planner *p, const struct index_status *e)
{
	status_set(p, COND_RESTARTING, e, e ? "TaskFailed" : "TasksRun",
		   "%s%s%d failures so far, backoffLimit %d", e ? plan_failure_text(p, e) : "",
		   e ? " and runs again; " : "", p->status->restarts, p->spec->backoff_limit);
}

/* Sets the phase and the conditions of a job that has not ended. */
static void set_phase(struct planner *p)
{
	int wanted = 0, ready = 0;
	bool chief_runs = !job_spec_chief(p->spec), chief_has_pod = false, chief_done = false;
	const struct index_status *restarting = NULL;
	const char *unready = ""; /* the first task that is not ready */

	plan_each_wanted (p, x) {
		const struct observed_pod *pod = x->pod;
		bool runs = pod && pod->phase == POD_RUNNING && !pod->deleting;
		bool up = runs && pod->ready && !pod->is_departure_pod;
		bool done = x->record->done;

		if (!plan_task_counts(x->task))
			continue;
		wanted++;
		ready += up || done;
		if (!up && !done && !*unready)
			unready = plan_text(p, "; waiting for %s/%d", x->task->name, x->index);
		/* A pod that was ready is back, even if its last probe failed: a program that
		 * ends stops its server first. */
		if (!restarting && x->record->attempts && !done && !up &&
		    !(runs && pod->was_ready && !pod->is_departure_pod))
			restarting = x->record;
		if (x == p->chief) {
			chief_runs = up || done;
			chief_done = done;
			chief_has_pod = runs;
		}
	}
	/* A reported step proves that the job runs, even if a readiness probe fails. A chief that
	 * stops its server is about to end. */
	bool steps = chief_has_pod && p->status->start_time > 0 &&
		     p->observed->last_progress >= p->status->start_time;
	bool running = (chief_runs && all_ps(p, true)) || (steps && all_ps(p, false));
	p->status->phase = restarting ? JOB_RESTARTING : running ? JOB_RUNNING : JOB_PENDING;
	status_set(p, COND_RUNNING, running,
		   !running     ? "Waiting"
		   : chief_done ? "ChiefIsDone"
				: "ChiefRuns",
		   !running     ? "waiting for chief and parameter servers"
		   : chief_done ? "the chief is done, other workers and the parameter servers run"
				: "chief and parameter servers run");
	if (running)
		plan_report_recovery(p);
	plan_report_step_reset(p);
	if (restarting || p->status->conditions[COND_RESTARTING].set)
		set_restarting(p, restarting);
	if (!p->kernels_missing && !plan_report_stuck_pod(p))
		status_set(p, COND_READY, ready == wanted, ready == wanted ? "AllReady" : "Waiting",
			   "%d of %d tasks are ready or have finished%s", ready, wanted, unready);
}

/* A problem is reported at once when it is new, and so is a job that is no longer ready. */
static void mark_urgent(struct planner *p)
{
	const struct condition *old = p->observed->status.conditions, *new = p->status->conditions;
	const struct condition *trouble = job_status_trouble(p->status);

	if ((old[COND_READY].status && !new[COND_READY].status) ||
	    (trouble && strcmp(trouble->reason, old[trouble - new].reason) != 0))
		p->plan->urgent = true;
}

/* Resets a job that failed for an invalid spec before it started: this spec is valid. */
static void clear_invalid_spec(struct job_status *s)
{
	struct condition *failed = &s->conditions[COND_FAILED];

	if (s->phase != JOB_FAILED || s->completion_time > 0 ||
	    strcmp(failed->reason, PLAN_INVALID_SPEC) != 0)
		return;
	*failed = (struct condition){0};
	s->phase = JOB_NEW;
}

static void plan_all(struct planner *p)
{
	struct job_status *s = p->status;

	s->observed_generation = p->spec->generation;
	snprintf(s->selector, sizeof s->selector, "muster.dev/job=%s,muster.dev/task=worker",
		 p->spec->name);
	clear_invalid_spec(s);
	status_set(p, COND_CREATED, true, "Accepted", "the job has been read");
	plan_record_terminated_pods(p);
	force_delete_lost(p);
	if (!plan_has_ended(p) && p->spec->suspend) {
		plan_suspend(p);
		return;
	}
	if (!plan_has_ended(p)) {
		if (s->conditions[COND_SUSPENDED].set)
			status_set(p, COND_SUSPENDED, false, "Resumed",
				   "spec.run.suspend is false");
		if (!s->start_time) /* the first status is written some seconds later */
			s->start_time = p->observed->status.phase == JOB_NEW &&
						p->observed->first_observed_at > 0
					    ? p->observed->first_observed_at
					    : p->now;
		plan_update_epoch(p);
		plan_decide_end(p);
	}
	if (plan_has_ended(p)) {
		plan_clean_up(p);
		return;
	}
	plan_report_gpu_image(p);
	create_objects(p);
	plan_membership_update(p);
	set_phase(p);
	plan_requeue_at_progress_deadline(p);
	plan_report_rejected(p);
	mark_urgent(p);
}

struct job_plan *job_plan_new(const struct job_spec *spec, const struct plan_options *options,
			      const struct observed_job *observed, double now)
{
	struct job_plan *plan = MU_NEW(struct job_plan);
	struct planner p = {.spec = spec,
			    .options = options,
			    .observed = observed,
			    .now = now,
			    .plan = plan,
			    .status = &plan->status};

	mu_arena_init(&plan->arena);
	job_status_copy(&plan->status, &observed->status);
	if (observed->progress.set)
		plan->status.progress = observed->progress;
	planner_init(&p);
	plan_name_tasks(&p);
	plan_all(&p);
	plan_count_tasks(&p);
	planner_fini(&p);
	return plan;
}

void job_plan_free(struct job_plan *p)
{
	if (!p)
		return;
	job_status_fini(&p->status);
	free(p->actions);
	mu_arena_fini(&p->arena);
	free(p);
}
