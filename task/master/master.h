/* SPDX-License-Identifier: Apache-2.0 */
/* The master: client sessions, their graphs and their steps. */
#ifndef MU_TASK_MASTER_MASTER_H
#define MU_TASK_MASTER_MASTER_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/offload.h"
#include "lib/base/request_ids.h"
#include "lib/base/timer.h"
#include "task/graph/graph_passes.h"
#include "task/master/fan_out.h"
#include "task/messages/step_messages.h"
#include "task/peer/peer.h"
#include "task/rpc/server.h"
#include "task/runtime/runtime.h"

struct master {
	struct runtime *rt;
	struct peers *peers;
	struct mu_offload *offload;
	struct mu_timer *timer;
	struct mu_request_ids *ids;
	long connect_timeout_ms;       /* limit of CreateSession's wait for peers; 0: none */
	struct mu_span session_config; /* defaults of every session's ConfigProto */
	pthread_mutex_t lock;          /* guards sessions */
	struct mu_map sessions;        /* handle -> struct session, one reference */
	struct fan_out *waiting;       /* the running CreateSession calls; guarded by lock too */
	_Atomic uint64_t steps, failed_steps;
	_Atomic bool stopping; /* rejects new sessions and steps */
	/* used by idle_sessions.c */
	int64_t session_idle_ms;
	bool is_sweeping;
	pthread_cond_t sweep_ended;
};
struct master *master_new(struct runtime *rt, struct peers *peers, struct mu_offload *offload,
			  struct mu_timer *timer, long connect_timeout_ms);
void master_reject_new_steps(
    struct master *m);              /* rejects new sessions and steps with UNAVAILABLE */
void master_stop(struct master *m); /* closes every session */
void master_free(struct master *m);
unsigned master_sessions(struct master *m);
/* Closes sessions that no call has used for idle_ms; 0: never. */
void master_set_session_idle_limit(struct master *m, int64_t idle_ms);

/* Between these two calls master_describe_waits reports the peers that f waits for. */
void master_add_waiting(struct master *m, struct fan_out *f);
void master_remove_waiting(struct master *m, struct fan_out *f);
/* Appends text for users: the peers that the CreateSession calls of this client wait for. */
void master_describe_waits(struct master *m, uint32_t client_id, struct mu_buf *out);

/* ---- sessions ---- */
struct run_step;
struct session {
	_Atomic unsigned refs;
	struct master *master;
	char handle[17];
	int64_t created_ms;
	_Atomic int64_t used_ms; /* time of the last call */
	/* Held for a long time, only by offload threads that extend or partition the graph. */
	pthread_mutex_t graph_lock;
	struct mu_graph *graph;
	struct stateful_placement stateful;
	int64_t version;
	/* Held briefly; guards the members below.  Order: graph_lock, then lock. */
	pthread_mutex_t lock;
	pthread_cond_t idle;
	bool closed;
	struct mu_map client_graphs; /* signature -> struct client_graph, one reference */
	struct mu_map callables;     /* handle -> struct callable */
	int64_t last_callable;
	struct mu_map partials; /* handle -> struct partial, one reference */
	struct run_step *running;
	struct fan_out *registering; /* the running RegisterGraph calls; NULL: none */
	/* These members do not change after session_create. */
	struct mu_arena arena;
	struct peers *cluster; /* the tasks, with their names in this session */
	struct graph_devices devices;
	struct peer **peers;
	unsigned n_peers;
	struct mu_span config;
	int64_t timeout_ms;
	int64_t cost_every, cost_after; /* GraphOptions.build_cost_model; 0: never */
	bool isolate;
	bool log_placement;
};
struct session *session_new(struct master *m);
static inline struct session *session_ref(struct session *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}
void session_unref(struct session *s);
MU_AUTO_DEFINE(session_unref, struct session)
/* Blocks.  Gets the devices of every peer that the filters accept and opens a worker session on
 * each.  The caller may cancel the call through g. */
int session_create(struct master *m, struct mu_span request, struct fan_out *g,
		   struct session **out, struct mu_err *err);
int session_extend(struct session *s, struct mu_span graph_def, int64_t version,
		   int64_t *new_version, struct mu_err *err);
/* Cancels the steps, waits for them and deletes the worker sessions.  A second call has no effect.
 */
void session_close(struct session *s, const struct mu_err *why);
/* Returns a new reference; NULL with ABORTED if the session does not exist. */
struct session *master_session(struct master *m, const char *handle, struct mu_err *err);
/* Fails when the master stops. */
int master_add(struct master *m, struct session *s, struct mu_err *err);
struct session *master_remove(struct master *m, const char *handle);
void master_close_all(struct master *m, const struct mu_err *why);
/* Adds the tasks of the cluster that the filters accept to g, and always this task. */
int master_add_filtered_peers(struct peers *cluster, char **filters, size_t n_filters,
			      struct fan_out *g, struct mu_err *err);

/* ---- client graphs: the registered partitions for one step signature ---- */
struct registered_partition {
	struct peer *peer;
	char *graph; /* handle of the registered graph */
};
struct client_graph {
	_Atomic unsigned refs;
	_Atomic int64_t steps;
	struct registered_partition *partitions;
	unsigned n_partitions;
	char **feed_keys, **fetch_keys;
	unsigned n_feeds, n_fetches;
};
void client_graph_unref(struct client_graph *cg);
/* Returns a new reference to the session's client graph for these names; NULL: not made yet. */
struct client_graph *client_graph_find(struct session *s, const struct run_step_request *r);
/* Finds or makes the client graph; blocks. */
int client_graph_get(struct session *s, const struct run_step_request *r, struct client_graph **out,
		     struct mu_err *err);

/* ---- callables: feeds, fetches and targets that a client registered under a handle ---- */
struct callable {
	struct mu_arena arena;
	struct run_step_request names;
};
int callable_make(struct session *s, struct mu_span request, int64_t *handle, struct mu_err *err);
int callable_release(struct session *s, int64_t handle, struct mu_err *err);
/* Copies the names into r, in arena a.  INVALID_ARGUMENT if the callable does not exist. */
int callable_names(struct session *s, struct run_step_request *r, struct mu_arena *a,
		   struct mu_err *err);
void callables_free(struct session *s);

/* ---- steps ---- */
/* The time limit of a step; 0: none. */
static inline long step_timeout_ms(const struct session *s, const struct run_step_request *r)
{
	int64_t ms = r->timeout_ms > 0 ? r->timeout_ms : s->timeout_ms;

	return ms > 0 ? (long)ms : 0;
}
#define STEP_TIMED_OUT "Deadline Exceeded: the step took longer than its time limit"
/* Replies to the call when the step has ended, from any thread.  Returns false without a reply if
 * the call belongs to a partial run (partial_run). */
bool run_step_start(struct master *m, struct rpc_call *call, bool callable);
/* Returns the running steps, each with a new reference, in a new array.  s->lock must be held. */
struct run_step **run_steps_of(struct session *s, unsigned *n);
void run_step_fail(struct run_step *r, const struct mu_err *why);
/* Fails the step because its session is closed.  No later error replaces this one. */
void run_step_close(struct run_step *r, const struct mu_err *why);
/* Starts a step without an RPC: the caller feeds and fetches through its rendezvous.  Returns a new
 * reference.  `ended` is called once, after every partition has replied and the caller has called
 * run_step_release.  If the step fails, that call is not needed. */
int run_step_open(struct session *s, struct client_graph *client_graph,
		  void (*ended)(void *arg, const struct mu_err *err), void *arg,
		  struct run_step **out, struct mu_err *err);
struct rendezvous *run_step_rendezvous(struct run_step *r); /* borrowed */
void run_step_release(struct run_step *r);
void run_step_unref(struct run_step *r);

/* ---- service ---- */
extern const struct rpc_method master_methods[];
extern const unsigned master_n_methods;
/* The methods' ctx is a struct task_context. */

#endif
