/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of a session for its RPCs. Only client/session includes this file. */
#ifndef MU_CLIENT_SESSION_CALLS_H
#define MU_CLIENT_SESSION_CALLS_H

#include "muster/session.h"
#include "task/rpc/channel.h"

#define MASTER "/tensorflow.MasterService/"

/* Creates the session or extends the server's graph to the builder's. The session has a handle
 * afterwards. */
int session_update_graph(struct mu_session *s, struct mu_err *err);
const char *session_handle(const struct mu_session *s);
int64_t session_next_request_id(struct mu_session *s);
long session_timeout(const struct mu_session *s, const struct mu_run *run);
/* Timeout of the RPC of a step. It is longer than the timeout of the step, so that the step's own
 * deadline fires first. */
enum { RPC_GRACE_MS = 5000 };
static inline long session_rpc_timeout(long timeout_ms)
{
	return timeout_ms > 0 ? timeout_ms + RPC_GRACE_MS : 0;
}
int session_call(struct mu_session *s, const char *method, const struct rpc_message *m,
		 long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err);

#endif
