/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when a job ends, and what follows: the servers are asked to finish, pods are deleted, and
 * the job itself is deleted after its time to live. */
#include <stdio.h>

#include "operator/plan/plan_internal.h"

/* Time for tasks to end by themselves after the chief: workers, which may still talk to the
 * servers, and then all tasks. */
enum { WORKER_GRACE_S = 10, GRACE_S = 30 };

bool plan_has_ended(const struct planner *p)
{
	return p->status->phase == JOB_SUCCEEDED || p->status->phase == JOB_FAILED;
}

static void end(struct planner *p, enum job_phase phase, const char *reason, const char *message)
{
	bool good = phase == JOB_SUCCEEDED;

	p->status->phase = phase;
	p->status->completion_time = p->now;
	status_set(p, good ? COND_SUCCEEDED : COND_FAILED, true, reason, "%s", message);
	status_set(p, COND_RUNNING, false, reason, "the job has ended");
	status_set(p, COND_READY, false, reason, "the job has ended");
	if (p->status->conditions[COND_RESTARTING].set)
		status_set(p, COND_RESTARTING, false, reason, "the job has ended");
	p->status->conditions[COND_REFUSED] = (struct condition){0};
	plan_forget_departures(p);
}

/* The reason comes from the final report of the program, if there is one. */
static void succeed(struct planner *p)
{
	static const char *const phrases[END_REASONS] = {
	    [END_TARGET_REACHED] = "the training reached",
	    [END_VALIDATION_STOPPED] = "validation stopped the training at",
	    [END_FINISH_REQUESTED] = "a finish request stopped the training at",
	};
	const struct progress_report *f = &p->seen->progress;
	const char *phrase = phrases[f->reason];
	char text[200];
	int n;

	if (!phrase) {
		end(p, JOB_SUCCEEDED, "ChiefFinished", "the chief finished");
		return;
	}
	n = snprintf(text, sizeof text, "%s step %lld", phrase, (long long)f->step);
	if (f->target > 0)
		snprintf(text + n, sizeof text - (size_t)n, " of %lld", (long long)f->target);
	end(p, JOB_SUCCEEDED, end_reason_names[f->reason], text);
}

static bool all_done(const struct planner *p, const struct task_spec *t)
{
	for (int i = 0; i < t->replicas; i++)
		if (!plan_is_done(p, t, i))
			return false;
	return t->replicas > 0;
}

bool plan_has_succeeded(const struct planner *p)
{
	const struct task_spec *chief = job_spec_chief(p->spec);

	if (!chief)
		return false;
	if (p->spec->success == SUCCESS_CHIEF)
		return plan_is_done(p, chief, 0);
	for (unsigned t = 0; t < p->spec->n_tasks; t++)
		if ((p->spec->tasks[t].kind == TASK_CHIEF ||
		     p->spec->tasks[t].kind == TASK_WORKER) &&
		    p->spec->tasks[t].replicas && !all_done(p, &p->spec->tasks[t]))
			return false;
	return true;
}

/* An index whose last end was a failure that may not be repeated. */
static const struct index_status *fatal(const struct planner *p)
{
	for (unsigned i = 0; i < p->status->n_ledger; i++) {
		const struct index_status *e = &p->status->ledger[i];
		const struct task_spec *t = job_spec_task(p->spec, e->task);
		if (t && e->index < t->replicas && e->failures && !e->done && !e->uncounted &&
		    e->uid[0] && !plan_may_restart(p, t, e))
			return e;
	}
	return NULL;
}

/* True when the deadline has passed; else requests a reconcile at the deadline. */
static bool overdue(struct planner *p, double from, int64_t seconds)
{
	if (seconds < 0 || from <= 0)
		return false;
	if (p->now >= from + (double)seconds)
		return true;
	plan_requeue_at(p, from + (double)seconds);
	return false;
}

static const struct observed_pod *unscheduled(struct planner *p)
{
	for (unsigned i = 0; i < p->seen->n_pods; i++) {
		const struct observed_pod *pod = &p->seen->pods[i];
		const struct task_spec *t = job_spec_task(p->spec, pod->task);
		if (t && plan_task_counts(t) && pod->phase == POD_PENDING && !pod->deleting &&
		    overdue(p, pod->created, p->spec->scheduling_deadline))
			return pod;
	}
	return NULL;
}

/* The time since which the step has not changed; 0: not known.  The ready-made trainer reports its
 * steps, so its silence counts as a step that does not change. */
static double no_step_since(const struct planner *p)
{
	const struct condition *running = &p->status->conditions[COND_RUNNING];
	double since = p->seen->last_progress;

	if (!running->set || !running->status)
		return 0;
	if (since <= 0 && p->spec->program != PROGRAM_TRAIN)
		return 0;
	since = since > running->since ? since : running->since;
	return since > p->seen->first_observed_at ? since : p->seen->first_observed_at;
}

void plan_watch_progress(struct planner *p)
{
	overdue(p, no_step_since(p), p->spec->progress_deadline);
}

/* A new operator retries a rejected create before it ends the job: the quota may be larger now. */
enum { RETRY_FIRST_S = 5 };

static void judge_deadlines(struct planner *p)
{
	const struct observed_pod *pod;
	const struct condition *refused = &p->status->conditions[COND_REFUSED];
	char text[400];

	if (overdue(p, p->status->start_time, p->spec->active_deadline)) {
		snprintf(text, sizeof text, "ran longer than activeDeadlineSeconds: %lld",
			 (long long)p->spec->active_deadline);
		end(p, JOB_FAILED, "DeadlineExceeded", text);
	} else if (refused->status && overdue(p, refused->since, p->spec->scheduling_deadline) &&
		   (p->seen->first_observed_at <= 0 ||
		    overdue(p, p->seen->first_observed_at, RETRY_FIRST_S))) {
		snprintf(text, sizeof text,
			 "refused for longer than schedulingDeadlineSeconds: %lld (%.250s)",
			 (long long)p->spec->scheduling_deadline, refused->message);
		end(p, JOB_FAILED, "SchedulingDeadlineExceeded", text);
	} else if ((pod = unscheduled(p))) {
		snprintf(text, sizeof text,
			 "%.63s/%d was pending longer than schedulingDeadlineSeconds: %lld (%.48s)",
			 pod->task, pod->index, (long long)p->spec->scheduling_deadline,
			 pod->reason ? pod->reason : "no reason given");
		end(p, JOB_FAILED, "SchedulingDeadlineExceeded", text);
	} else if (overdue(p, no_step_since(p), p->spec->progress_deadline)) {
		snprintf(text, sizeof text, "no step for longer than progressDeadlineSeconds: %lld",
			 (long long)p->spec->progress_deadline);
		end(p, JOB_FAILED, "ProgressDeadlineExceeded", text);
	}
}

/* A pod of a job that has failed is kept unless cleanPodPolicy is All, and its log with it. */
static const char *failure_with_log(const struct planner *p, const struct index_status *e)
{
	bool kept = p->options->log_folder || p->spec->clean != CLEAN_ALL;

	return mu_arena_printf(&p->plan->arena, "%s%s%s", plan_failure_text(p, e),
			       kept ? "; why: " : "",
			       kept ? plan_log_text(p, e->task, e->index) : "");
}

void plan_decide_end(struct planner *p)
{
	const struct index_status *e;

	if (plan_has_succeeded(p)) {
		succeed(p);
	} else if ((e = fatal(p))) {
		end(p, JOB_FAILED, "TaskFailed", failure_with_log(p, e));
	} else if (p->status->restarts > p->spec->backoff_limit) {
		e = plan_last_failure(p);
		end(p, JOB_FAILED, "BackoffLimitExceeded",
		    mu_arena_printf(&p->plan->arena, "%d failures, more than backoffLimit: %d%s%s",
				    p->status->restarts, p->spec->backoff_limit, e ? "; " : "",
				    e ? failure_with_log(p, e) : ""));
	} else {
		judge_deadlines(p);
	}
}

static bool workers_live(const struct planner *p)
{
	for (unsigned t = 0; t < p->spec->n_tasks; t++)
		for (int i = 0; p->spec->tasks[t].kind != TASK_PS &&
				plan_task_counts(&p->spec->tasks[t]) && i < p->width[t];
		     i++) {
			const struct observed_pod *pod = p->pods[t][i];
			if (pod && !pod->deleting && pod->phase == POD_RUNNING)
				return true;
		}
	return false;
}

static void finish_server(struct planner *p, const struct observed_pod *pod)
{
	double due = p->status->completion_time + WORKER_GRACE_S;

	if (p->now < due && workers_live(p))
		plan_requeue_at(p, due);
	else
		plan_add_pod_action(p, ACTION_FINISH_POD, pod, "ChiefFinished",
				    "the chief has finished");
}

static void clean_pod(struct planner *p, const struct observed_pod *pod)
{
	const struct task_spec *t = job_spec_task(p->spec, pod->task);
	bool over = plan_pod_has_ended(pod);
	bool good = p->status->phase == JOB_SUCCEEDED;
	double due = p->status->completion_time + GRACE_S;

	if (pod->deleting)
		return;
	if (over && p->spec->clean != CLEAN_ALL)
		return;
	/* TensorBoard stays as long as the job: users read the curves after the end */
	if (t && !plan_task_counts(t) && p->spec->clean != CLEAN_ALL)
		return;
	if (!over && good && p->now < due) {
		plan_requeue_at(p, due);
		if (t && t->kind == TASK_PS)
			finish_server(p, pod);
		return;
	}
	if (p->spec->clean != CLEAN_NONE)
		plan_delete_pod(p, pod, "JobEnded",
				mu_arena_printf(&p->plan->arena,
						"the job has ended (cleanPodPolicy: %s)",
						clean_policy_names[p->spec->clean]));
}

void plan_clean_up(struct planner *p)
{
	for (unsigned i = 0; i < p->seen->n_pods; i++)
		clean_pod(p, &p->seen->pods[i]);
	if (p->spec->clean == CLEAN_ALL && !p->seen->n_pods && p->seen->service)
		plan_add_action(p, ACTION_DELETE_SERVICE, NULL, 0, "JobEnded", "the job has ended");
	if (overdue(p, p->status->completion_time, p->spec->ttl_seconds))
		plan_add_action(p, ACTION_DELETE_JOB, NULL, 0, "TimeToLive",
				"%lld seconds have passed since the job ended",
				(long long)p->spec->ttl_seconds);
}
