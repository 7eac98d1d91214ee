/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files of job_plan; nobody else includes it. */
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
	bool kernels_missing; /* some index got no kernels; COND_READY says why */
	bool cluster_made;
	struct mu_cluster cluster;
	/* `wide` has so many tasks in `cluster`, instead of its replicas; NULL: nobody. */
	const struct task_spec *wide;
	int width_of_wide;
};

/* Whether the job waits for tasks of this type, and their failures are its own. */
static inline bool plan_counts(const struct task_spec *t)
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

void status_set(struct planner *p, enum condition_type type, bool status, const char *reason,
		const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* ---- plan_kernels.c ---- */
/* False when no node has the kernels that the task asks for; COND_READY then says so.  leaves: for
 * a departure pod, which computes nothing. */
bool plan_choose_kernels(struct planner *p, const struct task_spec *t, int index, bool leaves,
			 struct kernel_choice *out);
/* Says in COND_KERNELS that auto and prefer-gpu use no GPU for want of an image. */
void plan_report_gpu_image(struct planner *p);
/* When the pod cannot get or use its GPU and its index may use the CPU instead: records that in the
 * status and returns a sentence for an event, else NULL. */
const char *plan_gpu_fallback(struct planner *p, const struct task_spec *t,
			      const struct observed_pod *pod);
/* Sets COND_KERNELS when the pod has ended because its node lacks the kernels. */
void plan_report_kernels(struct planner *p, const struct task_spec *t,
			 const struct observed_pod *pod);

/* ---- plan_hint.c ---- */
/* Says in COND_READY which pod cannot start and what to do; false when none is stuck. */
bool plan_report_stuck_pod(struct planner *p);

/* ---- plan_pod.c ---- */
/* pending_departure_size: of how many workers it was one, when it is only to leave; else 0. */
struct plan_pod *plan_pod_render(struct planner *p, const struct task_spec *t, int index,
				 int pending_departure_size, const struct kernel_choice *kernels);
const char *plan_pod_name(struct planner *p, const char *task, int index);
/* Raises the epoch when the members are others than those it stands for. */
void plan_update_epoch(struct planner *p);
/* Who has seen it, and what the others are to be told. */
void plan_membership_update(struct planner *p);

/* ---- plan_security.c ---- */
bool plan_has_tls(const struct planner *p);
/* What the certificates need; false when no pod may be made yet. */
bool plan_security(struct planner *p);

/* ---- plan_failure.c ---- */
/* "worker/1 ended with exit code 137 (OOMKilled: ...) on node n1"; lives as long as the plan. */
const char *plan_failure_text(const struct planner *p, const struct index_status *e);
/* The command or the file that shows the log of a task; lives as long as the plan. */
const char *plan_log_text(const struct planner *p, const char *task, int index);
/* The index that has failed last, of those that are not done; NULL: none has. */
const struct index_status *plan_last_failure(const struct planner *p);

/* ---- plan_rejected.c ---- */
void plan_report_rejected(struct planner *p);

/* ---- plan_recovery.c ---- */
/* Says in COND_RUNNING that no step has come since a ps started again. */
void plan_report_recovery(struct planner *p);
/* Sets COND_STEP_RESET when the chief reports a smaller step than before. */
void plan_report_step_reset(struct planner *p);

/* ---- plan_restart.c ---- */
/* Seconds that an index waits after so many failures. */
double plan_backoff(int failures);
/* Takes what the pods that have ended tell into the ledger, each once. */
void plan_record_terminated_pods(struct planner *p);
/* Whether the last end of this index means that it runs again. */
bool plan_may_restart(const struct planner *p, const struct task_spec *t,
		      const struct index_status *e);
/* Whether index i of t is done for good. */
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
void plan_requeue_at(struct planner *p, double at);
/* Has a pod made for the index, unless it is too early or there are no kernels: false then. */
bool plan_create(struct planner *p, const struct task_spec *t, int index,
		 int pending_departure_size);

/* ---- plan_leave.c: synchronous workers that were scaled away ---- */
/* Notes who may have joined, and who of them was scaled away and pending_departure_size a word. */
void plan_note_departures(struct planner *p);
/* Notes what a pod of an index that is too many pending_departure_size; true when it stays for now.
 */
bool plan_surplus_pod_stays(struct planner *p, const struct task_spec *t,
			    const struct observed_pod *pod);
/* The same of one in whose place another is wanted again. */
bool plan_departure_pod_stays(struct planner *p, const struct observed_pod *pod);
/* Has pods made that leave for those that ended without. */
void plan_create_departure_pods(struct planner *p);
void plan_forget_departures(struct planner *p);

/* ---- plan_finish.c: when a job ends, and what follows ---- */
bool plan_has_ended(const struct planner *p);
bool plan_has_succeeded(
    const struct planner *p); /* the ledger says so; it may not have ended yet */
/* Ends the job when its chief is done, or it has failed. */
void plan_decide_end(struct planner *p);
/* Has the planner look again when steps that begin now would be missed. */
void plan_watch_progress(struct planner *p);
void plan_clean_up(struct planner *p);

#endif
