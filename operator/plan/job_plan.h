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
 * scaled away and ended without a word is started once more to say it (plan_departure.c).
 */
#ifndef MUSTER_PLAN_JOB_PLAN_H
#define MUSTER_PLAN_JOB_PLAN_H

#include "operator/api/job_spec.h"
#include "operator/api/job_status.h"
#include "operator/api/pod.h"
#include "operator/plan/resolver.h"

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
	double first_observed_at; /* by who looks now: before that the step may have moved unseen */
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
	ROLE_SERVER,      /* a task server and nothing else: ps, and everybody of PROGRAM_NONE */
	ROLE_TRAINER,     /* a task server with the ready-made trainer beside it */
	ROLE_COMMAND,     /* the user's command, which starts its own server or talks to ours */
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
	bool is_departure_pod; /* only says for a worker that is gone that it leaves */
};

enum action_kind {
	ACTION_MAKE_SECRET,   /* These three go before all others, one in a plan */
	ACTION_SPREAD_CA,     /* likewise */
	ACTION_SWITCH_SECRET, /* likewise */
	ACTION_CHECK_SECRET,  /* made again under its name when it is gone */
	ACTION_CREATE_SERVICE,
	ACTION_CREATE_POLICY,
	ACTION_PUT_GROUP,        /* index: its members */
	ACTION_CREATE_POD,       /* pod */
	ACTION_DELETE_POD,       /* task, index, uid */
	ACTION_FORCE_DELETE_POD, /* as DELETE_POD without waiting for a node that does not answer */
	ACTION_FINISH_POD,       /* ask the server to end by itself with 0: task, index, uid */
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
	const char *membership_update;
	double wake;
	bool urgent; /* the status reports a problem, or an end that somebody waits for */
	bool write_status_first; /* the status has a fact that the next reconcile needs */
};

/* The plan borrows spec and observed.  Never fails for what a manifest or a cluster can hold: what
 * cannot be done is a condition in the wanted status. */
struct job_plan *job_plan_new(const struct job_spec *spec, const struct plan_options *options,
			      const struct observed_job *observed, double now);
/* The pod of this action was refused: what the wanted status says of its making is taken back. */
void job_plan_not_made(struct job_plan *p, const struct plan_action *a);
void job_plan_free(struct job_plan *p);
/* What to do about an object that the server refused with these words. */
const char *job_plan_advice(const char *why);
/* Whether the server refuses it with these words until the manifest changes. */
bool job_plan_refusal_is_final(const char *why);
/* Whether some of its actions create. */
bool plan_creates(const struct job_plan *plan);
MU_AUTO_DEFINE(job_plan_free, struct job_plan)

#endif
