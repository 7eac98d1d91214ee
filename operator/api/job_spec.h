/* SPDX-License-Identifier: Apache-2.0 */
/* A DistributedTrainingJob, read from its manifest, with default values, after all checks.
 *
 * Together with cli/validate.c, the checks equal the schema and CEL rules of the CRD. `muster
 * validate` and `muster run` reject the same jobs as the API server, with file, line and path:
 * "job.yaml:12: spec.tasks.ps.replicas: must be between 0 and 1000, got -1".
 *
 * A job_spec owns its document: its strings point into it. */
#ifndef MU_OPERATOR_API_JOB_SPEC_H
#define MU_OPERATOR_API_JOB_SPEC_H

#include "lib/cluster/train_spec.h"
#include "lib/io/doc.h"

#define JOB_TLS_PATH    "/var/run/muster/tls" /* in task pods */
#define JOB_API_VERSION "muster.dev/v1"
#define JOB_KIND        "DistributedTrainingJob"
#define JOB_CONTROLLER  "muster.dev/operator"    /* spec.managedBy of our own jobs */
#define JOB_TENSORBOARD "tensorboard"            /* the task type that spec.tensorboard adds */
#define JOB_VOLUME_PATH "/var/muster/checkpoint" /* of spec.checkpoint.volumeClaim */

enum {
	JOB_MAX_VALUES = 20000,  /* in the manifest of a job in the cluster */
	JOB_MAX_TASKS = 8,       /* task types in one job */
	JOB_MAX_REPLICAS = 1000, /* tasks of one type */
	JOB_MAX_NAME = 63,       /* of the longest generated pod name */
	JOB_MAX_TASK_NAME = 32,
	JOB_DEFAULT_PORT = 2222,
	JOB_STREAM_PORT = 2223, /* of pods; fixed, so that policies may name it */
	JOB_DEFAULT_HTTP_PORT = 8079,
	JOB_TENSORBOARD_PORT = 6006, /* TensorBoard's own choice */
};

enum task_kind { TASK_PS, TASK_WORKER, TASK_CHIEF, TASK_EVALUATOR, TASK_OTHER, TASK_TENSORBOARD };
enum job_mode { MODE_ASYNC, MODE_SYNC };
enum restart_policy { RESTART_NEVER, RESTART_ON_FAILURE, RESTART_ALWAYS, RESTART_EXIT_CODE };
enum clean_policy { CLEAN_NONE, CLEAN_RUNNING, CLEAN_ALL };
enum success_policy { SUCCESS_CHIEF, SUCCESS_ALL_WORKERS };
enum gang_kind { GANG_NONE, GANG_VOLCANO, GANG_SCHEDULER_PLUGINS, GANG_KUEUE };
enum program_kind {
	PROGRAM_NONE,    /* task servers only, for clients outside the job */
	PROGRAM_TRAIN,   /* the built-in trainer */
	PROGRAM_COMMAND, /* the user's command */
};

struct task_spec {
	const char *name; /* the job name in the cluster: "ps", "worker", … */
	enum task_kind kind;
	int replicas;
	const char *kernels; /* "auto", "cpu", "gpu", "prefer-gpu", or a variant ("cpu-avx2") */
	enum restart_policy restart;
	const struct mu_doc_node *template; /* pod template, NULL when none */
	const char *image; /* of the task, else of the template's first container; or NULL */
	const struct mu_doc_node *container; /* first container of the template, or NULL */
	const struct mu_doc_node *resources; /* of the task: {limits, requests}, or NULL */
};

struct job_spec {
	struct mu_doc *doc;
	const char *name;
	const char *namespace; /* "default" when not given */
	const char *uid;       /* "" outside a cluster */
	int64_t generation;

	enum program_kind program;
	struct train_spec train;           /* checkpoint and summaries are set for all programs */
	const struct mu_doc_node *command; /* list of strings, NULL when none */
	const struct mu_doc_node *args;    /* likewise */
	bool classic_flags; /* spec.program.classicFlags: append --ps_hosts … to the command */

	/* In the order of their start: ps, chief, worker, others, evaluator, TensorBoard.
	 * TensorBoard is no task of the cluster and does not affect the result of the job. */
	struct task_spec tasks[JOB_MAX_TASKS];
	unsigned n_tasks;
	int replicas; /* of all tasks but TensorBoard */

	/* The value in a comment is the default. */
	enum job_mode mode;            /* async */
	bool tensorboard;              /* spec.tensorboard.enabled */
	const char *tensorboard_image; /* NULL: the operator's */
	const char *volume_claim;      /* spec.checkpoint.volumeClaim */
	enum restart_policy restart;   /* spec.run.restartPolicy: ExitCode */
	int backoff_limit;             /* 20 */
	int64_t ttl_seconds;           /* -1: never */
	int64_t active_deadline;       /* -1: none */
	int64_t scheduling_deadline;   /* -1: none */
	int64_t progress_deadline;     /* -1: none */
	enum clean_policy clean;       /* Running */
	enum success_policy success;   /* Chief */
	bool suspend;
	enum gang_kind gang;                /* all pods are placed together */
	const char *queue, *priority_class; /* of the gang scheduler; NULL: its default */
	bool network_policy;
	bool mtls; /* between tasks; the default for the trainer only */
};

/* Takes doc, also on failure. */
int job_spec_from_doc(struct job_spec **out, struct mu_doc *doc, struct mu_err *err);
/* YAML or JSON text with one job in it. */
int job_spec_parse(struct job_spec **out, struct mu_span text, const char *source,
		   struct mu_err *err);
void job_spec_free(struct job_spec *s);
MU_AUTO_DEFINE(job_spec_free, struct job_spec)

enum task_kind task_kind_of(const char *name);
const struct task_spec *job_spec_task(const struct job_spec *s, const char *name); /* or NULL */
/* The task type whose index 0 decides the job: chief, or worker; NULL when there is neither. */
const struct task_spec *job_spec_chief(const struct job_spec *s);

extern const char *const clean_policy_names[]; /* by number, as manifests write them */

bool kernels_are_known(const char *kernels);         /* a valid value of a task's `kernels` */
int kernels_compute_capability(const char *kernels); /* "cuda-sm90": 90; 0 for another variant */

/* ---- shared by job_spec.c and task_spec.c ---- */
extern const char *const restart_policy_names[];

/* Lower-case letters and digits, with `punctuation` between them. */
bool spec_is_name(const char *s, const char *punctuation, size_t max_len);
bool spec_is_label(const char *s); /* a DNS label */

int job_spec_read_tasks(struct job_spec *s, const struct mu_doc_node *spec, struct mu_err *err);
/* Adds the task of spec.tensorboard when it is enabled. */
int job_spec_add_tensorboard(struct job_spec *s, const struct mu_doc_node *tensorboard,
			     struct mu_err *err);

#endif
