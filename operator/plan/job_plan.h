/* SPDX-License-Identifier: Apache-2.0 */
/* What to do next for a job: pure, and the same for the operator and for `muster run`.
 *
 *	job_plan(spec, options, observed, now) -> actions to take, in order, and the wanted status
 *
 * The caller looks at the world once (`observed`), calls job_plan, does the actions (each may fail:
 * the next look tells) and stores plan->status, which comes back as observed->status next time.
 * Nothing else is remembered, so a controller may die between any two lines.  plan->wake says when
 * to look again though nothing happens (deadlines, back-off, ttl); 0: no need.
 *
 * The rules: ps tasks first; the others when every ps is ready (a ps that fails later does not stop
 * workers that run).  The chief is chief/0, or worker/0.  When it ends with 0 (or, by
 * successPolicy AllWorkers, when every worker has) the job has Succeeded and the ps tasks are asked
 * to finish (FINISH_POD), up to 10 s later while workers still run.  A failed task is restarted as
 * its restart policy says, each real failure counting against backoffLimit; one that may not be
 * restarted fails the job.  A finished index never runs again.  Fewer replicas than pods: the
 * highest indices are deleted.  A pod that is on its way out on a node that is lost is forgotten
 * 15 s after its grace period, and its index alone starts anew.  A synchronous worker that was
 * scaled away and ended without a word is started once more to say it (plan_leave.c).
 */
#ifndef MUSTER_PLAN_JOB_PLAN_H
#define MUSTER_PLAN_JOB_PLAN_H

#include "operator/plan/job_spec.h"
#include "operator/plan/resolver.h"

enum pod_phase { POD_PENDING, POD_RUNNING, POD_SUCCEEDED, POD_FAILED, POD_UNKNOWN };

/* One pod (or process) of the job that exists now. */
struct observed_pod {
	const char *task;
	int index;
	const char *uid; /* what DELETE_POD and FINISH_POD carry back */
	enum pod_phase phase;
	bool ready;          /* its server answers */
	bool answered;       /* … or has done so before, as far as is known */
	bool deleting;       /* on its way out */
	int exit_code;       /* of FAILED and SUCCEEDED; -1 unknown */
	bool free;           /* failed by eviction, preemption or a lost node: costs no back-off */
	double deletion_due; /* when it should be gone at the latest; 0 unknown */
	bool killed;         /* ended because it was deleted: says nothing about its program */
	bool gpu;            /* asks for one, because its kernels do */
	bool leaves;         /* was started only to leave: plan_pod.leaves */
	const char *reason;  /* why it failed or waits: "OOMKilled", "ImagePullBackOff"; or NULL */
	const char *message; /* the last line of a program that failed, or NULL */
	const char *detail;  /* of a pod that waits: the object that is missing, or NULL */
	const char *node;    /* where it is, or NULL */
	const char *kernels; /* variant that its task has reported, or NULL */
	int epoch;           /* of the cluster that its task has, or will have; 0: unknown */
	double created;      /* seconds */
	double finished;     /* seconds; 0 when it has not */
};

enum job_phase {
	JOB_NEW, /* nothing done yet; "" in the resource */
	JOB_PENDING,
	JOB_RUNNING,
	JOB_RESTARTING,
	JOB_SUSPENDED,
	JOB_SUCCEEDED,
	JOB_FAILED,
};
extern const char *const job_phase_names[];
/* JOB_NEW for no name, and for one that is none of these. */
enum job_phase job_phase_of(const char *name);

/* What happened to one index; kept for those that finished or failed at least once. */
struct ledger_entry {
	char task[JOB_MAX_NAME + 1];
	int index;
	bool done;     /* ended with 0 and never runs again */
	int failures;  /* real ones */
	int attempts;  /* pods that have ended */
	int exit_code; /* of the last end; -1 unknown */
	char reason[48];
	char node[64];
	char uid[64];   /* of the last pod that was counted */
	double created; /* of that pod: an older one has been counted, whatever a stale list says */
	double retry_at; /* not before; 0 */
	bool free_end;   /* the last end was a failure that costs nothing */
	bool no_gpu;     /* auto or prefer-gpu has fallen back to the CPU */
	/* Of a synchronous worker that was scaled away: the others wait until it says that it
	 * leaves, in the job of so many workers that it was one of; 0: they do not. */
	int owes;
	int sent_off; /* how often a pod was made to say so for it */
};

struct task_status {
	char name[JOB_MAX_NAME + 1];
	int desired, ready, active, succeeded, failed;
	int joined;       /* so many of them may wait for each other: plan_leave.c; 0: none */
	char kernels[32]; /* variant chosen */
};

enum { JOB_CONDITIONS = 11 };
enum condition_type {
	COND_CREATED,
	COND_READY,
	COND_RUNNING,
	COND_RESTARTING,
	COND_SUSPENDED,
	COND_SUCCEEDED,
	COND_FAILED,
	COND_KERNELS, /* "KernelsMissing": a task cannot use the GPU or the kernels it was to use */
	COND_REFUSED, /* "PodsRefused": the server would not have an object of the job */
	COND_AWAITED, /* "WorkersAwaited": nobody could be sent to leave for who was scaled away */
	COND_STEP_RESET, /* "StepReset": parameters were lost, and the step went back */
};
extern const char *const condition_names[]; /* "Created", … */
struct condition {
	bool set;    /* is in the list at all */
	bool status; /* True or False */
	char reason[64];
	char message[512];
	double since; /* lastTransitionTime */
};

/* The certificates of the job, as far as everybody may know them. */
enum { PLAN_CERT_LIFE = 48 * 3600 }; /* seconds, unless the options say other */
struct security_status {
	char *secret;         /* its name; NULL: there is none yet */
	char *ca;             /* PEM, all that are trusted */
	double made, expires; /* of the tasks' certificate */
	double spread; /* when the last of `ca` joined, ahead of its certificate; 0: it came */
};

/* Why the training ended, in the words of the trainer's final report. */
enum end_reason {
	END_UNKNOWN,
	END_TARGET_REACHED,
	END_VALIDATION_STOPPED, /* the score of the test set did not improve */
	END_FINISH_REQUESTED,   /* POST /finish */
	END_TERMINATED,         /* SIGTERM */
	END_REASONS
};
extern const char *const end_reason_names[END_REASONS]; /* "", "TargetReached", … */
enum end_reason end_reason_of(const char *name);        /* NULL or unknown: END_UNKNOWN */

/* Progress of the training, as the chief's task reports it. */
struct progress_report {
	bool set;                /* false: nothing was reported */
	int64_t step, target;    /* target 0: not reported */
	double steps_per_second; /* this and the next three: NAN when not reported */
	double examples_per_second, loss, accuracy;
	char last_checkpoint[200], eta[200]; /* "" when not reported */
	enum end_reason reason;              /* of the final report; else END_UNKNOWN */
};
/* Reads a report.  It comes from the user's program: unknown members are skipped, and without a
 * valid step nothing is set. */
void progress_report_read(struct progress_report *out, const struct mu_doc_node *report);
void progress_report_parse(struct progress_report *out,
			   const char *json); /* NULL: nothing is set */
bool progress_report_same(const struct progress_report *a, const struct progress_report *b);

struct job_status {
	enum job_phase phase;
	struct condition conditions[JOB_CONDITIONS];
	double start_time, completion_time; /* 0: none */
	int restarts;                       /* real failures so far, against backoffLimit */
	int epoch;                          /* of the cluster; rises when its members change */
	char members[32];                   /* hash of the members that epoch stands for */
	int epoch_seen; /* every task of the cluster has this one at least; 0: not known */
	int64_t observed_generation;
	char selector[200]; /* label selector of the workers, for the scale subresource */
	struct task_status tasks[JOB_MAX_TASKS];
	unsigned n_tasks;
	struct ledger_entry *ledger;
	unsigned n_ledger;
	struct security_status security;
	struct progress_report progress;
};
/* The condition that says why the job does not get on and what to do; NULL: nothing is wrong, or
 * tasks merely come up.  Borrows s. */
const struct condition *job_status_trouble(const struct job_status *s);
void job_status_fini(struct job_status *s);
void job_status_copy(struct job_status *to, const struct job_status *from);
/* Status as the resource's `status` (JSON), and back (unknown parts are skipped; times are
 * RFC 3339).  The summary for the columns of kubectl is derived, and only written. */
void job_status_write(const struct job_status *s, struct mu_buf *out);
int job_status_read(struct job_status *out, const struct mu_doc_node *status, struct mu_err *err);
/* Records that the spec of this generation cannot be used.  A job that has not started fails until
 * its spec is corrected; a running job continues and is not ready; one that ended stays as it is.
 */
void job_status_set_invalid(struct job_status *s, int64_t generation, const char *why, double now);

/* Why a condition tells of a spec that cannot work, though the schema let it through. */
#define PLAN_INVALID_SPEC "InvalidSpec"

/* Reason of COND_RUNNING after a ps was replaced, until the first step. */
#define PLAN_RECOVERING "Recovering"

/* Reasons of pods that the operator derives from a message; no kubelet says them. */
#define POD_CLAIM_MISSING "VolumeClaimMissing"
#define POD_NO_EXECUTABLE "ExecutableNotFound"

struct observed_job {
	const struct observed_pod *pods;
	unsigned n_pods;
	bool policy;              /* the NetworkPolicy is there */
	double next_since;        /* seconds since whoever looks spread the CA of what SWITCH_SECRET
				     needs, by a clock that is never set; 0: has none */
	int group;                /* members of the gang scheduler's group; 0: there is none */
	const char *group_phase;  /* as its scheduler says; NULL or "" when it says nothing */
	const char *group_said;   /* why the group waits, in its scheduler's words; NULL */
	const char *refused;      /* why the server would not have an object last time; NULL */
	bool service;             /* the headless service is there */
	struct job_status status; /* as stored last time; zero at first */
	const struct node_info *nodes;
	unsigned n_nodes;
	struct progress_report progress; /* as reported last */
	double last_progress;            /* when the step last moved; 0 unknown */
	double watched_since; /* by who looks now: before that the step may have moved unseen */
};

struct plan_options {
	const char *image;     /* of muster-task, CPU */
	const char *image_gpu; /* with GPU kernels; NULL: auto uses no GPU, and gpu uses `image` */
	const char *image_board;  /* with tensorboard in it; NULL: no such pod is made */
	int port, http_port;      /* 0: the defaults */
	bool in_the_clear;        /* no TLS whatever the spec says */
	int cert_life;            /* seconds; 0: PLAN_CERT_LIFE */
	const char *token_digest; /* SHA-256 of the job's bearer token, for its tasks; NULL: none */
	/* Address of a task; NULL: "<job>-<task>-<index>.<job>.<namespace>.svc:<port>". */
	void (*address)(void *user, const struct job_spec *s, const char *task, int index,
			char *out, size_t size);
	void *user;
	const char *log_folder; /* of `muster run`: it has <task>-<index>.log; NULL: kubectl logs */
};

/* What a pod or process is to run. */
enum plan_role {
	ROLE_SERVER,  /* a task server and nothing else: ps, and everybody of PROGRAM_NONE */
	ROLE_TRAINER, /* a task server with the ready-made trainer beside it */
	ROLE_COMMAND, /* the user's command, which starts its own server or talks to ours */
	ROLE_BOARD,   /* TensorBoard, on http_port */
};
struct plan_env {
	const char *name, *value;
};
struct plan_pod {
	const char *name; /* <job>-<task>-<index>; hostname too.  The subdomain is the job's name */
	const char *task;
	int index;
	enum plan_role role;
	const char *image;
	const char *const *argv; /* NULL-terminated; argv[0] is the program */
	struct plan_env *env;    /* TF_CONFIG, MUSTER_*, NVIDIA_VISIBLE_DEVICES … */
	unsigned n_env;
	struct kernel_choice kernels;
	const struct task_spec *spec; /* template, resources */
	const char *volume_claim;     /* mounted at mount_path; NULL: none */
	const char *mount_path;
	const char *secret; /* mounted at JOB_TLS_PATH; NULL: none */
	int port, http_port;
	int members; /* of the gang; 0: none */
	int epoch;   /* of the cluster in its environment; 0: it gets none */
	bool leaves; /* only says for a worker that is gone that it leaves */
};

enum action_kind {
	ACTION_MAKE_SECRET,   /* These three go before all others, one in a plan */
	ACTION_SPREAD_CA,     /* likewise */
	ACTION_SWITCH_SECRET, /* likewise */
	ACTION_CHECK_SECRET,  /* made again under its name when it is gone */
	ACTION_CREATE_SERVICE,
	ACTION_CREATE_POLICY,
	ACTION_PUT_GROUP,  /* index: its members */
	ACTION_CREATE_POD, /* pod */
	ACTION_DELETE_POD, /* task, index, uid */
	ACTION_FORGET_POD, /* as DELETE_POD without waiting for a node that does not answer */
	ACTION_FINISH_POD, /* ask the server to end by itself with 0: task, index, uid */
	ACTION_DELETE_SERVICE,
	ACTION_DELETE_JOB, /* ttl has passed */
};
/* Of a service, a policy, a group or a pod. */
bool action_creates(enum action_kind kind);
struct plan_action {
	enum action_kind kind;
	const char *task;
	int index;
	const char *uid;
	const char *name;   /* of the pod */
	const char *reason; /* CamelCase, for an event */
	const char *message;
	struct plan_pod *pod;
};

struct job_plan {
	struct mu_arena arena;
	struct plan_action *actions;
	unsigned n_actions, cap_actions;
	struct job_status status;
	/* Once the status is stored, what those are to be told who have an older epoch (POST
	 * /cluster of a task); NULL: all have this one. */
	const char *notice;
	double wake;
	bool urgent;  /* the status reports a problem, or an end that somebody waits for */
	bool at_once; /* the status has a fact that the next reconcile needs */
};

/* The plan borrows spec and observed.  Never fails for what a manifest or a cluster can hold: what
 * cannot be done is a condition in the wanted status. */
struct job_plan *job_plan_new(const struct job_spec *spec, const struct plan_options *options,
			      const struct observed_job *observed, double now);
/* The pod of this action was refused: what the wanted status says of its making is taken back. */
void job_plan_not_made(struct job_plan *p, const struct plan_action *a);
/* Whether the wanted status is another than the one that was observed. */
bool job_plan_changes_status(const struct job_plan *p, const struct observed_job *observed);
void job_plan_free(struct job_plan *p);
/* What to do about an object that the server refused with these words. */
const char *job_plan_advice(const char *why);
/* Whether the server refuses it with these words until the manifest changes. */
bool job_plan_refusal_is_final(const char *why);
/* Whether some of its actions create. */
bool plan_creates(const struct job_plan *plan);
MU_AUTO_DEFINE(job_plan_free, struct job_plan)

#endif
