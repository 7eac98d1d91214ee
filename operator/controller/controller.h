/* SPDX-License-Identifier: Apache-2.0 */
/* The controller: watches on one side, writes on the other, job_plan between them.
 *
 * Threads: one for each watch, `workers` that reconcile, one that polls the progress of chiefs,
 * one for the lease, one each for probes and metrics. Pod groups are watched from the first job on
 * that has one, other kinds always. The store and the queue have a lock each; neither is held
 * across a call.
 *
 * All effects go through `struct controller_io`, so that a test can replace the cluster. */
#ifndef MU_OPERATOR_CONTROLLER_CONTROLLER_H
#define MU_OPERATOR_CONTROLLER_CONTROLLER_H

#include <semaphore.h>
#include <stdatomic.h>

#include "lib/base/histogram.h"
#include "lib/kube/kube_stream.h"
#include "lib/tls/certs.h"
#include "lib/tls/token.h"
#include "operator/controller/events.h"
#include "operator/controller/store.h"
#include "operator/controller/workqueue.h"

struct controller_io {
	int (*call)(void *user, const struct kube_request *rq, cJSON **out, struct mu_err *err);
	double (*now)(void *user);     /* wall-clock seconds */
	bool (*may_write)(void *user); /* false once leadership may have passed */
	void *user;
	/* (optional) instead of mu_certs_make */
	int (*certs)(struct mu_certs *out, const char *const *names, unsigned n_names, int64_t from,
		     int64_t to, struct mu_err *err);
	/* (optional) Reads the status page of a task. */
	int (*get_status)(void *user, const struct pod *task, struct mu_buf *out);
	/* Posts to a page of a task: "finish" to end, "cluster" with the members of its cluster. */
	int (*post)(void *user, const struct pod *task, const char *page, const char *body,
		    struct mu_err *err);
};

struct controller_options {
	const char *image, *image_gpu, *image_tensorboard;
	const char *namespaces;                 /* "a,b"; NULL or "": all of them */
	const char *identity, *lease_namespace; /* both are set */
	bool leader_election;
	bool nodes; /* watch nodes, which takes a ClusterRole also when namespaces are named */
	int workers, metrics_port, probe_port; /* port 0: none */
	int progress_seconds;                  /* between requests to a task; 0: none */
	int cert_life;                         /* of tasks, seconds; 0: PLAN_CERT_LIFE */
	const char *status_from;    /* namespaces that may reach the status port of tasks, "a,b" */
	const char *token_key_file; /* NULL: a key of this run only */
};

/* Asks the controller to stop; may be called in a signal handler. */
struct controller_stop {
	_Atomic bool requested;
	sem_t wake; /* also posted for other work of the main thread */
};

struct controller {
	struct controller_options options;
	struct controller_stop *stop; /* NULL: it has no threads */
	struct kube_client *kube;
	struct controller_io io;
	struct store store;
	struct workqueue queue;
	struct event_recorder events;
	struct mu_buf token_key;          /* empty: tasks get no token */
	_Atomic bool leading;             /* holds the lease */
	_Atomic bool lost;                /* could not renew it: the process ends */
	_Atomic bool released;            /* gave it up at its end */
	_Atomic bool synced;              /* the watches have delivered their lists */
	_Atomic long long lease_until_ms; /* monotonic */
	_Atomic unsigned reconciles, reconcile_errors, working;
	_Atomic unsigned wanted_kinds;               /* bit i: the kind i is to be watched */
	struct mu_histogram reconcile_seconds;       /* how long each reconcile took */
	struct mu_histogram to_running;              /* of jobs, from their start on */
	struct mu_histogram succeeded_in, failed_in; /* likewise, to their end */
};

/* All but `io`, which the caller fills in, and the threads; `now` is the queue's clock. */
void controller_init(struct controller *c, const struct controller_options *options,
		     double (*now)(void));
void controller_fini(struct controller *c);
/* Ends the work on a key after its reconcile.  Retries an error with backoff.  The next reconcile
 * is `after` seconds from now at the latest (0: not needed). */
void controller_requeue(struct controller *c, const char *key, int rc, double after,
			const struct mu_err *err);
/* Starts to watch objects of this kind. */
void controller_watch_kind(struct controller *c, enum object_kind kind);
/* Sends a request to the API server: a write only while leadership lasts, else CANCELLED.  A PATCH
 * is a merge patch. */
int controller_send(struct controller *c, const struct kube_request *rq, cJSON **out,
		    struct mu_err *err);
/* Sends a request with this body (or NULL), which it takes. */
int controller_call(struct controller *c, const char *method, const char *path, cJSON *body,
		    cJSON **out, struct mu_err *err);
/* True for an error that means that the API server did not respond. */
bool controller_is_unreachable(int rc);
/* Wakes the main thread, to check for work. */
void controller_wake(struct controller *c);

/* ---- leader.c ---- */
void *leader_run(void *controller); /* a thread */
void leader_release(struct controller *c);
bool leader_may_write(void *controller); /* true while this process holds the Lease */

/* ---- progress.c ---- */
void *progress_run(void *controller); /* a thread: polls the tasks of all jobs */
/* When due, sends the members of the cluster (job_plan.membership_update) to the tasks whose epoch
 * is older than that of the stored status, and gets the progress of the job from its chief. True
 * when a task has accepted the members. */
bool progress_poll(struct controller *c, const char *key);

/* ---- task_token.c: bearer tokens of jobs, and the requests to tasks that need them ---- */
/* The Secret in the operator's namespace that the key file is mounted from. */
#define TOKEN_KEY_SECRET "muster-operator-key"
/* Reads the key of options.token_key_file.  A file that does not exist yet: creates the Secret. */
int token_key_load(struct controller *c, struct mu_err *err);
/* FAILED_PRECONDITION when the operator has no key. */
int task_token_digest(const struct controller *c, const char *job_uid, char out[MU_TOKEN_SIZE]);
/* For controller_io: GET /status, and POST with the token of the job. */
int task_get_status(void *controller, const struct pod *task, struct mu_buf *out);
int task_post(void *controller, const struct pod *task, const char *page, const char *body,
	      struct mu_err *err);

/* ---- http.c: probes and metrics ---- */
struct mu_http_server; /* to be ended by mu_http_stop */
int probe_server_start(struct mu_http_server **out, struct controller *c, int port,
		       struct mu_err *err);

#endif
