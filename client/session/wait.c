/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the reason why a session is not created yet. The channel has the error of a failed
 * connection. A Muster server reports the peers that it waits for. Other servers answer that
 * request with UNIMPLEMENTED; then the report only says that the server has not answered. */
#include "client/session/wait.h"

#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/pb.h"

enum { FIRST_REPORT_MS = 3000, WAIT_REASON_TIMEOUT_MS = 2000 };

void wait_begin(struct wait *w)
{
	*w = (struct wait){.start_ms = mu_clock_ms(), .interval_ms = FIRST_REPORT_MS};
	w->next_ms = w->start_ms + w->interval_ms;
}

bool wait_report_is_due(struct wait *w, long *seconds)
{
	int64_t now = mu_clock_ms();

	if (now < w->next_ms)
		return false;
	w->interval_ms *= 2;
	w->next_ms = now + w->interval_ms;
	*seconds = (long)((now - w->start_ms) / 1000);
	return true;
}

/* Reads the first field of the reply: the peers, each with its problem. */
static bool ask_for_peers(struct wait *w, struct rpc_channel *ch)
{
	MU_AUTO_BUF reply = {0};
	struct rpc_message empty_request = {.head = MU_SPAN("")};
	struct mu_pb_field f;
	struct mu_pb m;

	if (rpc_call(ch, "/muster.MasterService/Waits", &empty_request, WAIT_REASON_TIMEOUT_MS, 0,
		     &reply, NULL))
		return false;
	m = mu_pb_of(mu_buf_span(&reply));
	if (!mu_pb_next(&m, &f) || f.number != 1 || !f.bytes.len)
		return false;
	snprintf(w->reason, sizeof(w->reason), "it waits for %.*s",
		 (int)(f.bytes.len < WAIT_TEXT ? f.bytes.len : WAIT_TEXT), f.bytes.data);
	for (char *c = w->reason; *c;
	     c++) /* remove control characters: the text goes to a terminal */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return true;
}

static bool is_disconnected(struct wait *w, struct rpc_channel *ch)
{
	struct mu_err why;

	if (!rpc_channel_is_disconnected(ch, &why))
		return false;
	snprintf(w->reason, sizeof(w->reason), "%.*s", WAIT_TEXT - 1, why.msg);
	w->advice = "start that server, or name another target";
	return true;
}

static void find_reason(struct wait *w, struct rpc_channel *ch)
{
	if (is_disconnected(w, ch))
		return;
	if (ask_for_peers(w, ch)) {
		w->advice = "start the missing tasks, or exclude them with device filters";
	} else {
		snprintf(w->reason, sizeof(w->reason), "it has not answered yet");
		w->advice = "is every task that the session needs running?";
	}
}

struct ready_poll {
	struct wait *wait;
	struct rpc_channel *ch;
	const char *target;
};

static int64_t report_if_due(void *arg)
{
	const struct ready_poll *c = arg;
	struct wait *w = c->wait;
	long seconds;

	if (wait_report_is_due(w, &seconds)) {
		find_reason(w, c->ch);
		mu_warn("session", "no session on %s for %ld s: %s", c->target, seconds, w->reason);
	}
	return w->next_ms;
}

int call_reporting_wait(struct wait *w, struct rpc_channel *ch, const char *target,
			const char *method, const struct rpc_message *m, long timeout_ms,
			struct mu_buf *reply, struct mu_err *err)
{
	struct ready_poll poll = {w, ch, target};
	struct rpc_wait_callback callback = {report_if_due, &poll, w->next_ms};
	int rc = rpc_call_with_callback(ch, method, m, timeout_ms, RPC_WAIT_FOR_READY, &callback,
					reply, err);

	if (rc)
		is_disconnected(w, ch);
	return rc;
}
