/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between Muster's own tasks: one raw connection from the task that is master to each task
 * that runs parts for it (docs/peer-stream.md).  What TensorFlow's RPCs say in one call a tensor,
 * both ends push here, and a small step costs one wake-up a hop.
 *
 * A task offers its stream in GetStatus; who has seen the offer dials in the background.  A step
 * whose master has a live stream to a part's task joins it; all others go by gRPC. */
#ifndef MU_TASK_PEER_PEER_STREAM_H
#define MU_TASK_PEER_PEER_STREAM_H

#include "lib/base/clock.h"
#include "task/peer/peer.h"

struct streams;     /* a task's: listeners, thread, connections */
struct stream_peer; /* what is known of one other task */
struct stream_conn; /* a connection, reference-counted */

struct streams_options {
	const char *host;    /* where to listen for other machines; NULL: only for this one */
	int port;            /* there; 0 picks one */
	bool only_tcp;       /* as if all others were on other machines */
	struct rpc_tls *tls; /* (optional) over TCP nobody is heard without it; borrowed */
};
/* w has to last. */
int streams_start(const struct local_worker *w, const struct streams_options *o,
		  struct streams **out, struct mu_err *err);
/* Every step in flight ends with UNAVAILABLE. */
void streams_stop(struct streams *s);
void streams_free(struct streams *s);                         /* once stopped; NULL is fine */
void streams_offer(struct streams *s, struct mu_buf *status); /* adds to a GetStatusResponse */
/* For a caller of this process whose step may be answered by a stream.  Between enter, before it
 * starts the step, and leave, the streams that we have dialled are read by it and nobody else: in
 * wait, until *over, until_ms (of mu_clock_ms; 0: never) or the streams' stop.  enter is false
 * when there are none, or another thread reads them. */
bool streams_enter(struct streams *s);
void streams_wait(struct streams *s, const _Atomic bool *over, int64_t until_ms);
void streams_leave(struct streams *s);
void streams_wake(struct streams *s); /* *over is true, by another thread's doing */

/* address: "host:port" of the cluster, whose host is dialled. */
struct stream_peer *stream_peer_new(struct streams *s, const char *task, const char *address);
void stream_peer_free(struct stream_peer *p); /* once the streams are stopped */
void stream_peer_offered(struct stream_peer *p, struct mu_span status);
/* A live connection that this step's rendezvous now sends and receives by, for as long as it lives;
 * NULL: there is none. */
struct stream_conn *stream_peer_join(struct stream_peer *p, struct rendezvous *r);
bool stream_peer_live(struct stream_peer *p);

/* For a connection that the step has joined.  done comes exactly once. */
void stream_run_graph(struct stream_conn *c, const struct peer_run *run, peer_done done, void *arg);
/* Of a run that may have ended, with its connection or without. */
void stream_peer_cancel(struct stream_peer *p, int64_t step_id);
void stream_clean_up(struct stream_conn *c, int64_t step_id);

#endif
