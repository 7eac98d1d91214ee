/* SPDX-License-Identifier: Apache-2.0 */
/* Sends one control message to many peers at once and waits for all replies. */
#ifndef MU_TASK_MASTER_FAN_OUT_H
#define MU_TASK_MASTER_FAN_OUT_H

#include <pthread.h>

#include "task/peer/peer.h"

struct fan_out;
struct fan_out_entry {
	struct fan_out *owner;
	struct peer *peer;
	uint64_t id; /* call id, for cancel; 0: none */
	bool replied;
	int rc;
	struct mu_err err;
	struct mu_buf request; /* (optional) instead of the common request */
	struct mu_buf reply;
};
struct fan_out {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fan_out_entry *entries;
	unsigned n, pending;
	bool cancelled;
	uint32_t client_id;           /* rpc_client_id of the CreateSession call */
	struct fan_out *next, **link; /* in master.waiting, guarded by the master's lock */
};

void fan_out_init(struct fan_out *f);
void fan_out_fini(struct fan_out *f);
void fan_out_add(struct fan_out *f, struct peer *p);
/* Blocks until every peer has replied or failed, at most timeout_ms (0: no limit).  wait_for_ready:
 * waits for peers that cannot be reached yet.  Logs a warning with the missing peers after three
 * seconds, then at doubling intervals. */
void fan_out_run(struct fan_out *f, enum peer_method m, struct mu_span request, long timeout_ms,
		 bool wait_for_ready, const char *method_name);
/* Appends text for users: some of the peers without a reply, with the reason if known. */
void fan_out_describe_pending(struct fan_out *f, struct mu_buf *out);
void fan_out_cancel(struct fan_out *f); /* from any thread; also cancels later runs */
/* Returns the first failure, with the peer's name; 0 if all peers replied. */
int fan_out_error(struct fan_out *f, struct mu_err *err);

#endif
