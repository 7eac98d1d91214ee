/* SPDX-License-Identifier: Apache-2.0 */
/* The controller: watches on one side, writes on the other, job_plan between them.
 *
 * Threads: one for each watch (jobs, pods, services, nodes), `workers` that reconcile, one that
 * asks chiefs how far they are, one for the lease, one for probes and metrics.  The cache and the
 * queue have a lock each; neither is held across a call.
 *
 * Everything that reaches outside goes through `struct control_io`, so a test can be the cluster.
 */
#ifndef CONTROL_CONTROL_H
#define CONTROL_CONTROL_H

#include <stdatomic.h>

#include "operator/control/cache.h"
#include "operator/control/workqueue.h"
#include "operator/kube/kube_stream.h"

struct control_io {
	int (*call)(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err);
	/* Asks the task server at ip:port to end by itself. */
	int (*finish)(void *user, const char *ip, int port, struct mu_err *err);
	double (*now)(void *user);     /* wall-clock seconds */
	bool (*may_write)(void *user); /* false once leadership may have passed */
	void *user;
};

struct control_options {
	const char *image, *image_gpu;
	const char *namespaces; /* "a,b"; NULL or "": all of them */
	const char *identity, *lease_namespace;
	bool leader_election;
	int workers, metrics_port, probe_port; /* port 0: none */
	double progress_seconds;               /* between looks at a chief; 0: never */
};

struct event_log {
	pthread_mutex_t lock;
	struct mu_map recent; /* hash of what it says -> struct event_series */
};

struct control {
	struct control_options options;
	struct kube_client *kube;
	struct control_io io;
	struct cache cache;
	struct workqueue queue;
	struct event_log events;
	_Atomic bool leading, synced, lost;
	_Atomic long long lease_until_ms; /* monotonic */
	_Atomic unsigned reconciles, reconcile_errors, working;
};

/* ---- controller.c ---- */
/* All but `io`, which the caller fills in, and the threads; `now` is the queue's clock. */
void control_init(struct control *c, const struct control_options *options, double (*now)(void));
void control_fini(struct control *c);
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
	cJSON *parsed; /* the job as stored, once somebody asked for it: reconcile_object */
	double now;
	double wake; /* sooner than the plan's, when an action wants another look; 0: none */
};
/* The job as stored.  A look at which nothing is new needs it not. */
const cJSON *reconcile_object(struct reconcile *r);
/* Creates of the plan before the status is stored, the rest after it: a controller that dies in
 * between must not forget why a pod is gone.  Each returns the first error, after having tried the
 * other actions unless the server is away; apply_creates else returns how many objects it made. */
int apply_creates(struct reconcile *r, const struct job_plan *plan, struct mu_err *err);
int apply_removals(struct reconcile *r, const struct job_plan *plan, struct mu_err *err);

/* ---- status.c ---- */
/* Patches the job's status when `wanted` (JSON object, taken) differs from what is stored.
 * hash: status_hash of it, remembered when it is stored; 0: not. */
int status_store(struct reconcile *r, cJSON *wanted, uint64_t hash, struct mu_err *err);
/* The whole status of a plan: the plan's own part, progress, and the summary for the columns. */
cJSON *status_wanted(struct reconcile *r, const struct job_status *status);
/* Of all that status_wanted is made of: the same again needs no second comparison. */
uint64_t status_hash(const struct reconcile *r, const struct job_status *status);
/* A status that says why the manifest cannot be used. */
cJSON *status_invalid(const cJSON *object, const char *message, double now);
/* What turns `from` into `to` as a JSON merge patch; NULL when they are equal. */
cJSON *merge_patch(const cJSON *from, const cJSON *to);
void format_time(double t, char out[32]);

/* ---- render.c ---- */
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

/* ---- events.c ---- */
void events_init(struct event_log *e);
void events_fini(struct event_log *e);
/* An event about the job; one that was said within five minutes becomes a series. */
void event_say(struct reconcile *r, bool warning, const char *reason, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* ---- leader.c, progress.c, http.c: threads ---- */
void *leader_run(void *control);
void leader_release(struct control *c);
bool leader_may_write(void *control);
void *progress_run(void *control);
struct probe_server;
int probe_server_start(struct probe_server **out, struct control *c, int port, struct mu_err *err);
void probe_server_stop(struct probe_server *s);

#endif
