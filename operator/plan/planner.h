/* SPDX-License-Identifier: Apache-2.0 */
/* The state of job_plan_new while the policies run, and the interfaces of the policies.  Each file
 * calls only files that are listed above it here. */
#ifndef MU_OPERATOR_PLAN_PLANNER_H
#define MU_OPERATOR_PLAN_PLANNER_H

#include "lib/cluster/cluster_spec.h"
#include "operator/plan/job_plan.h"

enum { PLAN_BACKOFF_MAX_S = 60 }; /* between two attempts of an index */

/* An index of a task type: it is below the replicas, or it has a pod or an index status. */
struct task_index {
	const struct task_spec *task;
	struct task_status *status;     /* of the task type */
	struct index_status *record;    /* blank when nothing is recorded */
	const struct observed_pod *pod; /* NULL: none */
	int index;
	bool wanted; /* below the replicas of the spec */
	bool ends;   /* an action ends its pod, or will */
};

struct planner {
	const struct job_spec *spec;
	const struct plan_options *options;
	const struct observed_job *observed;
	double now;
	struct job_plan *plan;
	struct job_status *status;         /* &plan->status */
	struct task_index *indices;        /* by task, in the order of the spec, then by index */
	unsigned first[JOB_MAX_TASKS + 1]; /* of each task; the last is the number of indices */
	const struct task_index *chief;    /* NULL: there is none, or no replica of it */
	unsigned n_creates;                /* planned pods */
	bool kernels_missing;              /* an index has no kernels: COND_READY has the reason */
	struct mu_cluster cluster;         /* set by plan_update_epoch */
	/* The choice by task type, departure pod, index without GPU; "": not yet chosen */
	struct kernel_choice kernels[JOB_MAX_TASKS][2][2];
};

#define plan_each_index(p, x)                                                                      \
	for (struct task_index *x = (p)->indices, *end = x + (p)->first[(p)->spec->n_tasks];       \
	     x < end; x++)
#define plan_each_wanted(p, x)                                                                     \
	plan_each_index (p, x)                                                                     \
		if (x->wanted)

/* True when the job waits for tasks of this type and counts their failures. */
static inline bool plan_task_counts(const struct task_spec *t)
{
	return t->kind != TASK_TENSORBOARD;
}

#define PLAN_TENSORBOARD_REJECTED "TensorBoardRejected"
/* True for a rejection that prevents the job from ending. */
static inline bool plan_rejection_counts(const struct condition *rejected)
{
	return rejected->status && strcmp(rejected->reason, PLAN_TENSORBOARD_REJECTED) != 0;
}

static inline bool plan_has_ended(const struct planner *p)
{
	return p->status->phase >= JOB_SUCCEEDED;
}

static inline bool plan_has_tls(const struct planner *p)
{
	return p->spec->mtls && !p->options->plaintext;
}

static inline bool plan_pod_has_ended(const struct observed_pod *pod)
{
	return pod->phase == POD_SUCCEEDED || pod->phase == POD_FAILED;
}

/* True for a pod of a task that starts or runs. */
static inline bool plan_pod_is_live(const struct observed_pod *pod)
{
	return pod && !pod->deleting && !pod->is_departure_pod && !plan_pod_has_ended(pod);
}

/* Sets a condition of the wanted status, with a format and its arguments for the message. */
#define status_set(p, type, is, reason, ...)                                                       \
	condition_set(&(p)->status->conditions[type], is, (p)->now, reason, __VA_ARGS__)

/* ---- planner.c ---- */
void planner_init(struct planner *p);
/* Stores the index statuses that record something.  No task_index may be used afterwards. */
void planner_fini(struct planner *p);
/* NULL: the spec does not have this task, or nothing has this index. */
struct task_index *plan_index(const struct planner *p, const char *task, int index);
/* A text that lives as long as the plan. */
#define plan_text(p, ...) mu_arena_printf(&(p)->plan->arena, __VA_ARGS__)
const char *plan_pod_name(const struct planner *p, const char *task, int index);
struct plan_action *plan_add_action(struct planner *p, enum action_kind kind, const char *task,
				    int index, const char *reason, const char *message);
/* The action carries the pod's UID. */
void plan_add_pod_action(struct planner *p, enum action_kind kind, const struct observed_pod *pod,
			 const char *reason, const char *message);
void plan_delete_pod(struct planner *p, const struct observed_pod *pod, const char *reason,
		     const char *message); /* unless it is terminating */
void plan_requeue_at(struct planner *p, double at);
bool plan_gang_waits(const struct planner *p); /* the PodGroup is not scheduled yet */
/* True at `at` and later; before, requests a reconcile at that time. */
bool plan_is_due(struct planner *p, double at);

/* ---- plan_rejected.c ---- */
void plan_report_rejected(struct planner *p);

/* ---- plan_kernels.c ---- */
/* False when no node has the kernels that the task requests; COND_READY reports it. is_departure:
 * the pod is a departure pod, which computes nothing. */
bool plan_choose_kernels(struct planner *p, const struct task_index *x, bool is_departure,
			 struct kernel_choice *out);
/* Reports in COND_KERNELS that auto and prefer-gpu use no GPU because no image is configured. */
void plan_report_gpu_image(struct planner *p);
/* Records a fallback to the CPU when the pod cannot get or use its GPU and its index may use the
 * CPU.  Returns a sentence for an event, or NULL when there is no fallback. */
const char *plan_gpu_fallback(struct planner *p, const struct task_index *x);
/* Sets COND_KERNELS when the pod has ended because its node lacks the kernels. */
void plan_report_kernels(struct planner *p, const struct task_index *x);

/* ---- plan_success.c ---- */
/* True when the recorded ends make the job a success; its phase may be older. */
bool plan_has_succeeded(const struct planner *p);
/* True when the success of the job depends on the end of this task type. */
bool plan_decides_success(const struct job_spec *s, const struct task_spec *t);

/* ---- plan_restart.c ---- */
/* Records the end of each terminated pod in the status, once. */
void plan_record_terminated_pods(struct planner *p);
/* An index whose last failure may not be retried, or NULL.  Ignores an index that runs again: its
 * restart policy may have changed. */
const struct index_status *plan_fatal_failure(const struct planner *p);
/* The index that failed last, of the indices that are not done; NULL: none failed. */
const struct index_status *plan_last_failure(const struct planner *p);
/* "worker/1 ended with exit code 137 (OOMKilled: ...) on node n1". */
const char *plan_failure_text(const struct planner *p, const struct index_status *e);

/* ---- plan_pod.c ---- */
/* Raises the epoch when the members of the cluster have changed. */
void plan_update_epoch(struct planner *p);
/* The image of the task's pods. */
const char *plan_image(const struct planner *p, const struct task_spec *t, bool gpu);
/* Records the epoch that all tasks have seen, and plans the update of the others. */
void plan_membership_update(struct planner *p);
/* Plans a pod for the index, unless it has to wait or there are no kernels.
 * pending_departure_size: the size of the cluster that a departure pod leaves; 0: another pod. */
void plan_create_pod(struct planner *p, const struct task_index *x, int pending_departure_size);

/* ---- plan_departure.c: synchronous workers that were removed ---- */
/* Records the workers that may have joined, and a pending departure of each that was removed. */
void plan_record_departures(struct planner *p);
/* Records the departure of a pod beyond the replicas; true when the pod stays for now. */
bool plan_surplus_pod_stays(struct planner *p, const struct task_index *x,
			    const struct observed_pod *pod);
/* True for a departure pod that runs within its time limit. */
bool plan_departure_pod_stays(struct planner *p, const struct observed_pod *pod);
/* Plans a departure pod for each pending departure. */
void plan_create_departure_pods(struct planner *p);
void plan_forget_departures(struct planner *p);

/* ---- plan_security.c ---- */
/* Plans the work on the certificates; false when no pod may be created yet. */
bool plan_security(struct planner *p);

/* ---- plan_recovery.c ---- */
/* Reports in COND_RUNNING that no step was reported since a ps started again. */
void plan_report_recovery(struct planner *p);
/* Sets COND_STEP_RESET when the chief reports a smaller step than before. */
void plan_report_step_reset(struct planner *p);

/* ---- plan_hint.c ---- */
/* Reports in COND_READY which pod cannot start and what to do; false when no pod is stuck. */
bool plan_report_stuck_pod(struct planner *p);

/* ---- plan_suspend.c ---- */
void plan_suspend(struct planner *p);

/* ---- plan_finish.c ---- */
/* Ends the job when its chief is done, or it has failed. */
void plan_decide_end(struct planner *p);
/* Requests a reconcile at the progress deadline. */
void plan_requeue_at_progress_deadline(struct planner *p);
void plan_clean_up(struct planner *p);

/* ---- planner.c: status.tasks ---- */
void plan_name_tasks(struct planner *p);  /* one entry in status.tasks for each task type */
void plan_count_tasks(struct planner *p); /* after all actions were planned */

#endif
