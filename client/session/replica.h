/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's part of synchronous replicas in a monitored session: its current step, its tokens
 * and its membership. */
#ifndef MU_CLIENT_SESSION_REPLICA_H
#define MU_CLIENT_SESSION_REPLICA_H

#include "muster/grad.h"
#include "muster/session.h"

struct kept_feed {
	struct mu_out at;
	struct mu_tensor value; /* shares memory with the caller's tensor */
};
struct replica {
	struct mu_sync sync;         /* all zero: not a synchronous replica */
	struct mu_tensor step_value; /* value fed to local_step */
	struct mu_tensor members;    /* chief only: the members of the last step */
	int64_t epoch;               /* the worker's current epoch */
	bool leaving;
	bool chief_ended;             /* this worker ends with the chief */
	struct kept_feed *last_feeds; /* copies of the feeds of the last step */
	unsigned n_last_feeds;
};
static inline bool replica_is_synchronous(const struct replica *r)
{
	return r->sync.local_step.node != NULL;
}
void replica_fini(struct replica *r);

/* Chief only, before it initialises a model: sets the members. These are the initial workers, or in
 * a later session the last known members. */
int replica_set_members(struct replica *r, struct mu_session *s, struct mu_err *err);
/* Chief only, for a model that is initialised: sets the members if it has none, as after an
 * asynchronous training. */
int replica_init_members(struct replica *r, struct mu_session *s, struct mu_err *err);
/* Called in each new session after the model is ready. Does nothing for an asynchronous worker. */
int replica_join(struct replica *r, struct mu_session *s, struct mu_err *err);
/* Reads the epoch. Called after joining, and again by the chief after it has started an epoch. */
int replica_read_epoch(struct replica *r, struct mu_session *s, struct mu_err *err);
/* *has_chief: true if a chief has started an epoch. Gradients added before that are dropped. */
int replica_has_chief(struct replica *r, struct mu_session *s, bool *has_chief, struct mu_err *err);
/* Adds the feed of local_step for this step. feeds must have room. */
int replica_feed(struct replica *r, int64_t step, struct mu_feed *feeds, unsigned *n,
		 struct mu_err *err);
/* token, latest: fetched by the step. Advances *step with this token, or with the next token that
 * is not stale. A stale token can be from a previous run of this worker. After a token of a new
 * epoch the worker works for the latest step, even a second time. MU_SYNC_OVER means that the chief
 * has ended: if `stop` is set the wait ends with *step unchanged and r->chief_ended set. */
int replica_take_token(struct replica *r, struct mu_session *s, int64_t token, int64_t latest,
		       const volatile int *stop, int64_t *step, struct mu_err *err);
/* Waits for MU_SYNC_OVER. */
int replica_wait_for_end(struct replica *r, struct mu_session *s, struct mu_err *err);
/* Deregisters this worker. *step: the step whose update may be waiting for its gradients; the
 * worker still adds them. */
int replica_leave(struct replica *r, struct mu_session *s, int64_t *step, struct mu_err *err);
/* Keeps the feeds of a step for replica_end. */
void replica_keep_feeds(struct replica *r, const struct mu_feed *feeds, unsigned n);
/* Called at the end of this worker's data. Deregisters the worker and adds the gradients of its
 * last feeds once more, so that no update waits for it. Does nothing if the worker has left, ends
 * with the chief, or has made no step. */
int replica_end(struct replica *r, struct mu_session *s, struct mu_err *err);

#endif
