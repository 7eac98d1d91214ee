/* SPDX-License-Identifier: Apache-2.0 */
/* The informer store: typed objects of all kinds, by kind and UID, by the UID of their controller,
 * and jobs by "namespace/name".
 *
 * Watches fill it; workers take snapshots of one job.  It also stores the responses to our writes,
 * so that the next reconcile does not repeat the write: struct expectation.
 *
 * The store contains no decisions.  All of it may be lost: the lists, the tasks and the responses
 * to repeated writes restore it. */
#ifndef MU_OPERATOR_CONTROLLER_STORE_H
#define MU_OPERATOR_CONTROLLER_STORE_H

#include <pthread.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "operator/api/job.h"
#include "operator/api/kinds.h"
#include "operator/api/pod.h"
#include "operator/plan/job_plan.h"

/* Backoff of requests to a task that did not answer the last `failures` times. */
struct poll_backoff {
	double since, after; /* the last failure, and when the next try is due */
	unsigned failures;
};

/* Facts about a pod's task that only this operator has. */
struct task_state {
	double finish_requested_at;          /* time of our finish request; 0: none */
	struct poll_backoff status_backoff;  /* of GET /status */
	struct poll_backoff members_backoff; /* of the current POST /cluster */
	int epoch;                           /* that its task has confirmed; 0 */
	char kernels[32]; /* as the task reported, until then as it has to be; "" */
};

/* A create or delete that the API server accepted and that no watch has shown yet.  A created
 * object is in the store at once, and a deleted one counts as being deleted.  An object that is
 * deleted before a watch shows it has no watch event, so the create times out. */
enum { EXPECTATION_TIMEOUT_S = 60 };
struct expectation {
	double created_until; /* drop the object if no watch has shown it by then; 0: one has */
	bool deleted;
};

struct stored_object {
	struct stored_object *next; /* of the same owner */
	struct object *object;
	struct stored_job *owner;
	bool seen; /* in the list that is being read */
	struct expectation expected;
	struct task_state task; /* of a pod */
};

/* All objects with one controller. The owner with UID "" has the objects without one: nodes. */
struct stored_job {
	char *uid;
	struct stored_object *objects;
	struct job *job; /* one of the objects; NULL: there is no such job, or not yet */
	/* Facts about the job that only this operator has. */
	struct progress_report progress; /* as reported last */
	double progress_changed_at;
	double polled_at;         /* the chief, which answered or is not ready; 0: never */
	double first_observed_at; /* by this process */
	double last_status_write; /* by this process; 0: none yet */
	bool verified; /* not stale: the object is a response to a request of this leader */
};

struct store {
	pthread_mutex_t lock;
	struct mu_map objects[KINDS]; /* UID -> struct stored_object */
	struct mu_map owners;         /* UID -> struct stored_job */
	struct mu_map keys; /* "namespace/name" -> struct stored_job, of which job is set */
	bool nodes_listed;  /* completely, once */
	/* Called without the lock: an object of this kind and of the job with this key changed. */
	void (*changed)(void *arg, const char *key, enum object_kind kind);
	void *arg;
};

/* One job at one time.  Taken and read by one reconcile, without the lock. */
struct snapshot {
	struct mu_arena arena;
	struct object **nodes;        /* references, beside observed.nodes */
	const char *key;              /* "namespace/name" */
	struct job *job;              /* a reference */
	struct owned *owned[KINDS];   /* references; NULL: there is none */
	struct observed_job observed; /* borrows from job */
	struct snapshot_pod {
		struct pod *pod; /* a reference */
		struct task_state task;
	} * pods; /* beside observed.pods */
	double last_status_write;
	bool verified;                 /* as in stored_job */
	double expectations_expire_at; /* the first of the job's expectations; 0: none */
};

void store_init(struct store *c, void (*changed)(void *arg, const char *key, enum object_kind kind),
		void *arg);
void store_fini(struct store *c);

/* Handlers for a reflector; arg is a struct store_watch. */
struct store_watch {
	struct store *store;
	enum object_kind kind;
	const char *namespace; /* NULL: all */
};
void store_list_begins(void *watch);
void store_object_seen(void *watch, const cJSON *json);
void store_object_gone(void *watch, const cJSON *json);
void store_list_ends(void *watch);

/* Stores the response to a create, or our existing object, as expected until the watch shows it.
 * False: the object is not of a job, since it lacks our labels. */
bool store_expect(struct store *c, enum object_kind kind, const cJSON *json, double now);
/* Stores the response to a read of a job, or to a write of its status at this time (0: a read), if
 * it is newer than the stored object. */
void store_update_job(struct store *c, const cJSON *json, double written);
/* The API server has accepted the deletion of a pod; at_once: the pod is deleted. */
void store_deleted(struct store *c, const char *pod_uid, bool at_once);
void store_finish_requested(struct store *c, const char *pod_uid, double now);

/* False: there is no such job object.  snapshot_fini in either case. */
bool snapshot_take(struct store *c, const char *key, double now, struct snapshot *out);
void snapshot_fini(struct snapshot *s);
/* True when the task of the pod at this position answers requests, as far as is known. */
bool task_runs(const struct snapshot *s, unsigned i);
/* The position of the pod of chief 0 or worker 0, which decides the result of the job; -1: none.
 * with_report: the pod has a final report; else the pod runs. */
int snapshot_chief(const struct snapshot *s, bool with_report);
/* ended: also of jobs that have ended. */
void store_each_key(struct store *c, bool ended, void (*fn)(void *arg, const char *key), void *arg);
/* Reports a change of every job. */
void store_requeue_all(struct store *c);

/* ---- for the files of the store; the lock is held ---- */
/* NULL: there is no such job. */
struct stored_job *store_job_of(struct store *c, const char *key);
void store_remove(struct store *c, enum object_kind kind, const char *uid);
/* The first pod of the job, or the next one; NULL: there is none. */
struct stored_object *store_next_pod(const struct stored_job *job, const struct stored_object *s);

/* Stores the response of a task: the progress of its job, and its kernels (or NULL).  True if one
 * of them has changed. */
bool store_set_progress(struct store *c, const char *key, const char *pod_uid,
			const struct progress_report *report, const char *kernels, double now);
void store_metrics(struct store *c, struct mu_buf *out);

#endif
