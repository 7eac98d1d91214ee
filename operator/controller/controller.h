/* SPDX-License-Identifier: Apache-2.0 */
/* The controller: watches on one side, writes on the other, job_plan between them.
 *
 * Threads: one for each watch, `workers` that reconcile, one that asks chiefs for their progress,
 * one for the lease, one for probes and metrics. Jobs, pods, services and nodes are always watched;
 * policies and pod groups from the first job that has one. The store and the queue have a lock
 * each; neither is held across a call.
 *
 * All effects go through `struct controller_io`, so that a test can replace the cluster. */
#ifndef CONTROLLER_CONTROLLER_H
#define CONTROLLER_CONTROLLER_H

#include <semaphore.h>
#include <stdatomic.h>

#include "lib/base/histogram.h"
#include "lib/kube/kube_stream.h"
#include "lib/tls/certs.h"
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
	int (*ask)(void *user, const struct pod *task, struct mu_buf *out);
	/* Posts to a page of a task: "finish" to end, "cluster" with the members of its cluster. */
	int (*post)(void *user, const struct pod *task, const char *page, const char *body,
		    struct mu_err *err);
};

struct controller_options {
	const char *image, *image_gpu, *image_board;
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
	_Atomic bool asked;
	sem_t wake; /* posted, too, when the first thread has something else to see to */
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
	_Atomic unsigned wanted;                     /* bit i: the kind i is watched on demand */
	struct mu_histogram reconcile_seconds;       /* how long each reconcile took */
	struct mu_histogram to_running;              /* of jobs, from their start on */
	struct mu_histogram succeeded_in, failed_in; /* likewise, to their end */
};

/* All but `io`, which the caller fills in, and the threads; `now` is the queue's clock. */
void controller_init(struct controller *c, const struct controller_options *options,
		     double (*now)(void));
void controller_fini(struct controller *c);
/* Has objects of this kind watched from now on. */
void controller_want(struct controller *c, enum object_kind kind);
/* Sends a request to the API server: a write only while leadership lasts, else CANCELLED.  A PATCH
 * is a merge patch. */
int controller_send(struct controller *c, const struct kube_request *rq, cJSON **out,
		    struct mu_err *err);
/* Sends one with this body, which it takes, or NULL. */
int controller_call(struct controller *c, const char *method, const char *path, cJSON *body,
		    cJSON **out, struct mu_err *err);
/* Wakes the first thread: what it watches over has changed. */
void controller_wake(struct controller *c);

#endif
