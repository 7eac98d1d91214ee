/* SPDX-License-Identifier: Apache-2.0 */
/* One worker's part of synchronous replicas in a monitored session: the step that it works for, its
 * tokens, and whether it takes part at all. */
#ifndef CLIENT_SESSION_REPLICA_H
#define CLIENT_SESSION_REPLICA_H

#include "muster/grad.h"
#include "muster/session.h"

struct replica_fed {
	struct mu_out at;
	struct mu_tensor value; /* shared with whoever fed it */
};
struct replica {
	struct mu_sync sync;         /* all of it nothing: each for himself */
	struct mu_tensor step_value; /* what local_step is fed */
	struct mu_tensor members;    /* the chief's: who took part when it last looked */
	int64_t epoch;               /* in which it works */
	bool leaving;
	bool over;               /* the chief has gone, and so does this one */
	struct replica_fed *fed; /* for its last step */
	unsigned n_fed;
};
static inline bool replica_is(const struct replica *r)
{
	return r->sync.local_step.node != NULL;
}
void replica_fini(struct replica *r);

/* The chief, before a new model is there: who takes part.  In the beginning the workers that were
 * planned for, later those that it last saw. */
int replica_set_members(struct replica *r, struct mu_session *s, struct mu_err *err);
/* In each new session whose model is ready; nothing for one who is by himself. */
int replica_join(struct replica *r, struct mu_session *s, struct mu_err *err);
/* Reads the epoch: after joining, and by the chief again when it has begun one. */
int replica_read_epoch(struct replica *r, struct mu_session *s, struct mu_err *err);
/* Whether a chief has begun an epoch: what is given before that is thrown away. */
int replica_is_led(struct replica *r, struct mu_session *s, bool *led, struct mu_err *err);
/* Adds to the feeds, which have room, that this step is worked for. */
int replica_feed(struct replica *r, int64_t step, struct mu_feed *feeds, unsigned *n,
		 struct mu_err *err);
/* token, latest: as the step brought them.  *step moves on with this token or the next that is of
 * use; one may have been left there by an earlier life of this worker.  After one that tells of a
 * new epoch the latest step is worked for, if it be again.  MU_SYNC_OVER says that the chief has
 * gone: when `stop` is set that ends the waiting, with *step as it was, and r->over. */
int replica_take_token(struct replica *r, struct mu_session *s, int64_t token, int64_t latest,
		       const volatile int *stop, int64_t *step, struct mu_err *err);
/* This worker takes part no more.  *step: the one of which the update may have begun to wait for
 * its gradients, which it still gives. */
int replica_leave(struct replica *r, struct mu_session *s, int64_t *step, struct mu_err *err);
/* Keeps what a step is fed, for replica_end. */
void replica_keep(struct replica *r, const struct mu_feed *feeds, unsigned n);
/* The program of this worker has no more to feed: leaves, and gives the gradients of what it was
 * last fed once more, so that no update waits for it.  Nothing for one who has left, goes with the
 * chief, or has made no step. */
int replica_end(struct replica *r, struct mu_session *s, struct mu_err *err);

#endif
