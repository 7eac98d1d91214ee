/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between Muster tasks: one connection from a master to each task that runs partitions of
 * its steps (docs/peer-stream.md).  Tensors are pushed by both sides instead of fetched by
 * RecvTensor, so a small step needs one wake-up per hop.
 *
 * A task offers its stream in GetStatus.  A task that receives the offer connects in the
 * background.  A step uses the master's stream to the task of the partition, else gRPC. */
#ifndef MU_TASK_PEER_PEER_STREAM_H
#define MU_TASK_PEER_PEER_STREAM_H

#include "lib/base/clock.h"
#include "task/peer/peer.h"

struct streams;     /* the listeners, threads and connections of a task */
struct stream_peer; /* the state for one other task */
struct stream_conn; /* a connection, reference-counted */

struct streams_options {
	const char *host;    /* listen address for other machines; NULL: this machine only */
	int port;            /* 0: any */
	bool only_tcp;       /* no Unix sockets */
	struct rpc_tls *tls; /* (optional) required on TCP connections; borrowed */
};
/* w is borrowed for the life of the streams. */
int streams_start(const struct local_worker *w, const struct streams_options *o,
		  struct streams **out, struct mu_err *err);
/* Running steps fail with UNAVAILABLE. */
void streams_stop(struct streams *s);
void streams_free(struct streams *s); /* after streams_stop; NULL is allowed */
void streams_offer(struct streams *s,
		   struct mu_buf *status); /* appends the offer to a GetStatusResponse */

/* address: "host:port" in the cluster; connections go to this host. */
struct stream_peer *stream_peer_new(struct streams *s, const char *task, const char *address);
void stream_peer_free(struct stream_peer *p); /* after streams_stop */
/* Handles the offer in a GetStatusResponse, if any. */
void stream_peer_offered(struct stream_peer *p, struct mu_span status);
/* Called before a step starts a partition on p.  Adds the connection as a route to the step's
 * rendezvous and returns it; NULL: no connection, or p is NULL. */
struct stream_conn *stream_peer_join(struct stream_peer *p, struct rendezvous *r);
bool stream_peer_live(struct stream_peer *p);

/* Runs a partition on a connection that the step has joined.  done is called exactly once. */
void stream_run_graph(struct stream_conn *c, const struct peer_run *run, peer_done done, void *arg);
/* Cancels a run; no effect if it or its connection has ended. */
void stream_peer_cancel(struct stream_peer *p, int64_t step_id);
void stream_clean_up(struct stream_conn *c, int64_t step_id);

#endif
