/* SPDX-License-Identifier: Apache-2.0 */
/* Why a session takes so long has one of two reasons, and each is known elsewhere: the channel
 * knows why there is no connection, and a server of ours, for which of its peers it waits.
 * Another's answers that question with UNIMPLEMENTED; then its waiting is all that can be told. */
#include "client/session/wait.h"

#include <pthread.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/pb.h"

enum { FIRST_MS = 3000, ASK_MS = 2000 };

void wait_begin(struct wait *w)
{
	*w = (struct wait){.since_ms = mu_clock_ms(), .gap_ms = FIRST_MS};
	w->next_ms = w->since_ms + w->gap_ms;
}

bool wait_is_due(struct wait *w, long *seconds)
{
	int64_t now = mu_clock_ms();

	if (now < w->next_ms)
		return false;
	w->gap_ms *= 2;
	w->next_ms = now + w->gap_ms;
	*seconds = (long)((now - w->since_ms) / 1000);
	return true;
}

/* The first field of the answer: the peers, each with what stands in the way. */
static bool ask_for_peers(struct wait *w, struct rpc_channel *ch)
{
	MU_AUTO_BUF reply = {0};
	struct rpc_message nothing = {.head = MU_SPAN("")};
	struct mu_pb_field f;
	struct mu_pb m;

	if (rpc_call(ch, "/muster.MasterService/Waits", &nothing, ASK_MS, 0, &reply, NULL))
		return false;
	m = mu_pb_of(mu_buf_span(&reply));
	if (!mu_pb_next(&m, &f) || f.number != 1 || !f.bytes.len)
		return false;
	snprintf(w->reason, sizeof(w->reason), "it waits for %.*s",
		 (int)(f.bytes.len < WAIT_TEXT ? f.bytes.len : WAIT_TEXT), f.bytes.data);
	for (char *c = w->reason; *c; c++) /* it goes to a terminal */
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	return true;
}

static bool is_away(struct wait *w, struct rpc_channel *ch)
{
	struct mu_err why;

	if (!rpc_channel_is_away(ch, &why))
		return false;
	snprintf(w->reason, sizeof(w->reason), "%.*s", WAIT_TEXT - 1, why.msg);
	w->advice = "start that server, or name another target";
	return true;
}

static void find_reason(struct wait *w, struct rpc_channel *ch)
{
	if (is_away(w, ch))
		return;
	if (ask_for_peers(w, ch)) {
		w->advice = "start what is missing, or leave it out by device filters";
	} else {
		snprintf(w->reason, sizeof(w->reason), "it has not answered yet");
		w->advice = "is every task that the session needs running?";
	}
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool ended;
	int rc;
	struct mu_buf *reply;
	struct mu_err *err;
};

static void ended(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	if (err) {
		w->rc = -(int)err->code;
		*w->err = *err;
	} else {
		struct mu_span got = rpc_bytes_flat(reply);

		mu_buf_put(w->reply, got.data, got.len);
	}
	w->ended = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

/* Until the call has ended, or something is to be said. */
static bool has_ended(struct waiter *w, int64_t until_ms)
{
	struct timespec at = {until_ms / 1000, until_ms % 1000 * 1000000};
	bool ended;

	pthread_mutex_lock(&w->lock);
	while (!w->ended && mu_clock_ms() < until_ms)
		pthread_cond_clockwait(&w->cond, &w->lock, CLOCK_MONOTONIC, &at);
	ended = w->ended;
	pthread_mutex_unlock(&w->lock);
	return ended;
}

int wait_call(struct wait *w, struct rpc_channel *ch, const char *target, const char *method,
	      const struct rpc_message *m, long timeout_ms, struct mu_buf *reply,
	      struct mu_err *err)
{
	struct waiter call = {.reply = reply, .err = err};
	struct mu_err refused;
	long seconds;

	pthread_mutex_init(&call.lock, NULL);
	pthread_cond_init(&call.cond, NULL);
	if (!rpc_start(ch, method, m, timeout_ms, RPC_WAIT_FOR_READY, ended, &call, &refused)) {
		*err = refused;
		call.rc = -(int)refused.code;
		call.ended = true;
	}
	while (!has_ended(&call, w->next_ms)) {
		if (!wait_is_due(w, &seconds))
			continue;
		find_reason(w, ch);
		mu_warn("session", "no session on %s for %ld s: %s", target, seconds, w->reason);
	}
	if (call.rc)
		is_away(w, ch);
	pthread_cond_destroy(&call.cond);
	pthread_mutex_destroy(&call.lock);
	return call.rc;
}
