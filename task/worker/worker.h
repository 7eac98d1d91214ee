/* SPDX-License-Identifier: Apache-2.0 */
/* The worker: sessions that masters opened on this task, their registered graphs and running steps.
 *
 * Called by the RPC service (worker_service.c) and, in process, by peer_local.c. */
#ifndef MU_TASK_WORKER_WORKER_H
#define MU_TASK_WORKER_WORKER_H

#include "lib/base/offload.h"
#include "lib/graph/graph.h"
#include "task/peer/peer.h"
#include "task/rpc/server.h"
#include "task/runtime/runtime.h"

struct worker;
struct worker *worker_new(struct runtime *rt, struct peers *peers, struct mu_offload *offload);
void worker_reject_new_steps(struct worker *w); /* rejects new steps with UNAVAILABLE */
void worker_stop(struct worker *w);             /* cancels every step and waits for them */
void worker_free(struct worker *w);
struct local_worker worker_as_local(struct worker *w); /* for the task's peers */

/* Handles a control message and writes its reply; may block briefly. */
int worker_control(struct worker *w, enum peer_method m, struct mu_span request,
		   struct mu_buf *reply, struct mu_err *err);

/* Registers g, which it takes.  `session_called`: create_worker_session_called of the request.
 * config: the session's ConfigProto.  debug: the step's DebugOptions; empty: none. */
int worker_register(struct worker *w, const char *session, bool session_called,
		    struct mu_span config, struct mu_span debug, struct mu_graph *g, char **handle,
		    struct mu_err *err);
/* Runs a registered graph.  done is called exactly once, perhaps before this returns, with the
 * requested records as fields of a RunGraphResponse.  If a step fails after its start, its
 * rendezvous is aborted before done is called. */
void worker_run(struct worker *w, const struct peer_run *run, bool session_called, peer_done done,
		void *arg);
void worker_cancel_step(struct worker *w, int64_t step_id, const struct mu_err *why);
bool worker_runs_step(struct worker *w, int64_t step_id);
void worker_cleanup_step(struct worker *w, int64_t step_id);
/* Cancels the step and drops its tensors, for callers that will not send CleanupGraph. */
void worker_drop_step(struct worker *w, int64_t step_id, const struct mu_err *why);

/* Counts for /status. */
struct worker_counts {
	unsigned sessions, graphs, running;
	uint64_t steps;
};
void worker_count(struct worker *w, struct worker_counts *out);
/* Callbacks for each running step: its id, then the nodes and rendezvous keys it waits for. */
struct worker_visitor {
	void (*step)(void *arg, int64_t step_id);
	void (*node)(void *arg, const struct mu_node *n);
	void (*key)(void *arg, const char *key);
	void *arg;
};
void worker_each_step(struct worker *w, const struct worker_visitor *visitor);

/* ---- internal to this folder ---- */
/* Runs the graph; takes the reference to its executor.  renamed_peers: (optional) the tasks with
 * their names in the session. */
void worker_start_step(struct worker *w, struct executor *e, struct peers *renamed_peers,
		       const struct peer_run *run, peer_done done, void *arg);
struct running_step {
	struct running_step *prev, *next;
	struct worker *worker;
	int64_t step_id;
	unsigned refs;
	struct step *step;
	struct executor *executor;
	struct rendezvous *rendezvous;
	bool ended, cancelled;
	struct mu_err why;
	unsigned record;          /* enum step_record */
	struct step_trace *trace; /* NULL: not requested */
	peer_done done;
	void *arg;
};
struct worker {
	struct runtime *rt;
	struct peers *peers;
	struct mu_offload *offload;
	struct mu_request_ids *run_ids, *recv_ids; /* ids of RunGraph and RecvTensor requests */
	pthread_mutex_t lock; /* guards the members below; locked before a step's or a
				 rendezvous' lock */
	pthread_cond_t idle;
	struct mu_map sessions, graphs;
	struct mu_map steps; /* step id -> struct running_step */
	unsigned n_running;
	uint64_t n_steps, last_graph;
	bool stopping;
};

/* ---- service ---- */
/* The methods' ctx is a struct task_context. */
extern const struct rpc_method worker_methods[];
extern const unsigned worker_n_methods;

#endif
