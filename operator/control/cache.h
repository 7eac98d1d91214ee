/* SPDX-License-Identifier: Apache-2.0 */
/* What the operator knows of the cluster: jobs as text, pods as small records, nodes as labels.
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
#include "operator/plan/job_plan.h"

#define LABEL_JOB   "muster.dev/job"
#define LABEL_TASK  "muster.dev/task"
#define LABEL_INDEX "muster.dev/index"

struct cached_pod {
	struct cached_pod *next;
	char *name, *uid, *owner; /* owner: uid of the controller, "" when there is none */
	char *task;
	char *reason, *node, *ip; /* or NULL */
	int index, exit_code;
	enum pod_phase phase;
	bool ready, deleting, free, killed, seen;
	double created, finished, deletion_due;
	double assumed;      /* when we put it in ourselves; 0 once the watch has shown it */
	double finish_asked; /* when we asked its server to end; 0 */
	char kernels[32];    /* as the task reported; "" */
};

struct cached_job {
	char *key;  /* "namespace/name" */
	char *text; /* the object as JSON, or NULL when the job itself is not there */
	char *uid;  /* of the job, with text */
	uint64_t version;
	char *service_owner; /* uid of the service's owner; NULL: no service */
	double service_assumed;
	struct cached_pod *pods;
	char *progress; /* JSON of status.progress as last heard, or NULL */
	double progress_at;
	double watched_since; /* when we looked at it first */
	uint64_t settled;     /* status_hash of what text says, when that was compared; 0 */
	bool verified; /* text is no older than our term: it came as the answer to a call of ours */
	bool stale;    /* the server has a newer one */
	bool policy;   /* its NetworkPolicy was there when we looked */
	int group;     /* members of its gang when we looked; 0: none, or not looked */
	bool seen, service_seen;
	int phase; /* enum job_phase as last written, for the metrics */
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
	struct mu_map jobs;                              /* key -> struct cached_job */
	struct mu_map nodes;                             /* name -> struct cached_node */
	struct node_table *table;                        /* of them; NULL: to be made */
	void (*changed)(void *arg, const char *key);     /* called without the lock */
	void (*pod_changed)(void *arg, const char *key); /* likewise */
	void *arg;
};

/* One job as it is now; everything lives in the arena. */
struct snapshot {
	struct mu_arena arena;
	struct node_table *table;
	const char *key, *text, *uid;
	const char *progress;
	double progress_at;
	struct observed_job observed;   /* without status */
	const struct cached_pod **pods; /* beside observed.pods */
	bool foreign_service;
	uint64_t settled;
	bool verified, stale; /* as in cached_job */
	double doubt_until;   /* when what we put in ourselves must have been confirmed; 0 */
};

void cache_init(struct cache *c, void (*changed)(void *arg, const char *key), void *arg);
void cache_fini(struct cache *c);

/* Handlers for reflectors (arg: the cache). */
void cache_jobs_begin(void *cache);
void cache_job_seen(void *cache, const cJSON *object);
void cache_job_gone(void *cache, const cJSON *object);
void cache_jobs_end(void *cache);
void cache_pods_begin(void *cache);
void cache_pod_seen(void *cache, const cJSON *object);
void cache_pod_gone(void *cache, const cJSON *object);
void cache_pods_end(void *cache);
void cache_services_begin(void *cache);
void cache_service_seen(void *cache, const cJSON *object);
void cache_service_gone(void *cache, const cJSON *object);
void cache_services_end(void *cache);
void cache_nodes_begin(void *cache);
void cache_node_seen(void *cache, const cJSON *object);
void cache_node_gone(void *cache, const cJSON *object);
void cache_nodes_end(void *cache);

/* Our own writes, from the server's answer to them. */
void cache_assume_job(struct cache *c, const cJSON *object);
/* This version of the job says what status_wanted would. */
void cache_settle(struct cache *c, const cJSON *object, uint64_t hash);
/* The server has a newer one than we. */
void cache_doubt_job(struct cache *c, const char *key);
void cache_assume_pod(struct cache *c, const cJSON *object, double now);
void cache_assume_service(struct cache *c, const char *key, const char *owner, double now);
void cache_assume_policy(struct cache *c, const char *key);
void cache_assume_group(struct cache *c, const char *key, int members);
void cache_assume_deleting(struct cache *c, const char *key, const char *pod_uid);
void cache_assume_gone(struct cache *c, const char *key, const char *pod_uid);
void cache_finish_asked(struct cache *c, const char *key, const char *pod_uid, double now);

/* false when there is no such job object. */
bool cache_snapshot(struct cache *c, const char *key, double now, struct snapshot *out);
void snapshot_fini(struct snapshot *s);
/* Pods that we put in and no watch confirmed in time do not exist; the lock is held. */
enum { CACHE_ASSUMED_MAX_S = 60 };
void cache_drop_unconfirmed(struct cached_job *job, double now);
/* The nodes' part of a snapshot, with a reference; the lock is held. */
struct node_table *cache_nodes(struct cache *c);
void node_table_unref(struct node_table *t);

/* A running task that may be asked how far the job is. */
struct cache_chief {
	char *key, *ip, *pod_uid;
};
/* The chiefs of all running jobs; free with cache_chiefs_free. */
struct cache_chief *cache_chiefs(struct cache *c, unsigned *n);
void cache_chiefs_free(struct cache_chief *chiefs, unsigned n);
/* New progress (JSON) of a job; true when it differs from the last. */
bool cache_set_progress(struct cache *c, const struct cache_chief *chief, const char *json,
			const char *kernels, double now);
void cache_set_phase(struct cache *c, const char *key, enum job_phase phase);
unsigned cache_count(struct cache *c);
void cache_metrics(struct cache *c, struct mu_buf *out);
void cache_each_key(struct cache *c, void (*fn)(void *arg, const char *key), void *arg);

/* ---- pod_record.c: what we keep of a pod ---- */
struct cached_pod *pod_record_new(const cJSON *pod); /* NULL when it is none of ours */
void pod_record_free(struct cached_pod *p);
double time_from_rfc3339(const char *text); /* seconds; 0 when absent or malformed */

#endif
