/* SPDX-License-Identifier: Apache-2.0 */
/* Decides when a job ends. Then requests the servers to finish, deletes pods, and deletes the job
 * after its time to live. */
#include <stdio.h>

#include "operator/plan/planner.h"

/* A new operator retries a rejected create and polls the chief before a deadline ends the job. */
enum { RETRY_FIRST_S = 5 };
/* Times for tasks to end by themselves. */
enum {
	WORKER_GRACE_S = 10,   /* after the chief: workers may still use the servers */
	FINISH_TIMEOUT_S = 10, /* after the request to a server */
	GRACE_S = 30,          /* after the chief: all tasks */
};

static void end(struct planner *p, enum job_phase phase, const char *reason, const char *message)
{
	bool succeeded = phase == JOB_SUCCEEDED;

	p->status->phase = phase;
	p->status->completion_time = p->now;
	status_set(p, succeeded ? COND_SUCCEEDED : COND_FAILED, true, reason, "%s", message);
	status_set(p, COND_RUNNING, false, reason, "the job has ended");
	status_set(p, COND_READY, false, reason, "the job has ended");
	if (p->status->conditions[COND_RESTARTING].set)
		status_set(p, COND_RESTARTING, false, reason, "the job has ended");
	p->status->conditions[COND_REJECTED] = (struct condition){0};
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
	const struct progress_report *f = &p->observed->progress;
	const char *phrase = phrases[f->reason];
	const char *target = f->target > 0 ? plan_text(p, " of %lld", (long long)f->target) : "";

	if (phrase)
		end(p, JOB_SUCCEEDED, end_reason_names[f->reason],
		    plan_text(p, "%s step %lld%s", phrase, (long long)f->step, target));
	else
		end(p, JOB_SUCCEEDED, "ChiefFinished", "the chief finished");
}

/* True when the deadline has passed; else requests a reconcile at the deadline. */
static bool deadline_passed(struct planner *p, double from, int64_t seconds)
{
	return seconds >= 0 && from > 0 && plan_is_due(p, from + (double)seconds);
}

static const struct observed_pod *unscheduled(struct planner *p)
{
	for (unsigned i = 0; i < p->observed->n_pods; i++) {
		const struct observed_pod *pod = &p->observed->pods[i];
		const struct task_spec *t = job_spec_task(p->spec, pod->task);
		/* a departure pod has its own time limit */
		if (t && plan_task_counts(t) && !pod->is_departure_pod &&
		    pod->phase == POD_PENDING && !pod->deleting &&
		    deadline_passed(p, pod->created, p->spec->scheduling_deadline))
			return pod;
	}
	return NULL;
}

/* The time since which the step has not changed; 0: not known.  The built-in trainer reports its
 * steps, so its silence counts as a step that does not change. */
static double no_step_since(const struct planner *p)
{
	const struct condition *running = &p->status->conditions[COND_RUNNING];
	double since = p->observed->last_progress;

	if (!running->set || !running->status)
		return 0;
	if (since <= 0 && p->spec->program != PROGRAM_TRAIN)
		return 0;
	since = since > running->since ? since : running->since;
	return since > p->observed->first_observed_at ? since : p->observed->first_observed_at;
}

/* True when a poll after the deadline shows no step, or the chief is not ready and does not answer.
 * An operator whose requests are late or disabled, or that cannot reach a ready chief, does not
 * fail the job. */
static bool progress_deadline_passed(struct planner *p)
{
	double since = no_step_since(p);

	if (!deadline_passed(p, since, p->spec->progress_deadline))
		return false;
	if (p->observed->polled_at >= since + (double)p->spec->progress_deadline)
		return true;
	plan_requeue_at(p, p->now + RETRY_FIRST_S);
	return false;
}

void plan_requeue_at_progress_deadline(struct planner *p)
{
	deadline_passed(p, no_step_since(p), p->spec->progress_deadline);
}

static void check_deadlines(struct planner *p)
{
	const struct observed_pod *pod;
	const struct condition *rejected = &p->status->conditions[COND_REJECTED];
	long long scheduling = p->spec->scheduling_deadline;

	if (deadline_passed(p, p->status->start_time, p->spec->active_deadline))
		end(p, JOB_FAILED, "DeadlineExceeded",
		    plan_text(p, "ran longer than activeDeadlineSeconds: %lld",
			      (long long)p->spec->active_deadline));
	else if (plan_rejection_counts(rejected) &&
		 deadline_passed(p, rejected->since, scheduling) &&
		 (p->observed->first_observed_at <= 0 ||
		  deadline_passed(p, p->observed->first_observed_at, RETRY_FIRST_S)))
		end(p, JOB_FAILED, "SchedulingDeadlineExceeded",
		    plan_text(p,
			      "rejected for longer than schedulingDeadlineSeconds: %lld (%.250s)",
			      scheduling, rejected->message));
	else if ((pod = unscheduled(p)))
		end(p, JOB_FAILED, "SchedulingDeadlineExceeded",
		    plan_text(p,
			      "%.63s/%d was pending longer than schedulingDeadlineSeconds: %lld "
			      "(%.48s)",
			      pod->task, pod->index, scheduling,
			      pod->reason ? pod->reason : "no reason given"));
	else if (progress_deadline_passed(p))
		end(p, JOB_FAILED, "ProgressDeadlineExceeded",
		    plan_text(p, "no step for longer than progressDeadlineSeconds: %lld",
			      (long long)p->spec->progress_deadline));
}

/* The failure, and the command or the file that shows its log.  The pod of a failed job and its log
 * are kept unless cleanPodPolicy is All. */
static const char *failure_with_log(const struct planner *p, const struct index_status *e)
{
	const char *text = plan_failure_text(p, e);

	if (p->options->log_folder)
		return plan_text(p, "%s; why: %s/%s-%d.log", text, p->options->log_folder, e->task,
				 e->index);
	if (p->spec->clean == CLEAN_ALL)
		return text;
	return plan_text(p, "%s; why: kubectl logs -n %s %s", text, p->spec->namespace,
			 plan_pod_name(p, e->task, e->index));
}

void plan_decide_end(struct planner *p)
{
	const struct index_status *fatal = plan_fatal_failure(p), *last = plan_last_failure(p);

	if (plan_has_succeeded(p))
		succeed(p);
	else if (fatal)
		end(p, JOB_FAILED, "TaskFailed", failure_with_log(p, fatal));
	else if (p->status->restarts > p->spec->backoff_limit)
		end(p, JOB_FAILED, "BackoffLimitExceeded",
		    plan_text(p, "%d failures, more than backoffLimit: %d%s%s", p->status->restarts,
			      p->spec->backoff_limit, last ? "; " : "",
			      last ? failure_with_log(p, last) : ""));
	else
		check_deadlines(p);
}

/* True while a pod other than a server's or TensorBoard's has not ended, and is not overdue. */
static bool workers_remain(struct planner *p)
{
	for (unsigned i = 0; i < p->observed->n_pods; i++) {
		const struct observed_pod *pod = &p->observed->pods[i];
		const struct task_spec *t = job_spec_task(p->spec, pod->task);

		if (t && t->kind != TASK_PS && plan_task_counts(t) && !plan_pod_has_ended(pod) &&
		    (pod->deletion_due <= 0 ||
		     !plan_is_due(p, pod->deletion_due + FINISH_TIMEOUT_S)))
			return true;
	}
	return false;
}

/* Requests the server to finish, once.  If it still runs after FINISH_TIMEOUT_S, deletes its pod.
 */
static void finish_server(struct planner *p, const struct observed_pod *pod)
{
	if (workers_remain(p) && !plan_is_due(p, p->status->completion_time + WORKER_GRACE_S))
		return;
	if (pod->finish_requested_at <= 0)
		plan_add_pod_action(p, ACTION_FINISH_POD, pod, "ChiefFinished",
				    "the chief has finished");
	else if (p->spec->clean != CLEAN_NONE &&
		 plan_is_due(p, pod->finish_requested_at + FINISH_TIMEOUT_S))
		plan_delete_pod(p, pod, "JobEnded",
				plan_text(p, "%.63s/%d did not end within %d s of the request",
					  pod->task, pod->index, FINISH_TIMEOUT_S));
}

static void clean_pod(struct planner *p, const struct observed_pod *pod)
{
	const struct task_spec *t = job_spec_task(p->spec, pod->task);
	struct task_index *x = plan_index(p, pod->task, pod->index);
	bool has_ended = plan_pod_has_ended(pod);
	bool succeeded = p->status->phase == JOB_SUCCEEDED;

	if (pod->deleting)
		return;
	if (has_ended && !pod->sidecar_runs && p->spec->clean != CLEAN_ALL)
		return;
	/* TensorBoard stays as long as the job: users read the curves after the end */
	if (t && !plan_task_counts(t) && p->spec->clean != CLEAN_ALL)
		return;
	if (!has_ended && succeeded && !plan_is_due(p, p->status->completion_time + GRACE_S)) {
		if (t && t->kind == TASK_PS)
			finish_server(p, pod);
		return;
	}
	if (p->spec->clean == CLEAN_NONE)
		return;
	/* a trainer saves its variables when it is terminated, and the servers hold them */
	if (!has_ended && x && x->task->kind == TASK_PS && workers_remain(p))
		x->ends = true;
	else
		plan_delete_pod(p, pod, "JobEnded",
				plan_text(p, "the job has ended (cleanPodPolicy: %s)",
					  clean_policy_names[p->spec->clean]));
}

void plan_clean_up(struct planner *p)
{
	for (unsigned i = 0; i < p->observed->n_pods; i++)
		clean_pod(p, &p->observed->pods[i]);
	if (p->spec->clean == CLEAN_ALL && !p->observed->n_pods && p->observed->service)
		plan_add_action(p, ACTION_DELETE_SERVICE, NULL, 0, "JobEnded", "the job has ended");
	if (deadline_passed(p, p->status->completion_time, p->spec->ttl_seconds))
		plan_add_action(p, ACTION_DELETE_JOB, NULL, 0, "TimeToLive",
				plan_text(p, "%lld seconds have passed since the job ended",
					  (long long)p->spec->ttl_seconds));
}
