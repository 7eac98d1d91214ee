/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a long wait for a session. After three seconds, and then at growing intervals, prints the
 * reason and the duration to standard error. */
#ifndef MU_CLIENT_SESSION_WAIT_H
#define MU_CLIENT_SESSION_WAIT_H

#include "task/rpc/channel.h"

enum { WAIT_TEXT = 512 };

struct wait {
	int64_t start_ms, next_ms;
	long interval_ms;
	char reason[WAIT_TEXT]; /* last known reason; "" if unknown */
	const char *advice;     /* advice to the user; NULL if unknown */
};

void wait_begin(struct wait *w);
/* True if a report is due; then the next one is scheduled. *seconds: duration of the wait. */
bool wait_report_is_due(struct wait *w, long *seconds);

/* As rpc_call, but reports in the meantime why there is no session on the target. */
int call_reporting_wait(struct wait *w, struct rpc_channel *ch, const char *target,
			const char *method, const struct rpc_message *m, long timeout_ms,
			struct mu_buf *reply, struct mu_err *err);

#endif
