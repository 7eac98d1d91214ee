/* SPDX-License-Identifier: Apache-2.0 */
/* The controller: watches on one side, writes on the other, job_plan between them.
 *
 * Threads: one for each watch (jobs, pods, services, nodes; policies and pod groups from the first
 * job on that has one), `workers` that reconcile, one that asks chiefs how far they are, one for
 * the lease, one for probes and metrics.  The cache and the queue have a lock each; neither is held
 * across a call.
 *
 * Everything that reaches outside goes through `struct control_io`, so a test can be the cluster.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include <stdatomic.h>

#include "lib/base/histogram.h"
#include "lib/kube/kube_stream.h"
#include "operator/control/cache.h"
#include "operator/control/certs.h"
#include "operator/control/spec_memo.h"
#include "operator/control/workqueue.h"

struct control_io {
	int (*call)(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err);
	/* Asks the task server at ip:port to end by itself. */
	int (*finish)(void *user, const char *ip, int port, struct mu_err *err);
	double (*now)(void *user);     /* wall-clock seconds */
	bool (*may_write)(void *user); /* false once leadership may have passed */
	void *user;
	/* (optional) instead of mu_certs_make */
	int (*certs)(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
		     int64_t to, struct mu_err *err);
};

struct control_options {
	const char *image, *image_gpu, *image_board;
	const char *namespaces; /* "a,b"; NULL or "": all of them */
	const char *identity, *lease_namespace;
	bool leader_election;
	bool nodes; /* watch nodes, which takes a ClusterRole also when namespaces are named */
	int workers, metrics_port, probe_port; /* port 0: none */
	double progress_seconds;               /* between looks at a chief; 0: never */
	int cert_life;                         /* of tasks, seconds; 0: PLAN_CERT_LIFE */
};

/* An event that waits to be written. */
struct event_letter {
	struct event_letter *next;
	char *path, *body;
	bool series;
	double since;
};
struct event_log {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct mu_map recent; /* hash of what it says -> struct event_series */
	struct event_letter *first, **last;
	unsigned n;
	bool stopped;
	_Atomic bool posting; /* a thread writes them */
};

/* What is watched from the first job on that has one. */
enum watch_wanted { WATCH_POLICIES = 1, WATCH_VOLCANO = 2, WATCH_SCHEDULER_PLUGINS = 4 };

struct control {
	struct control_options options;
	struct kube_client *kube;
	struct control_io io;
	struct cache cache;
	struct workqueue queue;
	struct event_log events;
	struct spec_memo specs;
	struct certs_memo certs;
	_Atomic bool leading, synced, lost, released; /* released: leads no more, and will not */
	_Atomic long long lease_until_ms;             /* monotonic */
	_Atomic unsigned reconciles, reconcile_errors, working;
	_Atomic unsigned making;                     /* looks that create objects just now */
	_Atomic unsigned wanted;                     /* of watch_wanted */
	struct mu_histogram looked;                  /* how long each look took */
	struct mu_histogram to_running;              /* of jobs, from their start on */
	struct mu_histogram succeeded_in, failed_in; /* likewise, to their end */
};

/* ---- controller.c ---- */
/* All but `io`, which the caller fills in, and the threads; `now` is the queue's clock. */
void control_init(struct control *c, const struct control_options *options, double (*now)(void));
void control_fini(struct control *c);
/* What the controller itself counts, in Prometheus' text form. */
void control_metrics(struct control *c, struct mu_buf *out);
/* Has such objects watched from now on. */
void control_want(struct control *c, enum watch_wanted what);
/* Whether objects are being made, or many jobs wait to be looked at: what nobody waits for may come
 * later.  A few are no crowd: jobs that only look whether it is quiet would wait for each other. */
bool control_busy(struct control *c);
/* What a worker does with a key from the queue, up to workqueue_done. */
void control_work(struct control *c, const char *key);
/* Runs until *stop becomes true or leadership is lost; 0 after an orderly stop.  Takes config. */
int control_run(const struct control_options *options, struct kube_config *config,
		const _Atomic bool *stop, struct mu_err *err);

/* ---- reconcile.c ---- */
/* One look at one job.  Returns 0 with *wake (seconds from now, 0: none), or an error after which
 * the job should be looked at again soon. */
int reconcile(struct control *c, const char *key, double *wake, struct mu_err *err);

/* ---- apply.c ---- */
/* What a reconcile works on. */
struct reconcile {
	struct control *control;
	const struct snapshot *seen;
	const struct job_spec *spec;
	cJSON *stored; /* the status, once somebody asked for it: reconcile_stored */
	double now;
	double wake; /* sooner than the plan's, when an action wants another look; 0: none */
};
/* The status as stored; NULL when there is none.  A look at which nothing is new needs it not. */
const cJSON *reconcile_stored(struct reconcile *r);
/* Asks for another look at this time at the latest; 0 is no time. */
void reconcile_wake(struct reconcile *r, double when);
#define RECONCILE_SOON_S 0.03 /* for what we have changed ourselves and no watch will tell of */
/* Creates of the plan before the status is stored, the rest after it: a controller that dies in
 * between must not forget why a pod is gone.  Each returns the first error, after having tried the
 * other actions unless the server is away; apply_creates else returns how many objects it made. */
int apply_creates(struct reconcile *r, const struct job_plan *plan, struct mu_err *err);
bool action_creates(enum action_kind kind);
int apply_removals(struct reconcile *r, const struct job_plan *plan, struct mu_err *err);

/* ---- certs.c ---- */
/* Does what the plan says of the Secret and notes it in the plan's status, which is to be stored
 * before anything else is done: 1; 0 when it says nothing. */
int certs_apply(struct reconcile *r, struct job_plan *plan, struct mu_err *err);

/* ---- status.c ---- */
/* Patches the job's status when `wanted` (JSON object, taken) differs from what is stored.
 * hash: status_hash of it, remembered when it is stored; 0: not. */
int status_store(struct reconcile *r, cJSON *wanted, uint64_t hash, struct mu_err *err);
/* The whole status of a plan: the plan's own part (text: as job_status_write has it), progress, and
 * the summary for the columns. */
cJSON *status_wanted(struct reconcile *r, const struct job_status *status, struct mu_span text);
/* Of all that status_wanted is made of: the same again needs no second comparison. */
uint64_t status_hash(const struct reconcile *r, struct mu_span text);
/* A status that says why the spec of this generation cannot be used, instead of the stored one: a
 * job that had not begun has failed, until its spec is corrected; one that runs is not ready, and
 * goes on; one that is over stays what it was. */
cJSON *status_invalid(const cJSON *stored, const cJSON *generation, const char *why, double now);
/* What turns `from` into `to` as a JSON merge patch; NULL when they are equal. */
cJSON *merge_patch(const cJSON *from, const cJSON *to);
void format_time(double t, char out[32]);

/* ---- render.c ---- */
/* Without its data.  name NULL: none is drawn yet. */
cJSON *render_secret(const struct job_spec *spec, const char *name);
cJSON *render_pod(const struct job_spec *spec, const struct plan_pod *pod);
/* ---- render_group.c ---- */
/* An object named as the job, with its labels and owner. */
cJSON *render_object(const char *version, const char *kind, const struct job_spec *spec);
cJSON *render_policy(const struct job_spec *spec, int port, int http_port);
/* The gang scheduler's group of so many pods, and where such objects are. */
cJSON *render_group(const struct job_spec *spec, int members);
const char *group_api(const struct job_spec *spec);
/* Makes a pod a member. */
void render_member(cJSON *pod, const struct job_spec *spec, int members);

/* ---- render.c again ---- */
cJSON *render_service(const struct job_spec *spec, int port, int http_port);
/* TensorBoard's own name and port; it is found through this one. */
cJSON *render_board_service(const struct job_spec *spec, const struct plan_pod *pod);

/* ---- events.c ---- */
void events_init(struct event_log *e);
void events_fini(struct event_log *e);
/* An event about the job; one that was said within five minutes becomes a series. */
void event_say(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* Writes events behind what matters more; returns when stopped and all are written, or given up. */
void *events_run(void *control);
void events_stop(struct event_log *e);

/* ---- leader.c, progress.c, http.c: threads ---- */
void *leader_run(void *control);
void leader_release(struct control *c);
bool leader_may_write(void *control);
/* To be called when nobody else writes any more and we do not yet: asks for the version of now.  A
 * job that is newer holds all that others have written, so it need not be read again before the
 * first deed (reconcile.c).  Where the answer fails to come, each job is. */
void leader_begin_term(struct control *c);
void *progress_run(void *control);
struct mu_http_server; /* to be ended by mu_http_stop */
int probe_server_start(struct mu_http_server **out, struct control *c, int port,
		       struct mu_err *err);

#endif
