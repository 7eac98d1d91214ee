/* SPDX-License-Identifier: Apache-2.0 */
/* One control message to many peers at once, and the wait for all answers. */
#ifndef MU_TASK_MASTER_GATHER_H
#define MU_TASK_MASTER_GATHER_H

#include <pthread.h>

#include "task/peer/peer.h"

struct gather;
struct gather_entry {
	struct gather *owner;
	struct peer *peer;
	uint64_t id;
	bool ended;
	int rc;
	struct mu_err err;
	struct mu_buf request; /* (optional) instead of what all are sent */
	struct mu_buf reply;
};
struct gather {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct gather_entry *entries;
	unsigned n, pending;
	bool cancelled;
	uint32_t client_id; /* of the call that it is for, rpc_client_id */
	struct gather *next,
	    **link; /* of those that wait (master_waits), under the master's lock */
};

void gather_init(struct gather *g, unsigned cap);
void gather_fini(struct gather *g);
void gather_add(struct gather *g, struct peer *p);
/* Blocks until every peer has answered, or failed, or the time is up (0: no limit).  wait: for
 * peers that are not there yet; after three seconds, and then at growing intervals, a line of the
 * log names them, with `what`. */
void gather_run(struct gather *g, enum peer_method m, struct mu_span request, long timeout_ms,
		bool wait, const char *what);
/* For people: some of those that have not answered, and why that may be; nothing when all have. */
void gather_describe(struct gather *g, struct mu_buf *out);
void gather_cancel(struct gather *g); /* any thread; a later run ends at once */
/* The first failure, with the peer's name; 0 when all answered. */
int gather_error(struct gather *g, struct mu_err *err);

#endif
