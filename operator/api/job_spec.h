/* SPDX-License-Identifier: Apache-2.0 */
/* A DistributedTrainingJob, read from its manifest: defaults filled in, everything checked.
 *
 * The checks equal those of the schema and CEL rules of the CRD, so `muster validate` and `muster
 * run` reject what the API server rejects, with file, line and path: "job.yaml:12:
 * spec.tasks.ps.replicas: must be between 0 and 1000, got -1".
 *
 * A job_spec owns the document it was read from: its strings point into it.
 */
#ifndef API_JOB_SPEC_H
#define API_JOB_SPEC_H

#include "lib/io/doc.h"

#define JOB_TLS_PATH    "/var/run/muster/tls" /* in task pods */
#define JOB_API_VERSION "muster.dev/v1"
#define JOB_KIND        "DistributedTrainingJob"
#define JOB_CONTROLLER  "muster.dev/operator" /* spec.managedBy of our own jobs */
#define JOB_BOARD       "tensorboard"         /* the task type that spec.tensorboard adds */
#define JOB_VOLUME_PATH                                                                            \
	"/var/muster/checkpoint" /* where spec.checkpoint.volumeClaim is mounted                   \
				  */

enum {
	JOB_MAX_TASKS = 8,       /* task types in one job */
	JOB_MAX_REPLICAS = 1000, /* tasks of one type */
	JOB_MAX_NAME = 63,       /* of the longest generated pod name */
	JOB_MAX_TASK_NAME = 32,
	JOB_MAX_LAYERS = 8,
	JOB_MAX_CATEGORICAL = 64,
	JOB_DEFAULT_PORT = 2222,
	JOB_STREAM_PORT = 2223, /* of pods; fixed, so that policies may name it */
	JOB_DEFAULT_HTTP_PORT = 8079,
	JOB_BOARD_PORT = 6006, /* TensorBoard's own choice */
};

enum task_kind { TASK_PS, TASK_WORKER, TASK_CHIEF, TASK_EVALUATOR, TASK_OTHER, TASK_BOARD };
enum restart_policy { RESTART_NEVER, RESTART_ON_FAILURE, RESTART_ALWAYS, RESTART_EXIT_CODE };
enum clean_policy { CLEAN_NONE, CLEAN_RUNNING, CLEAN_ALL };
enum success_policy { SUCCESS_CHIEF, SUCCESS_ALL_WORKERS };
enum gang_kind { GANG_NONE, GANG_VOLCANO, GANG_SCHEDULER_PLUGINS, GANG_KUEUE };
enum program_kind {
	PROGRAM_NONE,    /* task servers only, for clients outside the job */
	PROGRAM_TRAIN,   /* the ready-made trainer */
	PROGRAM_COMMAND, /* the user's command */
};
enum dataset_format { DATASET_CSV, DATASET_IDX, DATASET_CIFAR10, DATASET_TFRECORD };

/* spec.program.train and what the trainer needs beside it; carried to it as MUSTER_TRAIN. */
struct train_spec {
	const char *model; /* "softmax", "mlp", "cnn", "wide-deep", "es" */
	enum dataset_format format;
	const char *path;      /* csv: the file; its last column is the label; records: a pattern */
	const char *test_path; /* records: of the test; NULL: a fraction is held out */
	const char *feature, *label; /* tfrecord: their names in a tf.Example */
	int skip_bad;                /* records: 1: leave bad ones out */
	const char *train_images;    /* idx: four files */
	const char *train_labels, *test_images, *test_labels;
	double test_fraction; /* csv: the last part of the rows is held out; 0.2 */
	int64_t split_seed;   /* csv: rows are shuffled by it before that; 0: as they stand */
	double scale;         /* features are divided by it; 0: by their greatest value */
	int hidden[JOB_MAX_LAYERS];
	unsigned n_hidden;
	int categorical[JOB_MAX_CATEGORICAL]; /* wide-deep: columns of names, from 0 */
	unsigned n_categorical;
	int embedding;             /* wide-deep: 8 */
	int pairs;                 /* es: 16 */
	double noise;              /* es: 0.1 */
	int batch_size;            /* 32 */
	double learning_rate;      /* 0.1 */
	const char *optimizer;     /* "sgd", "momentum", "nesterov", "adagrad", "adam", … */
	int decay;                 /* of the rate: constant, exponential, steps, cosine */
	double decay_rate;         /* 0.96 */
	int64_t decay_steps;       /* 1000 */
	double l2, clip_norm;      /* 0: none */
	double momentum;           /* 0.9 */
	int64_t steps;             /* target global step; 1000 */
	int64_t validation_steps;  /* how often the chief scores the test set; 0: at the end */
	int64_t patience;          /* scores that are no better before it ends; 0: never */
	const char *export_prefix; /* of the final weights; NULL: none */
	int64_t seed;              /* 1 */
	bool sync;                 /* spec.mode: sync */
	int replicas_to_aggregate; /* 0: as many as there are workers */
	int backup_workers;

	const char *checkpoint_path; /* NULL: none */
	int64_t checkpoint_seconds;  /* 0: not by time; 60 */
	int64_t checkpoint_steps;    /* 0: not by steps */
	int checkpoint_keep;         /* 5 */
	const char *summary_path;    /* NULL: none */
	int64_t summary_steps;       /* 100 */
};

struct task_spec {
	const char *name; /* the job name in the cluster: "ps", "worker", … */
	enum task_kind kind;
	int replicas;
	const char *kernels; /* "auto", "cpu", "gpu", "prefer-gpu", or a variant ("cpu-avx2") */
	enum restart_policy restart;
	unsigned line;
	const struct mu_doc_node *template; /* pod template, NULL when none */
	/* From the template's first container; NULL when not given. */
	const char *image;
	const struct mu_doc_node *container;
	const struct mu_doc_node *resources; /* task resources: {limits, requests} */
};

struct job_spec {
	struct mu_doc *doc;
	const char *name;
	const char *namespace; /* "default" when not said */
	const char *uid;       /* "" outside a cluster */
	int64_t generation;
	double created; /* metadata.creationTimestamp as seconds; 0 when absent */
	bool deleting;  /* metadata.deletionTimestamp is there */

	const char *managed_by; /* spec.managedBy; NULL: not given */

	enum program_kind program;
	struct train_spec train;           /* checkpoint and summaries are set for all programs */
	const struct mu_doc_node *command; /* list of strings, NULL when none */
	const struct mu_doc_node *args;    /* likewise */
	bool flags; /* spec.program.classicFlags: append --ps_hosts … to the command */

	/* ps first, then chief, worker, the rest by name, and TensorBoard, which is no task of the
	 * cluster and does not affect the result of the job. */
	struct task_spec tasks[JOB_MAX_TASKS];
	unsigned n_tasks;

	int mode;                    /* spec.mode: 0 async, 1 sync */
	bool board;                  /* spec.tensorboard.enabled */
	const char *board_image;     /* NULL: the operator's */
	const char *volume_claim;    /* spec.checkpoint.volumeClaim */
	enum restart_policy restart; /* spec.run.restartPolicy: ExitCode */
	int backoff_limit;           /* 20 */
	int64_t ttl_seconds;         /* -1: never */
	int64_t active_deadline;     /* -1: none */
	int64_t scheduling_deadline; /* -1: none */
	int64_t progress_deadline;   /* -1: none */
	enum clean_policy clean;     /* Running */
	enum success_policy success; /* Chief */
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
/* True if another controller runs the job (spec.managedBy). */
bool job_spec_is_foreign(const struct job_spec *s);
void job_spec_free(struct job_spec *s);
MU_AUTO_DEFINE(job_spec_free, struct job_spec)

const struct task_spec *job_spec_task(const struct job_spec *s, const char *name); /* or NULL */
/* The task type whose index 0 decides the job: chief, or worker; NULL when there is neither. */
const struct task_spec *job_spec_chief(const struct job_spec *s);

/* The trainer's settings as one line of JSON (the value of MUSTER_TRAIN), and back.  Reading
 * fills `out` with strings of *doc, which the caller frees after it. */
void train_spec_write(const struct train_spec *t, struct mu_buf *out);
int train_spec_read(struct train_spec *out, struct mu_doc **doc, struct mu_span json,
		    struct mu_err *err);

/* Names of the enums, as manifests write them; NULL-terminated, by number. */
extern const char *const clean_policy_names[];
extern const char *const dataset_format_names[];

#endif
