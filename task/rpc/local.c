/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking call of a server in this process.  Who waits makes itself useful as the server says
 * (struct rpc_wait), and sleeps when there is nothing for it to do.
 *
 * The wait is shared by the caller and the answer, whichever comes last frees it: after a deadline
 * the call is cancelled and gets a moment to end by itself, then the caller goes on without it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "lib/base/clock.h"
#include "task/rpc/bytes.h"
#include "task/rpc/server.h"

enum { AFTER_CANCEL_MS = 5000 };

struct wait {
	_Atomic unsigned refs;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	const struct rpc_wait *other; /* where the caller waits now; NULL: here */
	pthread_t caller;
	_Atomic bool done;
	bool failed;
	struct mu_err err;
	struct mu_buf reply;
};

static void wait_unref(struct wait *w)
{
	if (atomic_fetch_sub(&w->refs, 1) != 1)
		return;
	pthread_mutex_destroy(&w->lock);
	pthread_cond_destroy(&w->changed);
	mu_buf_fini(&w->reply);
	free(w);
}

static void answered(void *arg, const struct mu_err *err, const struct rpc_message *reply)
{
	const struct rpc_wait *other;
	struct wait *w = arg;

	pthread_mutex_lock(&w->lock);
	if (err)
		w->err = *err;
	else
		message_flatten(reply, &w->reply);
	w->failed = err != NULL;
	w->done = true;
	other = pthread_equal(w->caller, pthread_self()) ? NULL : w->other;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	if (other)
		other->wake(other->ctx);
	wait_unref(w);
}

static struct wait *wait_new(void)
{
	struct wait *w = MU_NEW(struct wait);
	pthread_condattr_t attr;

	w->refs = 2;
	w->caller = pthread_self();
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

static void wait_elsewhere(struct wait *w, const struct rpc_wait *other, int64_t until_ms)
{
	pthread_mutex_lock(&w->lock);
	w->other = other;
	pthread_mutex_unlock(&w->lock);
	other->wait(other->ctx, &w->done, until_ms);
	pthread_mutex_lock(&w->lock);
	w->other = NULL;
	pthread_mutex_unlock(&w->lock);
}

/* False when the time is over; until_ms 0: as long as it takes. */
static bool wait_done(struct wait *w, int64_t until_ms)
{
	struct timespec end = {until_ms / 1000, until_ms % 1000 * 1000000};
	bool done;
	int rc = 0;

	pthread_mutex_lock(&w->lock);
	while (!w->done && rc != ETIMEDOUT)
		rc = until_ms ? pthread_cond_timedwait(&w->changed, &w->lock, &end)
			      : pthread_cond_wait(&w->changed, &w->lock);
	done = w->done;
	pthread_mutex_unlock(&w->lock);
	return done;
}

int rpc_local_call(struct rpc_server *s, const char *path, const struct rpc_message *request,
		   long timeout_ms, struct mu_buf *reply, struct mu_err *err)
{
	int64_t until_ms = timeout_ms > 0 ? mu_clock_ms() + timeout_ms : 0;
	const struct rpc_wait *other = rpc_local_wait(s);
	bool entered = other && other->enter(other->ctx);
	struct wait *w = wait_new();
	struct rpc_call *call = rpc_local_start(s, path, request, answered, w, err);
	struct mu_buf swap;
	int rc = 0;

	if (entered && call && !w->done)
		wait_elsewhere(w, other, until_ms);
	if (entered)
		other->leave(other->ctx);
	if (!call) {
		wait_unref(w); /* the answer's */
		wait_unref(w);
		return err ? -(int)err->code : -MU_UNAVAILABLE;
	}
	if (!wait_done(w, until_ms)) {
		rpc_local_cancel(call);
		wait_done(w, mu_clock_ms() + AFTER_CANCEL_MS);
		rc = mu_fail(err, MU_DEADLINE_EXCEEDED,
			     "Deadline Exceeded: %s took longer than "
			     "%ld ms",
			     path, timeout_ms);
	} else if (w->failed) {
		rc = mu_fail(err, w->err.code, "%s", w->err.msg);
	} else if (reply->len == 0) {
		swap = *reply;
		*reply = w->reply;
		w->reply = swap;
	} else {
		mu_buf_put(reply, w->reply.data, w->reply.len);
	}
	rpc_local_end(call);
	wait_unref(w);
	return rc;
}
