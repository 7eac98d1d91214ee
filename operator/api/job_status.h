/* SPDX-License-Identifier: Apache-2.0 */
/* The status of a job: its typed form, and as the resource's `status`. */
#ifndef API_JOB_STATUS_H
#define API_JOB_STATUS_H

#include <cjson/cJSON.h>

#include "operator/api/job_spec.h"

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

/* The history of one index; kept for an index that finished or failed at least once. */
struct index_status {
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
	int pending_departure_size;
	int departure_attempts; /* how often a pod was made to say so for it */
};

struct task_status {
	char name[JOB_MAX_NAME + 1];
	int desired, ready, active, succeeded, failed;
	int joined;       /* so many of them may wait for each other: plan_departure.c; 0: none */
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
	COND_DEPARTURE_STUCK, /* "WorkersAwaited": nobody could be sent to leave for who was scaled
				 away */
	COND_STEP_RESET,      /* "StepReset": parameters were lost, and the step went back */
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
/* Reads a report.  It comes from the user's program: unknown members are skipped, and without a
 * valid step nothing is set. */
void progress_report_decode(struct progress_report *out, const cJSON *report);
void progress_report_parse(struct progress_report *out, const char *text); /* NULL: as {} */
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
	struct index_status *ledger;
	unsigned n_ledger;
	struct security_status security;
	struct progress_report progress;
};
/* The condition that says why the job does not get on and what to do; NULL: nothing is wrong, or
 * tasks merely come up.  Borrows s. */
const struct condition *job_status_trouble(const struct job_status *s);
void job_status_fini(struct job_status *s);
void job_status_copy(struct job_status *to, const struct job_status *from);
/* The resource's `status` to its typed form and back.  The summary for the columns of kubectl is
 * only encoded. */
void job_status_decode(struct job_status *out, const cJSON *status);
cJSON *job_status_encode(const struct job_status *s);
/* The JSON merge patch between two statuses; NULL when they are equal. */
cJSON *job_status_patch(const struct job_status *from, const struct job_status *to);
cJSON *merge_patch(const cJSON *from, const cJSON *to); /* likewise between two objects */
/* Records that the spec of this generation cannot be used.  A job that has not started fails until
 * its spec is corrected; a running job continues and is not ready; one that ended stays as it is.
 */
void job_status_set_invalid(struct job_status *s, int64_t generation, const char *why, double now);

/* Why a condition tells of a spec that cannot work, though the schema let it through. */
#define PLAN_INVALID_SPEC "InvalidSpec"

/* Reason of COND_RUNNING after a ps was replaced, until the first step. */
#define PLAN_RECOVERING "Recovering"

/* The entries of the ledger are sorted by task and index. */
struct index_status *index_status_find(struct job_status *s, const char *task, int index);
struct index_status *index_status_get(struct job_status *s, const char *task,
				      int index); /* or makes */
/* Takes it out when nothing has happened to its index. */
void index_status_drop_if_blank(struct job_status *s, struct index_status *e);
#endif
