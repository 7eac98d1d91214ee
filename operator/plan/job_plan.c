/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a plan: record terminated pods, decide whether the job has ended, then clean up or
 * create and delete pods, and last describe the state in the conditions. */
#include "operator/plan/job_plan.h"

#include <stdarg.h>
#include <stdio.h>

#include "operator/plan/plan_internal.h"

/* Seconds after its grace period for which a pod may remain on a lost node. */
enum { LOST_NODE_TIMEOUT_S = 15 };

struct plan_action *plan_add_action(struct planner *p, enum action_kind kind, const char *task,
				    int index, const char *reason, const char *fmt, ...)
{
	struct job_plan *plan = p->plan;
	va_list ap;
	char text[256];

	if (plan->n_actions == plan->cap_actions) {
		plan->cap_actions = plan->cap_actions ? 2 * plan->cap_actions : 16;
		plan->actions =
		    mu_xrealloc(plan->actions, plan->cap_actions * sizeof plan->actions[0]);
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	struct plan_action *a = &plan->actions[plan->n_actions++];
	*a = (struct plan_action){
	    .kind = kind,
	    .task = task,
	    .index = index,
	    .name = task ? plan_pod_name(p, task, index) : NULL,
	    .reason = reason,
	    .message = mu_arena_strdup(&plan->arena, text),
	};
	return a;
}

void plan_requeue_at(struct planner *p, double at)
{
	if (at > p->now && (!p->plan->wake || at < p->plan->wake))
		p->plan->wake = at;
}

int plan_task_position(const struct job_spec *s, const char *name)
{
	for (unsigned t = 0; t < s->n_tasks; t++)
		if (strcmp(s->tasks[t].name, name) == 0)
			return (int)t;
	return -1;
}

static void index_pods(struct planner *p)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++)
		p->width[t] = p->spec->tasks[t].replicas;
	for (unsigned i = 0; i < p->seen->n_pods; i++) {
		int t = plan_task_position(p->spec, p->seen->pods[i].task);
		int index = p->seen->pods[i].index;
		if (t >= 0 && index >= p->width[t] && index < 10 * JOB_MAX_REPLICAS)
			p->width[t] = index + 1;
	}
	for (unsigned t = 0; t < p->spec->n_tasks; t++)
		p->pods[t] =
		    MU_ARENA_ARRAY(&p->plan->arena, const struct observed_pod *, p->width[t] + 1);
	for (unsigned i = 0; i < p->seen->n_pods; i++) {
		int t = plan_task_position(p->spec, p->seen->pods[i].task);
		int index = p->seen->pods[i].index;
		if (t >= 0 && index >= 0 && index < p->width[t])
			p->pods[t][index] = &p->seen->pods[i];
	}
}

void plan_add_pod_action(struct planner *p, enum action_kind kind, const struct observed_pod *pod,
			 const char *reason, const char *message)
{
	plan_add_action(p, kind, pod->task, pod->index, reason, "%s", message)->uid = pod->uid;
}

void plan_delete_pod(struct planner *p, const struct observed_pod *pod, const char *reason,
		     const char *message)
{
	if (!pod->deleting)
		plan_add_pod_action(p, ACTION_DELETE_POD, pod, reason, message);
}

static void delete_surplus(struct planner *p)
{
	for (unsigned i = 0; i < p->seen->n_pods; i++) {
		const struct observed_pod *pod = &p->seen->pods[i];
		int t = plan_task_position(p->spec, pod->task);
		if (t >= 0 && pod->index >= 0 && pod->index < p->spec->tasks[t].replicas)
			continue;
		if (t < 0 || pod->index < 0 || !plan_surplus_pod_stays(p, &p->spec->tasks[t], pod))
			plan_delete_pod(p, pod, "ScaledDown", "the manifest asks for fewer");
	}
}

static bool is_lost(const struct planner *p, const char *node)
{
	for (unsigned i = 0; i < p->seen->n_nodes; i++)
		if (strcmp(p->seen->nodes[i].name, node) == 0)
			return p->seen->nodes[i].lost;
	return p->seen->n_nodes > 0; /* taken out of the cluster */
}

/* Deletes pods of lost nodes by force: no kubelet confirms their end. */
static void force_delete_lost(struct planner *p)
{
	for (unsigned i = 0; i < p->seen->n_pods; i++) {
		const struct observed_pod *pod = &p->seen->pods[i];
		double due = pod->deletion_due + LOST_NODE_TIMEOUT_S;

		if (!pod->deleting || pod->deletion_due <= 0 || !pod->node ||
		    !is_lost(p, pod->node))
			continue;
		if (p->now < due) {
			plan_requeue_at(p, due);
			continue;
		}
		plan_add_pod_action(
		    p, ACTION_FORCE_DELETE_POD, pod, "NodeLost",
		    mu_arena_printf(&p->plan->arena,
				    "%.63s/%d: node %.100s does not answer, the pod is given up",
				    pod->task, pod->index, pod->node));
	}
}

/* True when every ps runs and, with `ready`, its server answers. */
static bool all_ps(const struct planner *p, bool ready)
{
	plan_each_index (p, task, i) {
		const struct observed_pod *pod = plan_pod_at(p, task, i);

		if (task->kind == TASK_PS &&
		    (!pod || pod->deleting || pod->phase != POD_RUNNING || (ready && !pod->ready)))
			return false;
	}
	return true;
}

/* Deletes the pod of an index when it has ended and runs again, or falls back to the CPU. */
static void reconcile_pod(struct planner *p, const struct task_spec *t,
			  const struct observed_pod *pod)
{
	const char *fallback;

	if (pod->is_departure_pod) {
		if (!plan_departure_pod_stays(p, pod))
			plan_delete_pod(p, pod, "HasLeft", "the task comes back");
		return;
	}
	if (plan_is_done(p, t, pod->index))
		return;
	if ((fallback = plan_gpu_fallback(p, t, pod)))
		plan_delete_pod(p, pod, "GpuFallback", fallback);
	else if (plan_pod_has_ended(pod))
		plan_delete_pod(p, pod, "Restarting", "the task has failed and runs again");
}

bool plan_create(struct planner *p, const struct task_spec *t, int index,
		 int pending_departure_size)
{
	const struct index_status *e = index_status_find(p->status, t->name, index);
	struct kernel_choice kernels;

	/* A later time is from before the clock was set back.  The delay of a departure pod is not
	 * that of a worker. */
	if (e && e->retry_at > p->now && e->retry_at <= p->now + PLAN_BACKOFF_MOST &&
	    (pending_departure_size || !e->pending_departure_size)) {
		plan_requeue_at(p, e->retry_at);
		return false;
	}
	if (plan_is_invalid(p, t) ||
	    !plan_choose_kernels(p, t, index, pending_departure_size > 0, &kernels))
		return false;
	struct plan_action *a = plan_add_action(p, ACTION_CREATE_POD, t->name, index, "Created",
						"kernels %s", kernels.reason);
	a->pod = plan_pod_render(p, t, index, pending_departure_size, &kernels);
	struct task_status *s = &p->status->tasks[t - p->spec->tasks];
	if (!pending_departure_size)
		memcpy(s->kernels, kernels.variant, sizeof s->kernels);
	return true;
}

/* The number of pods that the job has, or will have. */
static int members(const struct planner *p)
{
	int n = 0;

	plan_each_index (p, task, i)
		n += plan_task_counts(task) && !plan_is_done(p, task, i);
	return n;
}

static bool some_missing(const struct planner *p)
{
	plan_each_index (p, task, i)
		if (plan_task_counts(task) && !plan_pod_at(p, task, i) && !plan_is_done(p, task, i))
			return true;
	return false;
}

static void put_group(struct planner *p)
{
	int n = members(p);

	/* The group keeps its size while all members exist.  A member that starts again must not
	 * wait for members that are done. */
	if ((p->spec->gang == GANG_VOLCANO || p->spec->gang == GANG_SCHEDULER_PLUGINS) &&
	    (!p->seen->group || (n != p->seen->group && some_missing(p))))
		plan_add_action(p, ACTION_PUT_GROUP, NULL, n, "Created",
				"%d pods are placed together", n);
}

static void bring_up(struct planner *p)
{
	/* pods that are placed together cannot wait for the readiness of the servers among them */
	bool servers = p->spec->gang != GANG_NONE || all_ps(p, true);
	bool secured = plan_security(p);

	if (p->spec->network_policy && !p->seen->policy)
		plan_add_action(p, ACTION_CREATE_POLICY, NULL, 0, "Created",
				"who may talk to the tasks of the job");
	put_group(p);
	if (!p->seen->service)
		plan_add_action(p, ACTION_CREATE_SERVICE, NULL, 0, "Created",
				"the name under which tasks find each other");
	plan_note_departures(p);
	delete_surplus(p);
	plan_each_index (p, task, i) {
		const struct observed_pod *pod = plan_pod_at(p, task, i);

		if (task->kind == TASK_BOARD && !p->options->image_board)
			continue;
		if (pod)
			reconcile_pod(p, task, pod);
		else if (secured && !plan_is_done(p, task, i) && (servers || task->kind == TASK_PS))
			plan_create(p, task, i, 0);
	}
	if (secured && all_ps(p, true))
		plan_create_departure_pods(p);
}

static bool is_back(const struct observed_pod *pod)
{
	return pod && pod->answered && pod->phase == POD_RUNNING && !pod->deleting &&
	       !pod->is_departure_pod;
}

/* e: the index that starts again, or NULL. */
static void set_restarting(struct planner *p, const struct index_status *e)
{
	status_set(p, COND_RESTARTING, e, e ? "TaskFailed" : "TasksRun",
		   "%s%s%d failures so far, backoffLimit %d", e ? plan_failure_text(p, e) : "",
		   e ? " and runs again; " : "", p->status->restarts, p->spec->backoff_limit);
}

/* Sets the phase and the conditions of a job that has not ended. */
static void describe(struct planner *p)
{
	const struct task_spec *chief = job_spec_chief(p->spec);
	int wanted = 0, ready = 0;
	bool chief_runs = !chief, chief_there = false, chief_done = false;
	const struct index_status *again = NULL;
	char unready[96] = ""; /* the first task that is not ready */

	plan_each_index (p, task, i) {
		const struct observed_pod *pod = plan_pod_at(p, task, i);
		const struct index_status *e = index_status_find(p->status, task->name, i);
		bool up = pod && pod->ready && pod->phase == POD_RUNNING && !pod->deleting &&
			  !pod->is_departure_pod;
		bool done = e && e->done, is_chief = task == chief && i == 0;

		if (!plan_task_counts(task))
			continue;
		wanted++;
		ready += up || done;
		if (!up && !done && !unready[0])
			snprintf(unready, sizeof(unready), "; waiting for %.63s/%d", task->name, i);
		/* A pod that has answered is back, whatever its last probe says: a program that
		 * ends stops its server first. */
		if (!again && e && e->attempts && !done && !up && !is_back(pod))
			again = e;
		chief_runs = chief_runs || (is_chief && (up || done));
		chief_done = chief_done || (is_chief && done);
		chief_there =
		    chief_there || (is_chief && pod && !pod->deleting && pod->phase == POD_RUNNING);
	}
	/* A reported step proves that the job runs, whatever the readiness probes say.  A chief
	 * that stops its server is about to end. */
	bool steps = chief_there && p->status->start_time > 0 &&
		     p->seen->last_progress >= p->status->start_time;
	bool running = (chief_runs && all_ps(p, true)) || (steps && all_ps(p, false));
	p->status->phase = again ? JOB_RESTARTING : running ? JOB_RUNNING : JOB_PENDING;
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
	if (again || p->status->conditions[COND_RESTARTING].set)
		set_restarting(p, again);
	if (!p->kernels_missing && !plan_report_stuck_pod(p))
		status_set(p, COND_READY, ready == wanted, ready == wanted ? "AllReady" : "Waiting",
			   "%d of %d tasks are ready or have finished%s", ready, wanted, unready);
}

bool action_creates(enum action_kind kind)
{
	return kind == ACTION_CREATE_SERVICE || kind == ACTION_CREATE_POD ||
	       kind == ACTION_CREATE_POLICY || kind == ACTION_PUT_GROUP;
}

bool plan_creates(const struct job_plan *plan)
{
	for (unsigned i = 0; i < plan->n_actions; i++)
		if (action_creates(plan->actions[i].kind))
			return true;
	return false;
}

/* A problem is reported at once when it is new, and so is a job that is no longer ready. */
static void mark_urgent(struct planner *p)
{
	const struct condition *trouble = job_status_trouble(p->status);

	if (p->seen->status.conditions[COND_READY].status &&
	    !p->status->conditions[COND_READY].status)
		p->plan->urgent = true;
	if (trouble &&
	    strcmp(trouble->reason,
		   p->seen->status.conditions[trouble - p->status->conditions].reason) != 0)
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
	if (p->spec->deleting)
		return;
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
			s->start_time =
			    p->seen->status.phase == JOB_NEW && p->seen->first_observed_at > 0
				? p->seen->first_observed_at
				: p->now;
		plan_update_epoch(p);
		plan_decide_end(p);
	}
	if (plan_has_ended(p)) {
		plan_clean_up(p);
		return;
	}
	plan_report_gpu_image(p);
	bring_up(p);
	plan_membership_update(p);
	describe(p);
	plan_watch_progress(p);
	plan_report_rejected(p);
	mark_urgent(p);
}

struct job_plan *job_plan_new(const struct job_spec *spec, const struct plan_options *options,
			      const struct observed_job *observed, double now)
{
	struct job_plan *plan = MU_NEW(struct job_plan);
	struct planner p = {.spec = spec,
			    .options = options,
			    .seen = observed,
			    .now = now,
			    .plan = plan,
			    .status = &plan->status};

	mu_arena_init(&plan->arena);
	job_status_copy(&plan->status, &observed->status);
	if (observed->progress.set)
		plan->status.progress = observed->progress;
	index_pods(&p);
	plan_name_tasks(&p);
	plan_all(&p);
	plan_count_tasks(&p);
	mu_cluster_fini(&p.cluster);
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
