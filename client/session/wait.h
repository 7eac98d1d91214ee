/* SPDX-License-Identifier: Apache-2.0 */
/* A wait that its program's user hears of: after three seconds, and then again and again at growing
 * intervals, one line on standard error says what is waited for, why and since when. */
#ifndef CLIENT_SESSION_WAIT_H
#define CLIENT_SESSION_WAIT_H

#include "task/rpc/channel.h"

enum { WAIT_TEXT = 512 };

struct wait {
	int64_t since_ms, next_ms;
	long gap_ms;
	char reason[WAIT_TEXT]; /* what was found out last, "" before that */
	const char *advice;     /* what to do about it; NULL likewise */
};

void wait_begin(struct wait *w);
/* Whether something is to be said now; *seconds: since when it goes on. */
bool wait_is_due(struct wait *w, long *seconds);

/* As rpc_call, but says in between, due for due, why there is no session on the target. */
int wait_call(struct wait *w, struct rpc_channel *ch, const char *target, const char *method,
	      const struct rpc_message *m, long timeout_ms, struct mu_buf *reply,
	      struct mu_err *err);

#endif
