/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator knows of the cluster: jobs and pods as typed objects, nodes as labels.
 *
 * Reflectors fill it, workers take snapshots of one job.  Everything about a job hangs on one
 * `struct cached_job` under the key "namespace/name", whether the job object, a pod or the service
 * came first.  Our own writes are put in at once, so that the next look does not depend on how
 * quickly the watch brings them back: cache_assume_*.
 */
#ifndef CONTROL_CACHE_H
#define CONTROL_CACHE_H

#include <cjson/cJSON.h>
#include <pthread.h>

#include "lib/base/map.h"
#include "lib/kube/kube_json.h"
#include "operator/api/job.h"
#include "operator/api/labels.h"
#include "operator/api/pod.h"
#include "operator/plan/job_plan.h"

/* How often a task is asked that did not answer the last `silent` times. */
struct cache_pace {
	double since, after; /* when it was silent last, and is due again */
	unsigned silent;
	bool heard; /* it has answered once */
};

/* A pod in the store, and what only this operator knows of it. */
struct cached_pod {
	struct cached_pod *next;
	struct pod *pod;
	bool seen;
	bool deletion_sent;     /* the API server has accepted its deletion */
	double assumed;         /* when we put it in ourselves; 0 once the watch has shown it */
	double finish_asked;    /* when we asked its server to end; 0 */
	struct cache_pace ask;  /* how far it is */
	struct cache_pace tell; /* who is in the cluster now */
	int epoch;              /* that its task has confirmed; 0 */
	char kernels[32];       /* as the task reported, until then as it has to be; "" */
};

/* What a job has one of, under its own name. */
enum owned_kind {
	OWNED_SERVICE,
	OWNED_POLICY,
	OWNED_VOLCANO, /* PodGroups: each scheduler has its own */
	OWNED_PLUGINS,
	OWNED_KINDS,
};
struct cached_owned {
	char *owner; /* uid of its controller, "" when it has none; NULL: there is no such object */
	double assumed; /* as of a pod */
	bool seen;
};

struct cached_job {
	char *key;          /* "namespace/name" */
	struct job *object; /* NULL: there is no such job */
	struct cached_owned owned[OWNED_KINDS];
	struct cached_pod *pods;
	struct progress_report progress; /* as reported last */
	double progress_at;
	double watched_since;     /* when we looked at it first */
	uint64_t settled;         /* status_hash of what text says, when that was compared; 0 */
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

struct cache {
	pthread_mutex_t lock;
	struct mu_map jobs;       /* key -> struct cached_job */
	struct mu_map nodes;      /* name -> struct cached_node */
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
	bool verified, stale; /* as in cached_job; verified by its version, too */
	double doubt_until;   /* when what we put in ourselves must have been confirmed; 0 */
};

void cache_init(struct cache *c, void (*changed)(void *arg, const char *key), void *arg);
void cache_fini(struct cache *c);

/* The members of objects that the handlers below read. */
extern const struct kube_fields cache_owned_fields[], cache_group_fields[], cache_node_fields[];

/* Handlers for reflectors (arg: the cache).  A list is of one namespace, or of all: NULL. */
void cache_jobs_begin(void *cache, const char *ns);
void cache_job_seen(void *cache, const cJSON *object);
void cache_job_gone(void *cache, const cJSON *object);
void cache_jobs_end(void *cache, const char *ns);
void cache_pods_begin(void *cache, const char *ns);
void cache_pod_seen(void *cache, const cJSON *object);
void cache_pod_gone(void *cache, const cJSON *object);
void cache_pods_end(void *cache, const char *ns);
void cache_services_begin(void *cache, const char *ns);
void cache_service_seen(void *cache, const cJSON *object);
void cache_service_gone(void *cache, const cJSON *object);
void cache_services_end(void *cache, const char *ns);
void cache_policies_begin(void *cache, const char *ns);
void cache_policy_seen(void *cache, const cJSON *object);
void cache_policy_gone(void *cache, const cJSON *object);
void cache_policies_end(void *cache, const char *ns);
void cache_volcanos_begin(void *cache, const char *ns);
void cache_volcano_seen(void *cache, const cJSON *object);
void cache_volcano_gone(void *cache, const cJSON *object);
void cache_volcanos_end(void *cache, const char *ns);
void cache_plugins_begin(void *cache, const char *ns);
void cache_plugin_seen(void *cache, const cJSON *object);
void cache_plugin_gone(void *cache, const cJSON *object);
void cache_plugins_end(void *cache, const char *ns);
void cache_nodes_begin(void *cache, const char *ns);
void cache_node_seen(void *cache, const cJSON *object);
void cache_node_gone(void *cache, const cJSON *object);
void cache_nodes_end(void *cache, const char *ns);

/* Our own writes, from the server's answer to them. */
void cache_assume_job(struct cache *c, const cJSON *object);
/* We have just stored its status. */
void cache_stored(struct cache *c, const char *key, double now);
/* Our term begins: jobs newer than this version are as our term has them.  0: that is not known. */
void cache_begin_term(struct cache *c, uint64_t version);
/* The server has a newer one than we. */
void cache_doubt_job(struct cache *c, const char *key);
void cache_assume_pod(struct cache *c, const cJSON *object, const char *kernels, double now);
void cache_assume_owned(struct cache *c, enum owned_kind kind, const char *key, const char *owner,
			double now);
void cache_assume_group(struct cache *c, enum owned_kind kind, const char *key, const char *owner,
			int members, double now);
/* The server would not have an object (why), or takes them all again (NULL).  Bit i of
 * invalid_tasks: it refuses the pods of tasks[i] until this generation changes. */
void cache_set_refused(struct cache *c, const char *key, const char *why, int64_t generation,
		       unsigned invalid_tasks);
void cache_assume_deleting(struct cache *c, const char *key, const char *pod_uid);
void cache_assume_gone(struct cache *c, const char *key, const char *pod_uid);
void cache_finish_asked(struct cache *c, const char *key, const char *pod_uid, double now);

/* False: there is no such job object.  snapshot_fini in either case. */
bool cache_snapshot(struct cache *c, const char *key, double now, struct snapshot *out);
void snapshot_fini(struct snapshot *s);
/* For the files of the cache; the lock is held. */
struct cached_job *cache_job_of(struct cache *c, const char *key); /* made when it is new */
void cache_drop_if_empty(struct cache *c, struct cached_job *job);
bool cache_key_in(const char *key, const char *ns); /* ns NULL: any */
void cache_owned_fini(struct cached_job *job);
void cache_owned_drop_unconfirmed(struct cached_job *job, double now);
char *cache_key_of(const cJSON *object, const char *job);
struct cached_pod *cache_pod_of(struct cached_job *job, const char *uid); /* or NULL */
void cache_pods_fini(struct cached_job *job);
void cache_tell(struct cache *c, void (*changed)(void *arg, const char *key), char *key);
/* Calls end() for every entry of a namespace, which drops what was not seen and says whether it
 * did; takes the lock. */
void cache_sweep(struct cache *c, const char *ns, bool (*end)(struct cached_job *job, int kind),
		 int kind);
/* What we put in and no watch confirmed in time does not exist; the lock is held. */
enum { CACHE_ASSUMED_MAX_S = 60 };
void cache_drop_unconfirmed(struct cached_job *job, double now);
/* The nodes' part of a snapshot, with a reference; the lock is held. */
struct node_table *cache_nodes(struct cache *c);
void node_table_unref(struct node_table *t);

/* A running task that may be asked how far the job is. */
struct cache_chief {
	char *key, *ip, *pod_uid, *job_uid;
};
/* The chiefs of all running jobs that may be asked now; free with cache_chiefs_free. */
struct cache_chief *cache_chiefs(struct cache *c, double now, unsigned *n);
/* It did not answer: it is asked less and less often, each minute at least; every ten when it is
 * ready and has never answered. */
void cache_chief_silent(struct cache *c, const struct cache_chief *chief, double now);
/* A membership update (job_plan.notice) and the tasks that have an older epoch. */
struct cache_notice {
	char *text;
	int epoch;
	struct cache_chief *tasks;
	unsigned n;
};
/* All updates that are due.  An update is planned anew from the stored status; free with
 * cache_notices_free. */
struct cache_notice *cache_notices(struct cache *c, double now, unsigned *n);
void cache_notices_free(struct cache_notice *notices, unsigned n);
/* It has taken that up; or it has not, and is told less and less often, as cache_chief_silent. */
void cache_told(struct cache *c, const struct cache_chief *task, int epoch);
void cache_not_told(struct cache *c, const struct cache_chief *task, double now);
void cache_chiefs_free(struct cache_chief *chiefs, unsigned n);
/* New progress of a job; true when it differs from the last. */
bool cache_set_progress(struct cache *c, const struct cache_chief *chief,
			const struct progress_report *report, const char *kernels, double now);
/* The final report of a chief that ended replaces the progress; the lock is held. */
void cache_take_final_report(struct cached_job *job, double now);
unsigned cache_count(struct cache *c);
void cache_metrics(struct cache *c, struct mu_buf *out);
void cache_each_key(struct cache *c, void (*fn)(void *arg, const char *key), void *arg);

#endif
