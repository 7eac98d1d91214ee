/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of job_plan. */
#ifndef MUSTER_PLAN_INTERNAL_H
#define MUSTER_PLAN_INTERNAL_H

#include "lib/cluster/cluster_spec.h"
#include "operator/plan/job_plan.h"

enum { PLAN_BACKOFF_MOST = 60 }; /* seconds between two tries of an index */

struct planner {
	const struct job_spec *spec;
	const struct plan_options *options;
	const struct observed_job *seen;
	double now;
	struct job_plan *plan;
	struct job_status *status; /* &plan->status */
	/* pods[t][i]: the pod of index i of spec->tasks[t], or NULL; i < width[t]. */
	const struct observed_pod **pods[JOB_MAX_TASKS];
	int width[JOB_MAX_TASKS];
	bool kernels_missing;      /* some index got no kernels: COND_READY says why */
	struct mu_cluster cluster; /* set by plan_update_epoch */
};

/* True when the job waits for tasks of this type and counts their failures. */
static inline bool plan_task_counts(const struct task_spec *t)
{
	return t->kind != TASK_BOARD;
}

/* Each index of each task type that the spec asks for. */
#define plan_each_index(p, task, i)                                                                \
	for (const struct task_spec *task = (p)->spec->tasks;                                      \
	     task < (p)->spec->tasks + (p)->spec->n_tasks; task++)                                 \
		for (int i = 0; i < task->replicas; i++)

/* The pod of an index, or NULL. */
static inline const struct observed_pod *plan_pod_at(const struct planner *p,
						     const struct task_spec *t, int index)
{
	return p->pods[t - p->spec->tasks][index];
}

static inline bool plan_pod_has_ended(const struct observed_pod *pod)
{
	return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

/* Sets a condition of the wanted status, with a format and its arguments for the message. */
#define status_set(p, type, is, reason, ...)                                                       \
	condition_set(&(p)->status->conditions[type], is, (p)->now, reason, __VA_ARGS__)

/* ---- plan_kernels.c ---- */
/* False when no node has the kernels that the task asks for; COND_READY then says so.  leaves: the
 * pod is a departure pod, which computes nothing. */
bool plan_choose_kernels(struct planner *p, const struct task_spec *t, int index, bool leaves,
			 struct kernel_choice *out);
/* Reports in COND_KERNELS that auto and prefer-gpu use no GPU because no image is configured. */
void plan_report_gpu_image(struct planner *p);
/* Records a fallback to the CPU when the pod cannot get or use its GPU and its index may use the
 * CPU.  Returns a sentence for an event, or NULL when there is no fallback. */
const char *plan_gpu_fallback(struct planner *p, const struct task_spec *t,
			      const struct observed_pod *pod);
/* Sets COND_KERNELS when the pod has ended because its node lacks the kernels. */
void plan_report_kernels(struct planner *p, const struct task_spec *t,
			 const struct observed_pod *pod);

/* ---- plan_hint.c ---- */
/* Reports in COND_READY which pod cannot start and what to do; false when no pod is stuck. */
bool plan_report_stuck_pod(struct planner *p);

/* ---- plan_pod.c ---- */
/* pending_departure_size: the size of the cluster that a departure pod leaves; 0: another pod. */
struct plan_pod *plan_pod_render(struct planner *p, const struct task_spec *t, int index,
				 int pending_departure_size, const struct kernel_choice *kernels);
const char *plan_pod_name(struct planner *p, const char *task, int index);
/* Raises the epoch when the members of the cluster have changed. */
void plan_update_epoch(struct planner *p);
/* Records the epoch that all tasks have seen, and plans the update of the others. */
void plan_membership_update(struct planner *p);

/* ---- plan_security.c ---- */
bool plan_has_tls(const struct planner *p);
/* Plans the work on the certificates; false when no pod may be created yet. */
bool plan_security(struct planner *p);

/* ---- plan_failure.c ---- */
/* "worker/1 ended with exit code 137 (OOMKilled: ...) on node n1"; lives as long as the plan. */
const char *plan_failure_text(const struct planner *p, const struct index_status *e);
/* The command or the file that shows the log of a task; lives as long as the plan. */
const char *plan_log_text(const struct planner *p, const char *task, int index);
/* The index that failed last, of the indices that are not done; NULL: none failed. */
const struct index_status *plan_last_failure(const struct planner *p);

/* ---- plan_rejected.c ---- */
void plan_report_rejected(struct planner *p);
/* True when the API server rejects the pods of this task until the spec changes. */
bool plan_is_invalid(const struct planner *p, const struct task_spec *t);

/* ---- plan_recovery.c ---- */
/* Reports in COND_RUNNING that no step was reported since a ps started again. */
void plan_report_recovery(struct planner *p);
/* Sets COND_STEP_RESET when the chief reports a smaller step than before. */
void plan_report_step_reset(struct planner *p);

/* ---- plan_restart.c ---- */
/* The delay in seconds before the next attempt of an index. */
double plan_backoff(int failures);
/* Records the end of each terminated pod in the status, once. */
void plan_record_terminated_pods(struct planner *p);
/* True when the restart policy allows another attempt after the last end. */
bool plan_may_restart(const struct planner *p, const struct task_spec *t,
		      const struct index_status *e);
/* True when the index has ended and never runs again. */
bool plan_is_done(const struct planner *p, const struct task_spec *t, int index);

/* ---- plan_suspend.c ---- */
void plan_suspend(struct planner *p);

/* ---- plan_counts.c ---- */
void plan_name_tasks(struct planner *p);  /* one entry in status.tasks for each task type */
void plan_count_tasks(struct planner *p); /* after all actions were planned */

/* ---- job_plan.c ---- */
int plan_task_position(const struct job_spec *s, const char *name); /* -1: there is none */
void plan_delete_pod(struct planner *p, const struct observed_pod *pod, const char *reason,
		     const char *message);
struct plan_action *plan_add_action(struct planner *p, enum action_kind kind, const char *task,
				    int index, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 6, 7)));
/* The action carries the pod's UID. */
void plan_add_pod_action(struct planner *p, enum action_kind kind, const struct observed_pod *pod,
			 const char *reason, const char *message);
void plan_requeue_at(struct planner *p, double at);
/* Plans a pod for the index; false during its back-off, and when there are no kernels. */
bool plan_create(struct planner *p, const struct task_spec *t, int index,
		 int pending_departure_size);

/* ---- plan_departure.c: synchronous workers that were scaled away ---- */
/* Records the workers that may have joined, and a pending departure of each that was removed. */
void plan_note_departures(struct planner *p);
/* Records the departure of a pod beyond the replicas; true when the pod stays for now. */
bool plan_surplus_pod_stays(struct planner *p, const struct task_spec *t,
			    const struct observed_pod *pod);
/* Likewise for a departure pod whose index is wanted again. */
bool plan_departure_pod_stays(struct planner *p, const struct observed_pod *pod);
/* Plans a departure pod for each pending departure. */
void plan_create_departure_pods(struct planner *p);
void plan_forget_departures(struct planner *p);

/* ---- plan_finish.c: when a job ends, and what follows ---- */
bool plan_has_ended(const struct planner *p);
bool plan_has_succeeded(
    const struct planner *p); /* the recorded ends say so; the phase may be older */
/* Ends the job when its chief is done, or it has failed. */
void plan_decide_end(struct planner *p);
/* Requests a reconcile at the progress deadline. */
void plan_watch_progress(struct planner *p);
void plan_clean_up(struct planner *p);

#endif
