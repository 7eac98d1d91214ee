// SPDX-License-Identifier: Apache-2.0
/* A blocking call of a server in this process.
 *
 * The wait is shared by the caller and the answer, whichever comes last frees it: after a deadline
 * the call is cancelled and gets a moment to end by itself, then the caller goes on without it. */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "task/rpc/bytes.h"
#include "task/rpc/server.h"

enum { AFTER_CANCEL_MS = 5000 };

struct wait {
	_Atomic unsigned refs;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool done, failed;
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
	struct wait *w = arg;

	pthread_mutex_lock(&w->lock);
	if (err)
		w->err = *err;
	else
		message_flatten(reply, &w->reply);
	w->failed = err != NULL;
	w->done = true;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->lock);
	wait_unref(w);
}

static struct wait *wait_new(void)
{
	struct wait *w = MU_NEW(struct wait);
	pthread_condattr_t attr;

	w->refs = 2;
	pthread_mutex_init(&w->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &attr);
	pthread_condattr_destroy(&attr);
	return w;
}

/* False when the time is over; timeout_ms <= 0: as long as it takes. */
static bool wait_done(struct wait *w, long timeout_ms)
{
	struct timespec end;
	bool done;
	int rc = 0;

	clock_gettime(CLOCK_MONOTONIC, &end);
	end.tv_sec += timeout_ms / 1000;
	end.tv_nsec += timeout_ms % 1000 * 1000000;
	if (end.tv_nsec >= 1000000000) {
		end.tv_sec++;
		end.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&w->lock);
	while (!w->done && rc != ETIMEDOUT)
		rc = timeout_ms > 0 ? pthread_cond_timedwait(&w->changed, &w->lock, &end)
				    : pthread_cond_wait(&w->changed, &w->lock);
	done = w->done;
	pthread_mutex_unlock(&w->lock);
	return done;
}

int rpc_local_call(struct rpc_server *s, const char *path, const struct rpc_message *request,
		   long timeout_ms, struct mu_buf *reply, struct mu_err *err)
{
	struct wait *w = wait_new();
	struct rpc_call *call = rpc_local_start(s, path, request, timeout_ms, answered, w, err);
	struct mu_buf swap;
	int rc = 0;

	if (!call) {
		wait_unref(w); /* the answer's */
		wait_unref(w);
		return err ? -(int)err->code : -MU_UNAVAILABLE;
	}
	if (!wait_done(w, timeout_ms)) {
		rpc_local_cancel(call);
		wait_done(w, AFTER_CANCEL_MS);
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
