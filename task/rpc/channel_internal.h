/* SPDX-License-Identifier: Apache-2.0 */
/* What channel.c and channels.c share: the channels of this process, and the loop that all of them
 * live in, which is there as long as one of them is. */
#ifndef MU_TASK_RPC_CHANNEL_INTERNAL_H
#define MU_TASK_RPC_CHANNEL_INTERNAL_H

#include "task/rpc/channel.h"
#include "task/rpc/h2/client.h"
#include "task/rpc/h2/loop.h"

struct channels;
struct out_call {
	struct h2_ask ask;      /* the first member */
	struct rpc_channel *ch; /* a reference */
	uint64_t id;
	rpc_done done;
	void *arg;
	int64_t give_up_ms;  /* of a call that waits a little for its connection; 0: it does not */
	bool patient, again; /* waits for the connection; was refused once */
	/* under the channel's lock */
	enum { OUT_QUEUED, OUT_SENT, OUT_ENDED } state;
	struct out_call *prev, *next, *next_queued;
	struct mu_err *why;          /* of one that is ended by us */
	struct out_call *next_ended; /* under the loop's */
	char path[];
};

struct rpc_channel {
	struct h2_client client; /* the first member */
	_Atomic unsigned refs;   /* the user's, each call's, connection's and attempt's */
	char *target, *host;
	struct rpc_tls *tls;                             /* a reference, or NULL */
	struct channels *channels;                       /* that it is in */
	struct rpc_channel *prev_channel, *next_channel; /* under the loop's lock */
	pthread_mutex_t lock; /* guards what follows; not held across done */
	pthread_cond_t empty;
	struct out_call *calls;                 /* that have not ended */
	struct out_call *queued, **last_queued; /* those that no connection has */
	unsigned busy;                          /* calls whose done has not returned */
	uint64_t last_id;
	bool closing;
	enum { CH_IDLE, CH_CONNECTING, CH_READY, CH_RESTING } state;
	int64_t until_ms;     /* when connecting has taken too long, or the rest is over */
	long rest_ms;         /* the next one */
	struct h2_conn *conn; /* a reference: the one for new calls, or that is being made */
	struct mu_err why;    /* the last attempt failed */
};

/* Ends what is due; when something will be next. */
int64_t channel_tick(struct rpc_channel *ch, int64_t now_ms);
void channel_run_ended(struct out_call *c); /* calls done of one that we ended */

/* ---- channels.c ---- */
int channels_enter(struct rpc_channel *ch, struct mu_err *err);
void channels_leave(struct rpc_channel *ch);
void channels_due(struct channels *l, int64_t ms); /* channel_tick is called then */
/* Its done is called by one of the loop's threads. */
void channels_end(struct channels *l, struct out_call *c);
void channels_add(struct channels *l, struct h2_conn *c);
bool channels_is_this_thread(const struct channels *l);

#endif
