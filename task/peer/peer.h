/* SPDX-License-Identifier: Apache-2.0 */
/* Communication with other tasks: a struct of functions for each peer.
 *
 * There are two implementations: direct calls for the task itself (peer_local.c) and TensorFlow's
 * worker RPCs for other tasks (peer_grpc.c).  Every `done` is called exactly once, from any thread,
 * perhaps before the call that started it returns. */
#ifndef MU_TASK_PEER_PEER_H
#define MU_TASK_PEER_PEER_H

#include "lib/cluster/cluster_spec.h"
#include "lib/graph/graph.h"
#include "task/runtime/rendezvous.h"

struct peer;
struct runtime;

enum peer_method { /* TensorFlow's control messages, serialized */
		   PEER_GET_STATUS,
		   PEER_CREATE_SESSION,
		   PEER_DELETE_SESSION,
		   PEER_REGISTER_GRAPH, /* for other tasks; see register_graph */
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
	struct stream_conn
	    *stream;     /* (optional) the result of stream_peer_join, which carries the run */
	unsigned record; /* enum step_record: requested records of the reply */
};

struct peer_ops {
	/* timeout_ms 0: no limit.  wait_for_ready: waits until the peer can be reached, else fails.
	 * Returns an id for cancel, or 0. */
	uint64_t (*call)(struct peer *p, enum peer_method m, struct mu_span request,
			 long timeout_ms, bool wait_for_ready, peer_done done, void *arg);
	/* Takes g.  debug: DebugOptions; empty: none.  *handle is a new string.  (optional) NULL
	 * for other tasks. */
	int (*register_graph)(struct peer *p, const char *session, struct mu_graph *g,
			      struct mu_span config, struct mu_span debug, char **handle,
			      struct mu_err *err);
	/* The reply has the requested records as fields of a RunGraphResponse. */
	uint64_t (*run_graph)(struct peer *p, const struct peer_run *run, peer_done done,
			      void *arg);
	/* Cancel a call or a run; no effect if it has ended. */
	void (*cancel)(struct peer *p, uint64_t id);
	void (*cancel_run)(struct peer *p, uint64_t id, int64_t step_id);
	/* (optional) NULL for the task itself, whose tensors are in the local rendezvous. */
	void (*recv_tensor)(struct peer *p, int64_t step_id, const char *key, rendezvous_done done,
			    void *arg);
	/* (optional) Appends text for users: the address, or the reason why it is unreachable. */
	void (*describe)(struct peer *p, struct mu_buf *out);
	void (*free)(struct peer *p);
};

/* The functions of the task's own worker; worker.h has their contracts. */
struct worker;
struct local_worker_ops {
	int (*control)(struct worker *w, enum peer_method m, struct mu_span request,
		       struct mu_buf *reply, struct mu_err *err);
	int (*register_graph)(struct worker *w, const char *session, bool session_called,
			      struct mu_span config, struct mu_span debug, struct mu_graph *g,
			      char **handle, struct mu_err *err);
	void (*run)(struct worker *w, const struct peer_run *run, bool session_called,
		    peer_done done, void *arg);
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

/* Prefixes err with "From <task>:" as in TensorFlow, unless it has such a prefix; returns -code */
int peer_error(const struct peer *p, struct mu_err *err);

/* All tasks of the cluster, this one first, then by job and index. */
struct peers;
/* tls: (optional) for channels to other tasks; referenced. */
struct rpc_tls;
struct peers *peers_new(const struct mu_cluster *cluster, const char *job, int index,
			struct rpc_tls *tls);
void peers_free(struct peers *ps);
/* Sets the worker that handles calls to the task itself; copies *w. */
void peers_set_worker(struct peers *ps, const struct local_worker *w);
unsigned peers_count(const struct peers *ps); /* without tasks added by peers_add_task */
struct peer *peers_at(struct peers *ps, unsigned i);
/* Finds a peer by task prefix or by the full name of a device; NULL: none. */
struct peer *peers_find(struct peers *ps, const char *device);
/* For the rendezvous table: fetches tensors from the task that owns the key's source device. */
struct rendezvous_remote peers_remote(struct peers *ps);
/* Cancels the calls that fetch tensors for a step that has ended. */
void peers_drop_step(struct peers *ps, int64_t step_id);

/* Returns this task's address in the cluster; "" if it has none. */
const char *peers_own_address(const struct peers *ps);
/* Adds a task that joined the cluster after this task started, such as a worker added to a running
 * job.  The address of a known task does not change. */
int peers_add_task(struct peers *ps, const char *task, const char *address, struct mu_err *err);

/* Returns the tasks with their names in another cluster (ConfigProto.cluster_def).  This task is
 * job:index there.  The result is valid as long as ps, because other sessions may use the same
 * names.  These peers have no streams. */
int peers_renamed(struct peers *ps, const struct mu_cluster *cluster, const char *job, int index,
		  struct peers **out, struct mu_err *err);

/* Starts the streams (peer_stream.h), before the first call. */
struct streams_options;
int peers_start_streams(struct peers *ps, const struct streams_options *o, struct mu_err *err);
void peers_stop_streams(struct peers *ps);
/* For tests.  NULL: streams were not started. */
struct streams *peers_streams(const struct peers *ps);
void peers_offer(struct peers *ps,
		 struct mu_buf *status); /* appends the offer to a GetStatusResponse */

/* Used by peers.c. */
struct peer *peer_grpc_new(const char *address, struct rpc_tls *tls, struct mu_err *err);
const char *peer_grpc_address(const struct peer *p);
void peer_grpc_drop_step(struct peer *p, int64_t step_id);
/* Sends a request whose reply is a RecvTensorResponse.  peer_grpc_drop_step cancels it. */
struct rpc_message;
void peer_grpc_request_tensor(struct peer *p, const char *method, const struct rpc_message *request,
			      int64_t step_id, rendezvous_done done, void *arg);
struct peer *peer_local_new(void);
void peer_local_set_worker(struct peer *p, const struct local_worker *w);

#endif
