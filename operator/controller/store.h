/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator knows of the cluster: jobs and pods as typed objects, nodes as labels.
 *
 * Reflectors fill it, workers take snapshots of one job.  Everything about a job hangs on one
 * `struct stored_job` under the key "namespace/name", whether the job object, a pod or the service
 * came first.  Our own writes are put in at once, so that the next look does not depend on how
 * quickly the watch brings them back: store_assume_*.
 */
#ifndef CONTROLLER_STORE_H
#define CONTROLLER_STORE_H

#include <cjson/cJSON.h>
#include <pthread.h>

#include "lib/base/map.h"
#include "lib/kube/kube_json.h"
#include "operator/api/job.h"
#include "operator/api/labels.h"
#include "operator/api/pod.h"
#include "operator/plan/job_plan.h"

/* How often a task is asked that did not answer the last `silent` times. */
struct poll_backoff {
	double since, after; /* when it was silent last, and is due again */
	unsigned silent;
	bool heard; /* it has answered once */
};

/* A pod in the store, and what only this operator knows of it. */
struct stored_pod {
	struct stored_pod *next;
	struct pod *pod;
	bool seen;
	bool deletion_sent;       /* the API server has accepted its deletion */
	double assumed;           /* when we put it in ourselves; 0 once the watch has shown it */
	double finish_asked;      /* when we asked its server to end; 0 */
	struct poll_backoff ask;  /* how far it is */
	struct poll_backoff tell; /* who is in the cluster now */
	int epoch;                /* that its task has confirmed; 0 */
	char kernels[32];         /* as the task reported, until then as it has to be; "" */
};

/* What a job has one of, under its own name. */
enum owned_kind {
	OWNED_SERVICE,
	OWNED_POLICY,
	OWNED_VOLCANO, /* PodGroups: each scheduler has its own */
	OWNED_PLUGINS,
	OWNED_KINDS,
};
struct stored_owned {
	char *owner; /* uid of its controller, "" when it has none; NULL: there is no such object */
	double assumed; /* as of a pod */
	bool seen;
};

struct stored_job {
	char *key;          /* "namespace/name" */
	struct job *object; /* NULL: there is no such job */
	struct stored_owned owned[OWNED_KINDS];
	struct stored_pod *pods;
	struct progress_report progress; /* as reported last */
	double progress_at;
	double watched_since;     /* when we looked at it first */
	double last_status_write; /* by this process; 0: none yet */
	bool verified; /* the object is no older than our term: it answered a call of ours */
	bool stale;    /* the server has a newer one */
	bool seen;
	int group_members;      /* of its PodGroup */
	char group_phase[32];   /* as its scheduler says */
	char *group_said;       /* why it waits, or NULL */
	char *refused;          /* why the server would not have an object of it, or NULL */
	int64_t invalid_in;     /* the generation that invalid_tasks is about */
	unsigned invalid_tasks; /* bit i: the server refuses the pods of tasks[i] for good */
};

/* All nodes as they were at some time, shared by the snapshots of that time. */
struct node_table {
	_Atomic int refs;
	struct mu_arena arena;
	struct node_info *nodes;
	unsigned n;
};

struct store {
	pthread_mutex_t lock;
	struct mu_map jobs;       /* key -> struct stored_job */
	struct mu_map nodes;      /* name -> struct stored_node */
	struct node_table *table; /* of them; NULL: to be made */
	uint64_t term;            /* what is newer than this version is of our term; 0: not known */
	void (*changed)(void *arg, const char *key);     /* called without the lock */
	void (*pod_changed)(void *arg, const char *key); /* likewise */
	void *arg;
};

/* One job as it is now; everything lives in the arena. */
struct snapshot {
	struct mu_arena arena;
	struct node_table *table;
	const char *key;              /* "namespace/name" */
	struct job *job;              /* a reference */
	struct observed_job observed; /* borrows from job */
	unsigned invalid_tasks;       /* bit i: no new try for the pods of tasks[i] */
	struct snapshot_pod {
		struct pod *pod; /* a reference */
		double finish_asked;
	} * pods; /* beside observed.pods */
	double last_status_write;
	bool verified, stale; /* as in stored_job; verified by its version, too */
	double doubt_until;   /* when what we put in ourselves must have been confirmed; 0 */
};

void store_init(struct store *c, void (*changed)(void *arg, const char *key), void *arg);
void store_fini(struct store *c);

/* The members of objects that the handlers below read. */
extern const struct kube_fields store_owned_fields[], store_group_fields[], store_node_fields[];

/* Handlers for reflectors (arg: the store).  A list is of one namespace, or of all: NULL. */
void store_jobs_begin(void *store, const char *ns);
void store_job_seen(void *store, const cJSON *object);
void store_job_gone(void *store, const cJSON *object);
void store_jobs_end(void *store, const char *ns);
void store_pods_begin(void *store, const char *ns);
void store_pod_seen(void *store, const cJSON *object);
void store_pod_gone(void *store, const cJSON *object);
void store_pods_end(void *store, const char *ns);
void store_services_begin(void *store, const char *ns);
void store_service_seen(void *store, const cJSON *object);
void store_service_gone(void *store, const cJSON *object);
void store_services_end(void *store, const char *ns);
void store_policies_begin(void *store, const char *ns);
void store_policy_seen(void *store, const cJSON *object);
void store_policy_gone(void *store, const cJSON *object);
void store_policies_end(void *store, const char *ns);
void store_volcanos_begin(void *store, const char *ns);
void store_volcano_seen(void *store, const cJSON *object);
void store_volcano_gone(void *store, const cJSON *object);
void store_volcanos_end(void *store, const char *ns);
void store_plugins_begin(void *store, const char *ns);
void store_plugin_seen(void *store, const cJSON *object);
void store_plugin_gone(void *store, const cJSON *object);
void store_plugins_end(void *store, const char *ns);
void store_nodes_begin(void *store, const char *ns);
void store_node_seen(void *store, const cJSON *object);
void store_node_gone(void *store, const cJSON *object);
void store_nodes_end(void *store, const char *ns);

/* Our own writes, from the server's answer to them. */
void store_assume_job(struct store *c, const cJSON *object);
/* We have just stored its status. */
void store_status_written(struct store *c, const char *key, double now);
/* Our term begins: jobs newer than this version are as our term has them.  0: that is not known. */
void store_begin_term(struct store *c, uint64_t version);
/* The server has a newer one than we. */
void store_mark_stale(struct store *c, const char *key);
void store_assume_pod(struct store *c, const cJSON *object, const char *kernels, double now);
void store_assume_owned(struct store *c, enum owned_kind kind, const char *key, const char *owner,
			double now);
void store_assume_group(struct store *c, enum owned_kind kind, const char *key, const char *owner,
			int members, double now);
/* The server would not have an object (why), or takes them all again (NULL).  Bit i of
 * invalid_tasks: it refuses the pods of tasks[i] until this generation changes. */
void store_set_rejected(struct store *c, const char *key, const char *why, int64_t generation,
			unsigned invalid_tasks);
void store_assume_deleting(struct store *c, const char *key, const char *pod_uid);
void store_assume_gone(struct store *c, const char *key, const char *pod_uid);
void store_finish_asked(struct store *c, const char *key, const char *pod_uid, double now);

/* False: there is no such job object.  snapshot_fini in either case. */
bool snapshot_take(struct store *c, const char *key, double now, struct snapshot *out);
void snapshot_fini(struct snapshot *s);
/* For the files of the store; the lock is held. */
struct stored_job *store_job_of(struct store *c, const char *key); /* made when it is new */
void store_drop_if_empty(struct store *c, struct stored_job *job);
bool store_key_in(const char *key, const char *ns); /* ns NULL: any */
void store_owned_fini(struct stored_job *job);
void store_owned_drop_unconfirmed(struct stored_job *job, double now);
char *store_key_of(const cJSON *object, const char *job);
struct stored_pod *store_pod_of(struct stored_job *job, const char *uid); /* or NULL */
void store_pods_fini(struct stored_job *job);
void store_notify(struct store *c, void (*changed)(void *arg, const char *key), char *key);
/* Calls end() for every entry of a namespace, which drops what was not seen and says whether it
 * did; takes the lock. */
void store_sweep(struct store *c, const char *ns, bool (*end)(struct stored_job *job, int kind),
		 int kind);
/* What we put in and no watch confirmed in time does not exist; the lock is held. */
enum { STORE_ASSUMED_MAX_S = 60 };
void store_drop_unconfirmed(struct stored_job *job, double now);
/* The nodes' part of a snapshot, with a reference; the lock is held. */
struct node_table *store_nodes(struct store *c);
void node_table_unref(struct node_table *t);

/* A running task that may be asked how far the job is. */
struct task_address {
	char *key, *ip, *pod_uid, *job_uid;
};
/* The chiefs of all running jobs that may be asked now; free with task_addresses_free. */
struct task_address *store_due_chiefs(struct store *c, double now, unsigned *n);
/* It did not answer: it is asked less and less often, each minute at least; every ten when it is
 * ready and has never answered. */
void store_poll_failed(struct store *c, const struct task_address *chief, double now);
/* A membership update (job_plan.membership_update) and the tasks that have an older epoch. */
struct membership_update {
	char *text;
	int epoch;
	struct task_address *tasks;
	unsigned n;
};
/* All updates that are due.  An update is planned anew from the stored status; free with
 * membership_updates_free. */
struct membership_update *store_due_updates(struct store *c, double now, unsigned *n);
void membership_updates_free(struct membership_update *notices, unsigned n);
/* It has taken that up; or it has not, and is told less and less often, as store_poll_failed. */
void store_confirm_epoch(struct store *c, const struct task_address *task, int epoch);
void store_update_failed(struct store *c, const struct task_address *task, double now);
void task_addresses_free(struct task_address *chiefs, unsigned n);
/* New progress of a job; true when it differs from the last. */
bool store_set_progress(struct store *c, const struct task_address *chief,
			const struct progress_report *report, const char *kernels, double now);
/* The final report of a chief that ended replaces the progress; the lock is held. */
void store_take_final_report(struct stored_job *job, double now);
unsigned store_count(struct store *c);
void store_metrics(struct store *c, struct mu_buf *out);
void store_each_key(struct store *c, void (*fn)(void *arg, const char *key), void *arg);

#endif
