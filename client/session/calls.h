/* SPDX-License-Identifier: Apache-2.0 */
/* What a session does for the calls that are made on it, for client/session only. */
#ifndef CLIENT_SESSION_CALLS_H
#define CLIENT_SESSION_CALLS_H

#include "muster/session.h"
#include "task/rpc/channel.h"

#define MASTER "/tensorflow.MasterService/"

/* Brings the server's graph up to the builder's; then there is a handle. */
int session_follow(struct mu_session *s, struct mu_err *err);
const char *session_handle(const struct mu_session *s);
int64_t session_request(struct mu_session *s); /* a new id */
long session_timeout(const struct mu_session *s, const struct mu_run *run);
/* How long the call of a step may take: its own deadline fires first. */
enum { RPC_GRACE_MS = 5000 };
static inline long session_patience(long timeout_ms)
{
	return timeout_ms > 0 ? timeout_ms + RPC_GRACE_MS : 0;
}
int session_call(struct mu_session *s, const char *method, const struct rpc_message *m,
		 long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err);

#endif
