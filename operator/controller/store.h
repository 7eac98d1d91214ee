/* SPDX-License-Identifier: Apache-2.0 */
/* The informer store: jobs and pods as typed objects, nodes as labels.
 *
 * Watches fill it; workers take snapshots of one job.  A `struct stored_job` under the key
 * "namespace/name" holds everything about a job, also when a pod or the service came first.
 *
 * Expectations: an object that we created is stored at once, from the answer to its create, and a
 * pod that we deleted is marked.  So the next reconcile does not repeat a write that the watch has
 * not delivered yet.  An expectation that no watch confirms within EXPECTATION_TIMEOUT_S is
 * dropped.
 *
 * Nothing in the store is a decision.  All of it may be lost: the lists, the tasks and the answers
 * to repeated writes restore it.
 */
#ifndef CONTROLLER_STORE_H
#define CONTROLLER_STORE_H

#include <cjson/cJSON.h>
#include <pthread.h>

#include "lib/base/map.h"
#include "operator/api/job.h"
#include "operator/api/labels.h"
#include "operator/api/pod.h"
#include "operator/plan/job_plan.h"

/* Backoff of requests to a task that did not answer the last `silent` times. */
struct poll_backoff {
	double since, after; /* the last failure, and when the next try is due */
	unsigned silent;
	bool heard; /* the task has answered once */
};

/* A pod in the store, and what only this operator knows of it. */
struct stored_pod {
	struct stored_pod *next;
	struct pod *pod;
	bool seen;
	bool expects_deletion;      /* the API server has accepted our DELETE */
	double expected_since;      /* when we created it; 0 once the watch has shown it */
	double finish_requested_at; /* when we asked its server to end; 0: never */
	struct poll_backoff ask;    /* how far it is */
	struct poll_backoff tell;   /* who is in the cluster now */
	int epoch;                  /* that its task has confirmed; 0 */
	char kernels[32];           /* as the task reported, until then as it has to be; "" */
};

/* Objects of which a job has one, under its own name. */
enum owned_kind {
	OWNED_SERVICE,
	OWNED_POLICY,
	OWNED_VOLCANO, /* PodGroups: each scheduler has its own */
	OWNED_PLUGINS,
	OWNED_KINDS,
};
struct stored_owned {
	char *owner; /* uid of its controller, "" when it has none; NULL: there is no such object */
	double expected_since; /* as of a pod */
	bool seen;
};

struct stored_job {
	char *key;          /* "namespace/name" */
	struct job *object; /* NULL: there is no such job */
	struct stored_owned owned[OWNED_KINDS];
	struct stored_pod *pods;
	struct progress_report progress; /* as reported last */
	double progress_changed_at;
	double first_observed_at; /* when we reconcile_seconds at it first */
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

/* One job at one time.  Taken and read by one reconcile, without the lock. */
struct snapshot {
	struct mu_arena arena;
	struct node_table *table;
	const char *key;              /* "namespace/name" */
	struct job *job;              /* a reference */
	struct observed_job observed; /* borrows from job */
	unsigned invalid_tasks;       /* bit i: no new try for the pods of tasks[i] */
	struct snapshot_pod {
		struct pod *pod; /* a reference */
		double finish_requested_at;
	} * pods; /* beside observed.pods */
	double last_status_write;
	bool verified, stale;          /* as in stored_job; verified by its version, too */
	double expectations_expire_at; /* the first of the job's expectations; 0: none */
};

void store_init(struct store *c, void (*changed)(void *arg, const char *key), void *arg);
void store_fini(struct store *c);

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

/* The answer to a write or read of ours: stored when it is newer than what the watch brought. */
void store_update_job(struct store *c, const cJSON *object);
/* The status was written just now. */
void store_status_written(struct store *c, const char *key, double now);
/* Our term as the leader begins: no other leader wrote a job that is newer than this version.
 * 0: not known. */
void store_begin_term(struct store *c, uint64_t version);
/* The API server has a newer version of the job. */
void store_mark_stale(struct store *c, const char *key);
void store_expect_pod(struct store *c, const cJSON *object, const char *kernels, double now);
void store_expect_owned(struct store *c, enum owned_kind kind, const char *key, const char *owner,
			double now);
void store_expect_group(struct store *c, enum owned_kind kind, const char *key, const char *owner,
			int members, double now);
/* Keeps the API server's last rejection of an object (why), or that it accepted all (NULL).  Bit i
 * of invalid_tasks: the pods of tasks[i] stay rejected until this generation changes. */
void store_set_rejection(struct store *c, const char *key, const char *why, int64_t generation,
			 unsigned invalid_tasks);
void store_expect_deletion(struct store *c, const char *key, const char *pod_uid);
void store_remove_pod(struct store *c, const char *key, const char *pod_uid);
void store_finish_requested(struct store *c, const char *key, const char *pod_uid, double now);

/* False: there is no such job object.  snapshot_fini in either case. */
bool snapshot_take(struct store *c, const char *key, double now, struct snapshot *out);
void snapshot_fini(struct snapshot *s);
/* ---- for the files of the store; the lock is held ---- */
struct stored_job *store_job_of(struct store *c, const char *key); /* made when it is new */
void store_drop_if_empty(struct store *c, struct stored_job *job);
bool store_key_in(const char *key, const char *ns); /* ns NULL: any */
void store_owned_fini(struct stored_job *job);
void store_owned_expire_expectations(struct stored_job *job, double now);
char *store_key_of(const cJSON *object, const char *job);
struct stored_pod *store_pod_of(struct stored_job *job, const char *uid); /* or NULL */
void store_pods_fini(struct stored_job *job);
void store_notify(struct store *c, void (*changed)(void *arg, const char *key), char *key);
/* Calls end() for every job of a namespace; end() drops what the list did not hold and returns true
 * when it did.  Takes the lock. */
void store_sweep(struct store *c, const char *ns, bool (*end)(struct stored_job *job, int kind),
		 int kind);
/* Drops expectations that no watch confirmed in time. */
enum { EXPECTATION_TIMEOUT_S = 60 };
void store_expire_expectations(struct stored_job *job, double now);
/* The nodes of a snapshot, with a reference. */
struct node_table *store_nodes(struct store *c);
void node_table_unref(struct node_table *t);

/* The address of a running task. */
struct task_address {
	char *key, *ip, *pod_uid, *job_uid;
};
/* The chiefs whose progress poll is due; free with task_addresses_free. */
struct task_address *store_due_chiefs(struct store *c, double now, unsigned *n);
/* The task did not answer: its polls back off up to a minute, or up to ten when it is ready and has
 * never answered. */
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
/* The task has taken up the epoch; or it did not answer, and its updates back off. */
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
