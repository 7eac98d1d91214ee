/* SPDX-License-Identifier: Apache-2.0 */
/* The master: client sessions, the graphs they build up, and their steps. */
#ifndef MU_TASK_MASTER_MASTER_H
#define MU_TASK_MASTER_MASTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/offload.h"
#include "lib/base/request_ids.h"
#include "lib/base/timer.h"
#include "task/graph/graph_passes.h"
#include "task/master/gather.h"
#include "task/messages/hot.h"
#include "task/peer/peer.h"
#include "task/rpc/server.h"
#include "task/runtime/runtime.h"

struct master {
	struct runtime *rt;
	struct peers *peers;
	struct mu_offload *offload;
	struct mu_timer *timer;
	struct mu_request_ids *ids;
	long connect_timeout_ms; /* how long CreateSession waits for peers; 0: until the client
				    gives up */
	struct mu_span session_config; /* defaults of every session's ConfigProto */
	pthread_mutex_t lock;          /* guards sessions */
	struct mu_map sessions;        /* handle -> struct session, one reference */
	struct gather *waiting;        /* of CreateSessions under way; under lock too */
	_Atomic uint64_t steps, failed_steps;
	_Atomic bool stopping; /* takes no more sessions and steps */
	/* of idle_sessions.c */
	int64_t session_idle_ms;
	bool sweeping;
	pthread_cond_t swept;
};
struct master *master_new(struct runtime *rt, struct peers *peers, struct mu_offload *offload,
			  struct mu_timer *timer, long connect_timeout_ms);
void master_drain(struct master *m); /* no more sessions, no more steps: UNAVAILABLE */
void master_stop(struct master *m);  /* closes every session */
void master_free(struct master *m);
unsigned master_sessions(struct master *m);
/* Closes sessions that no call has named for idle_ms from now on; 0: never. */
void master_close_idle_sessions(struct master *m, int64_t idle_ms);
void master_wait_sweep(struct master *m); /* for master_stop */

/* Between the two, master_waits tells of those that g waits for. */
void master_awaits(struct master *m, struct gather *g);
void master_awaits_no_more(struct master *m, struct gather *g);
/* For people: what the CreateSessions of this client wait for; nothing when there is none. */
void master_waits(struct master *m, uint32_t client_id, struct mu_buf *out);

/* ---- sessions ---- */
struct run_step;
struct session {
	_Atomic unsigned refs;
	struct master *master;
	char handle[17];
	int64_t created_ms;
	_Atomic int64_t used_ms; /* when a client last named it */
	/* Long: the graph grows and plans are made under it, by offload threads only. */
	pthread_mutex_t graph_lock;
	struct mu_graph *graph;
	struct graph_homes homes;
	int64_t version;
	/* Short: what follows. Order: graph_lock, then lock. */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool closed;
	struct mu_map plans;     /* signature -> struct plan, one reference */
	struct mu_map callables; /* handle -> struct callable */
	int64_t last_callable;
	struct mu_map partials; /* handle -> struct partial, one reference */
	struct run_step *running;
	/* Fixed once created. */
	struct mu_arena arena;
	struct graph_devices devices;
	struct peer **peers;
	unsigned n_peers;
	struct mu_span config;
	int64_t timeout_ms;
	bool isolate;
	bool log_placement;
};
struct session *session_ref(struct session *s);
/* Its client's connection is closed, and none of its steps runs. */
void session_unref(struct session *s);
/* Blocks: asks every peer that the filters let through for its devices, and opens a worker session
 * on each.  g is this call's own, for its cancellation. */
int session_create(struct master *m, struct mu_span request, struct gather *g, struct session **out,
		   struct mu_err *err);
int session_extend(struct session *s, struct mu_span graph_def, int64_t version, int64_t *now,
		   struct mu_err *err);
/* Cancels its steps, waits for them, deletes the worker sessions.  The second call does nothing. */
void session_close(struct session *s, const struct mu_err *why);
/* A reference; ABORTED when there is none. */
struct session *master_session(struct master *m, const char *handle, struct mu_err *err);
void master_add(struct master *m, struct session *s);
struct session *master_remove(struct master *m, const char *handle);
/* The peers that the filters let through; this task always. */
int master_filter(struct master *m, char **filters, size_t n_filters, struct gather *g,
		  struct mu_err *err);

/* ---- plans: what one signature of a step needs ---- */
struct plan_part {
	struct peer *peer;
	char *graph; /* the handle it was registered under */
};
struct plan {
	_Atomic unsigned refs;
	struct plan_part *parts;
	unsigned n_parts;
	char **feed_keys, **fetch_keys;
	unsigned n_feeds, n_fetches;
};
void plan_unref(struct plan *p);
/* The session's plan for these names, a reference; NULL when there is none yet. */
struct plan *plan_find(struct session *s, const struct hot_run_step *r);
/* Finds or makes it; blocks. */
int plan_make(struct session *s, const struct hot_run_step *r, struct plan **out,
	      struct mu_err *err);

/* ---- callables: names given once ---- */
struct callable {
	struct mu_arena arena;
	struct hot_run_step names;
};
int callable_make(struct session *s, struct mu_span request, int64_t *handle, struct mu_err *err);
int callable_release(struct session *s, int64_t handle, struct mu_err *err);
/* Copies the names into r, in a.  INVALID_ARGUMENT when there is no such callable. */
int callable_names(struct session *s, struct hot_run_step *r, struct mu_arena *a,
		   struct mu_err *err);
void callables_free(struct session *s);

/* ---- steps ---- */
#define STEP_TIMED_OUT "Deadline Exceeded: the step took longer than its time limit"
/* Answers the call when the step is over; from any thread. */
void run_step_start(struct master *m, struct rpc_call *call, bool callable);
/* With s->lock held: the running steps, each with a reference, in a new array. */
struct run_step **run_steps_of(struct session *s, unsigned *n);
void run_step_fail(struct run_step *r, const struct mu_err *why);
/* Starts a step that answers no call: who opened it feeds and fetches through its rendezvous.
 * Returns a new reference.  `ended` is called once, when every part has answered and it has been
 * let go of; a failure lets go of it too. */
int run_step_open(struct session *s, struct plan *plan,
		  void (*ended)(void *arg, const struct mu_err *err), void *arg,
		  struct run_step **out, struct mu_err *err);
struct rendezvous *run_step_rendezvous(struct run_step *r); /* borrowed */
void run_step_let_go(struct run_step *r);
void run_step_unref(struct run_step *r);

/* ---- the service ---- */
extern const struct rpc_method master_methods[];
extern const unsigned master_n_methods;
/* The methods' ctx is a struct task_context. */

#endif
