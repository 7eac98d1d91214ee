/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a job: its typed form, and as the resource's `status`. */
#ifndef MU_OPERATOR_API_JOB_STATUS_H
#define MU_OPERATOR_API_JOB_STATUS_H

#include <cjson/cJSON.h>

#include "operator/api/job_spec.h"

enum job_phase {
	JOB_NEW, /* nothing done yet; "" in the resource */
	JOB_PENDING,
	JOB_RUNNING,
	JOB_RESTARTING,
	JOB_SUSPENDED,
	JOB_SUCCEEDED, /* this phase and the next one are final */
	JOB_FAILED,
};
extern const char *const job_phase_names[];

/* The status of one index; kept for an index that finished or failed at least once. */
struct index_status {
	char task[JOB_MAX_NAME + 1];
	int index;
	bool done;     /* ended with 0 and never runs again */
	int failures;  /* real ones */
	int attempts;  /* pods that have ended */
	int exit_code; /* of the last end; -1 unknown */
	char reason[48];
	char node[64];
	char uid[64];    /* of the last pod that was counted */
	double created;  /* of that pod; an older pod in a stale list was counted before */
	double retry_at; /* no attempt before; 0: at once */
	bool uncounted;  /* the last end was no real failure */
	bool no_gpu;     /* auto or prefer-gpu has fallen back to the CPU */
	/* The size of the cluster that a synchronous worker has to leave, after it was scaled away;
	 * 0: no departure is pending. */
	int pending_departure_size;
	int departure_attempts; /* departure pods that failed */
};

struct task_status {
	char name[JOB_MAX_NAME + 1];
	int desired, ready, active, succeeded, failed;
	int joined;       /* workers that may wait for each other: plan_departure.c */
	char kernels[32]; /* variant chosen */
};

enum condition_type {
	COND_CREATED,
	COND_READY,
	COND_RUNNING,
	COND_RESTARTING,
	COND_SUSPENDED,
	COND_SUCCEEDED,
	COND_FAILED,
	COND_KERNELS,         /* "KernelsMissing": a task cannot use the GPU or its kernels */
	COND_REJECTED,        /* "PodsRejected": the API server rejects an object of the job */
	COND_WORKERS_AWAITED, /* "WorkersAwaited": no departure pod could deregister a worker */
	COND_STEP_RESET,      /* "StepReset": parameters were lost, and the step fell */
	JOB_CONDITIONS
};
/* A row per condition.  The event is recorded when the condition becomes True. */
extern const struct condition_kind {
	const char *name;
	enum { EVENT_NEVER, EVENT_WITH_PHASE, EVENT_ALWAYS } event; /* with: if the phase changes */
	bool warning;                                               /* the type of the event */
	bool recurs;  /* a new `since` counts as becoming True */
	bool healthy; /* False is the problem, not True */
	bool printed; /* by `muster run`, at each change */
} condition_kinds[JOB_CONDITIONS];
int condition_type_of(const char *name); /* -1: none */
struct condition {
	bool set;    /* is in the list */
	bool status; /* True or False */
	char reason[64];
	char message[512];
	double since; /* lastTransitionTime */
};

/* Sets a condition; `since` changes only with its status. */
void condition_set(struct condition *c, bool status, double now, const char *reason,
		   const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* The state of the certificates of the job. */
enum { PLAN_CERT_LIFE = 48 * 3600 }; /* seconds; the default of plan_options */
struct security_status {
	char *secret;              /* its name; NULL: not created yet */
	double issued_at, expires; /* of the tasks' certificate */
	double ca_added_at; /* when the next CA was added, ahead of its certificate; 0: none was */
};

/* The reason why the training ended, as the trainer's final report has it. */
enum end_reason {
	END_UNKNOWN,
	END_TARGET_REACHED,
	END_VALIDATION_STOPPED, /* the score of the test set did not improve */
	END_FINISH_REQUESTED,   /* POST /finish */
	END_TERMINATED,         /* SIGTERM */
	END_REASONS
};
extern const char *const end_reason_names[];     /* "", "TargetReached", … */
enum end_reason end_reason_of(const char *name); /* NULL or unknown: END_UNKNOWN */

/* Progress of the training, as the chief's task reports it. */
struct progress_report {
	bool set;                /* false: nothing was reported */
	int64_t step, target;    /* target 0: not reported */
	double steps_per_second; /* this and the next three: NAN when not reported */
	double examples_per_second, loss, accuracy;
	char last_checkpoint[200], eta[200]; /* "" when not reported */
	enum end_reason reason;              /* of the final report; else END_UNKNOWN */
};
/* The report comes from the user's program: unknown members are skipped, and nothing is set without
 * a valid step. */
void progress_report_decode(struct progress_report *out, const cJSON *report);
void progress_report_parse(struct progress_report *out, const char *text); /* NULL: as {} */
bool progress_report_same(const struct progress_report *a, const struct progress_report *b);

struct job_status {
	enum job_phase phase;
	struct condition conditions[JOB_CONDITIONS];
	double start_time, completion_time; /* 0: none */
	int restarts;                       /* real failures, which count against backoffLimit */
	int epoch;                          /* of the cluster; rises when its members change */
	char members[32];                   /* hash of the members in this epoch */
	int epoch_seen; /* all tasks have this epoch or a later one; 0: not known */
	int64_t observed_generation;
	char selector[200]; /* label selector of the workers, for the scale subresource */
	struct task_status tasks[JOB_MAX_TASKS];
	unsigned n_tasks;
	struct index_status *indexes;
	unsigned n_indexes;
	struct security_status security;
	struct progress_report progress;
};
/* The condition that explains why the job makes no progress; NULL: no problem, or tasks are
 * starting. Borrows s. */
const struct condition *job_status_trouble(const struct job_status *s);
void job_status_fini(struct job_status *s);
void job_status_copy(struct job_status *to, const struct job_status *from);
/* Decodes and encodes `status`.  The summary for the columns of kubectl is only encoded. */
void job_status_decode(struct job_status *out, const cJSON *status);
cJSON *job_status_encode(const struct job_status *s);
/* The JSON merge patch between two statuses; NULL when they are equal. */
cJSON *job_status_patch(const struct job_status *from, const struct job_status *to);
/* Records that the spec of this generation cannot be used.  A job that has not started fails until
 * its spec is corrected.  A running job continues and is not ready.  An ended job does not change.
 */
void job_status_set_invalid(struct job_status *s, int64_t generation, const char *why, double now);

/* Reason of a condition about a spec that is invalid although the schema accepts it. */
#define PLAN_INVALID_SPEC "InvalidSpec"

/* Reason of COND_RUNNING after a ps was replaced, until the first step. */
#define PLAN_RECOVERING "Recovering"

void index_status_init(struct index_status *e, const char *task, int index);
bool index_status_is_blank(const struct index_status *e); /* it records nothing */
/* The index statuses are sorted by task and index; for qsort. */
int index_status_compare(const void *a, const void *b);
/* The entry of an index; a new one when there is none. */
struct index_status *index_status_get_or_add(struct job_status *s, const char *task, int index);

#endif
