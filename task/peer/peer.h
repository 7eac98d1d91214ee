/* SPDX-License-Identifier: Apache-2.0 */
/* How one task talks to another: a struct of functions, chosen per pair.  The master and the
 * runtime never know which.
 *
 * In process (peer_local.c) for the task itself, TensorFlow's worker RPCs (peer_grpc.c) for the
 * rest.  Every done is called exactly once, from any thread, perhaps before the call that started
 * it returns. */
#ifndef MU_TASK_PEER_PEER_H
#define MU_TASK_PEER_PEER_H

#include "lib/cluster/cluster_spec.h"
#include "lib/graph/graph.h"
#include "task/runtime/rendezvous.h"

struct peer;
struct runtime;

enum peer_method { /* control messages: TensorFlow's, serialised */
		   PEER_GET_STATUS,
		   PEER_CREATE_SESSION,
		   PEER_DELETE_SESSION,
		   PEER_DEREGISTER_GRAPH,
		   PEER_CLEANUP_GRAPH,
		   PEER_CLEANUP_ALL,
};

/* err NULL on success. */
typedef void (*peer_done)(void *arg, const struct mu_err *err, struct mu_span reply);

struct stream_conn;
struct peer_run {
	const char *session, *graph;
	int64_t step_id, request_id;
	struct stream_conn *stream; /* (optional) what peer_join said: the run goes by that */
	unsigned record;            /* enum hot_record: the answer's RunGraphResponse has it */
	bool sole;                  /* nobody but this task exchanges tensors with the part */
};

struct peer_ops {
	/* timeout_ms 0: none.  wait: until the peer is there; else fails when it is not. Returns a
	 * number for cancel, or 0. */
	uint64_t (*call)(struct peer *p, enum peer_method m, struct mu_span request,
			 long timeout_ms, bool wait, peer_done done, void *arg);
	/* Blocks.  Takes g.  *handle is new. */
	int (*register_graph)(struct peer *p, const char *session, struct mu_graph *g,
			      struct mu_span config, char **handle, struct mu_err *err);
	/* The answer: what was to be recorded, as in a RunGraphResponse. */
	uint64_t (*run_graph)(struct peer *p, const struct peer_run *run, peer_done done,
			      void *arg);
	/* Of a call or a run; what has ended is left alone. */
	void (*cancel)(struct peer *p, uint64_t id);
	void (*cancel_run)(struct peer *p, uint64_t id, int64_t step_id);
	/* (optional) NULL for the task itself, whose tensors the rendezvous has. */
	void (*recv_tensor)(struct peer *p, int64_t step_id, const char *key, rendezvous_done done,
			    void *arg);
	/* (optional) Where it is, and why it is not reached if that is known: for people. */
	void (*describe)(struct peer *p, struct mu_buf *out);
	void (*free)(struct peer *p);
};

/* The task's own worker, as peers call it (worker.h has the functions' contracts). */
struct worker;
struct local_worker_ops {
	int (*control)(struct worker *w, enum peer_method m, struct mu_span request,
		       struct mu_buf *reply, struct mu_err *err);
	int (*register_graph)(struct worker *w, const char *session, bool called,
			      struct mu_span config, struct mu_graph *g, char **handle,
			      struct mu_err *err);
	void (*run)(struct worker *w, const struct peer_run *run, bool called, peer_done done,
		    void *arg);
	void (*cancel_step)(struct worker *w, int64_t step_id, const struct mu_err *why);
	void (*drop_step)(struct worker *w, int64_t step_id, const struct mu_err *why);
};
struct local_worker {
	const struct local_worker_ops *ops;
	struct worker *worker;
	struct runtime *runtime;
};

struct peer {
	const struct peer_ops *ops;
	char *task; /* "/job:ps/replica:0/task:0" */
	char *job;
	int index;
	bool local;
	struct stream_peer *stream; /* (optional) set while the task's streams run */
};

/* All tasks of the cluster, this one first, then by job and index. */
struct peers;
/* tls: (optional) how others are called; shared. */
struct rpc_tls;
struct peers *peers_new(const struct mu_cluster *cluster, const char *job, int index,
			struct rpc_tls *tls);
void peers_free(struct peers *ps);
/* The task itself answers through its worker, from now on. */
void peers_set_worker(struct peers *ps, const struct local_worker *w); /* copied */
unsigned peers_count(const struct peers *ps); /* without those that were learned */
struct peer *peers_at(struct peers *ps, unsigned i);
/* By task prefix, or by a device's full name.  NULL when the cluster has none such. */
struct peer *peers_find(struct peers *ps, const char *device);
/* For the rendezvous table: receives go to the task that owns the key's source device. */
struct rendezvous_remote peers_remote(struct peers *ps);
/* Calls that still fetch tensors for a step that is over are cancelled. */
void peers_drop_step(struct peers *ps, int64_t step_id);

/* Where this task listens, as its cluster names it; "" when the cluster does not. */
const char *peers_own_address(const struct peers *ps);
/* Takes in a task that the cluster did not have when this one started: a worker that was added to a
 * running job opens its sessions here.  One that is known keeps its address. */
int peers_learn(struct peers *ps, const char *task, const char *address, struct mu_err *err);

/* Streams to those tasks that have them (peer_stream.h); host: as there.  Before the first call. */
struct streams_options;
int peers_start_streams(struct peers *ps, const struct streams_options *o, struct mu_err *err);
void peers_stop_streams(struct peers *ps);
/* NULL: none were started, or wanted. */
struct streams *peers_streams(const struct peers *ps);
void peers_offer(struct peers *ps, struct mu_buf *status); /* adds to a GetStatusResponse */
/* A step about to start a part on p: NULL, or the stream that it and its tensors shall go by. */
struct stream_conn *peer_join(struct peer *p, struct rendezvous *r);

/* For peers.c. */
struct peer *peer_grpc_new(const char *address, struct rpc_tls *tls, struct mu_err *err);
const char *peer_grpc_address(const struct peer *p);
void peer_grpc_drop_step(struct peer *p, int64_t step_id);
struct peer *peer_local_new(void);
void peer_local_set_worker(struct peer *p, const struct local_worker *w);

#endif
