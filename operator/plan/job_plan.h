/* SPDX-License-Identifier: Apache-2.0 */
/* Plans the next actions for a job.  The function is pure and the same for the operator and for
 * `muster run`:
 *
 *	job_plan_new(spec, options, observed, now) -> actions, in order, and the wanted status
 *
 * The caller observes the job once, plans, executes the actions and stores plan->status.  An action
 * may fail: the next plan repeats it.  The stored status is the input observed->status.  There is
 * no other state, so a controller may crash at any time.
 *
 * plan->requeue_at is the time of the next plan if nothing changes until then (deadlines, back-off,
 * time to live); 0: none.
 *
 * The rules:
 *  - Servers (ps) start first, other tasks when every server is ready.  A server that fails later
 *    does not stop running workers.
 *  - The chief is chief/0, or worker/0.  The job succeeds when the chief ends with 0; with
 *    successPolicy AllWorkers, when every worker has.  Then the servers are asked to finish
 *    (FINISH_POD), up to 10 s later while workers still run.
 *  - A failed task restarts according to its restart policy.  Each real failure counts against
 *    backoffLimit.  A failure that may not be repeated fails the job.
 *  - An index that is done never runs again.  Pods beyond the replicas are deleted.
 *  - A terminating pod on a lost node is deleted by force 15 s after its grace period.
 *  - A synchronous worker that is scaled away deregisters (plan_departure.c). */
#ifndef MU_OPERATOR_PLAN_JOB_PLAN_H
#define MU_OPERATOR_PLAN_JOB_PLAN_H

#include "operator/api/job_spec.h"
#include "operator/api/job_status.h"
#include "operator/api/pod.h"
#include "operator/plan/resolver.h"

struct observed_job {
	const struct observed_pod *pods;
	unsigned n_pods;
	bool policy;               /* the NetworkPolicy exists */
	int group;                 /* members of the PodGroup; 0: there is none */
	const char *group_phase;   /* as its scheduler reports; NULL or "": not reported */
	const char *group_message; /* its message why the group waits, or NULL */
	bool service;              /* the headless service exists */
	struct job_status status;  /* as stored; zero at first */
	const struct node_info *nodes;
	unsigned n_nodes;
	struct progress_report progress; /* the last report */
	double last_progress;            /* when the step last changed; 0: unknown */
	double polled_at;         /* when the chief last answered, or was not ready; 0: never */
	double first_observed_at; /* by this process, which may have missed an earlier step */
};

struct plan_options {
	const char *image;     /* of muster-task, CPU */
	const char *image_gpu; /* with GPU kernels; NULL: auto uses no GPU, and gpu uses `image` */
	const char *image_tensorboard; /* with TensorBoard; NULL: no such pod is created */
	bool plaintext;                /* no TLS, even if the spec enables it */
	int cert_life;                 /* seconds; 0: PLAN_CERT_LIFE */
	unsigned creates_max;          /* pods that one plan creates, unless of a gang; 0: all */
	/* SHA-256 of the job's bearer token, for its tasks, or ""; NULL: none. */
	const char *(*token_digest)(void *user);
	/* Address of a task; NULL: "<job>-<task>-<index>.<job>.<namespace>.svc:<port>". */
	void (*address)(void *user, const struct job_spec *s, const char *task, int index,
			char *out, size_t size);
	void *user;
	const char *log_folder; /* of `muster run`: <task>-<index>.log; NULL: kubectl logs */
};

/* The program of a pod or process. */
enum plan_role {
	ROLE_SERVER,      /* a task server alone: ps, and all tasks of PROGRAM_NONE */
	ROLE_TRAINER,     /* a task server and the built-in trainer */
	ROLE_COMMAND,     /* the user's command, which starts a server or connects to ours */
	ROLE_TENSORBOARD, /* TensorBoard, on http_port */
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
	int members;           /* of the gang; 0: none */
	int epoch;             /* of the cluster in its environment; 0: it gets none */
	bool is_member;        /* of the cluster: peers call its port */
	bool is_departure_pod; /* only deregisters a worker that is gone */
};

enum action_kind {
	/* actions on the Secret, executed by certs_apply: at most one, before all others */
	ACTION_MAKE_SECRET,
	ACTION_ADD_CA,
	ACTION_ROTATE_CERTIFICATE,
	ACTION_CHECK_SECRET,   /* creates it again, under its name, if it is missing */
	ACTION_CREATE_SERVICE, /* pod: TensorBoard's; NULL: the job's own */
	ACTION_CREATE_POLICY,
	ACTION_PUT_GROUP,        /* index: its members */
	ACTION_CREATE_POD,       /* pod */
	ACTION_DELETE_POD,       /* task, index, uid */
	ACTION_FORCE_DELETE_POD, /* as DELETE_POD, without waiting for a lost node */
	ACTION_FINISH_POD,       /* request the server to exit with 0: task, index, uid */
	ACTION_DELETE_SERVICE,
	ACTION_DELETE_JOB, /* ttl has passed */
};
/* True for a service, a policy, a group and a pod. */
static inline bool action_creates(enum action_kind kind)
{
	return kind >= ACTION_CREATE_SERVICE && kind <= ACTION_CREATE_POD;
}
struct plan_action {
	enum action_kind kind;
	const char *task;
	int index;
	const char *uid;
	const char *name;   /* of the pod, or of TensorBoard's Service */
	const char *reason; /* CamelCase, for an event */
	const char *message;
	struct plan_pod *pod;
};

struct job_plan {
	struct mu_arena arena;
	struct plan_action *actions;
	unsigned n_actions, cap_actions;
	struct job_status status;
	/* The body of POST /cluster for tasks with an older epoch, to be sent once the status is
	 * stored; NULL: all tasks have this epoch. */
	const char *membership_update;
	double requeue_at;
	/* The status is written without delay: it has a problem, an end that a user waits for, or
	 * a fact that the next reconcile needs. */
	bool urgent;
};

/* The plan borrows spec and observed.  Never fails: a problem becomes a condition in the wanted
 * status. */
struct job_plan *job_plan_new(const struct job_spec *spec, const struct plan_options *options,
			      const struct observed_job *observed, double now);
void job_plan_free(struct job_plan *p);
/* The advice to the user for a rejection with this message. */
const char *job_plan_advice(const char *why);
/* The API server rejected the create of this action, and `more` others: COND_REJECTED. */
void job_plan_rejected(struct job_plan *plan, const struct plan_action *a, const char *why,
		       unsigned more, double now);

MU_AUTO_DEFINE(job_plan_free, struct job_plan)

#endif
