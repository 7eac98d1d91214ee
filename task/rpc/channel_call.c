/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls. */
#include <pthread.h>

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "task/rpc/channel.h"
#include "task/rpc/core.h"

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool ended;
	int rc;
	struct mu_buf *reply;
	struct mu_err *err;
};

static void on_reply(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	if (err) {
		w->rc = -(int)err->code;
		if (w->err)
			*w->err = *err;
	} else if (w->reply) {
		struct mu_span body = rpc_bytes_flat(reply);

		mu_buf_put(w->reply, body.data, body.len);
	}
	w->ended = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

/* Waits until the call has ended or until_ms.  Called with the lock held. */
static void wait_until_ended(struct waiter *w, int64_t until_ms)
{
	while (!w->ended && mu_clock_ms() < until_ms)
		mu_cond_wait_until(&w->cond, &w->lock, until_ms);
}

/* Waits and runs the callback, with the lock released because it may block. */
static void wait_with_callback(struct waiter *w, const struct rpc_wait_callback *callback)
{
	int64_t next_ms = callback->next_ms;

	for (wait_until_ended(w, next_ms); !w->ended; wait_until_ended(w, next_ms)) {
		pthread_mutex_unlock(&w->lock);
		next_ms = callback->fn(callback->arg);
		pthread_mutex_lock(&w->lock);
	}
}

int rpc_call_with_callback(struct rpc_channel *ch, const char *method,
			   const struct rpc_message *request, long timeout_ms, unsigned flags,
			   const struct rpc_wait_callback *callback, struct mu_buf *reply,
			   struct mu_err *err)
{
	struct waiter w = {.reply = reply, .err = err};
	struct mu_err start_error;

	if (core_is_queue_thread())
		return mu_fail(err, MU_INTERNAL, "%s: a blocking call from a channel's thread",
			       method);
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.cond, NULL);
	if (rpc_start(ch, method, request, timeout_ms, flags, on_reply, &w, &start_error)) {
		pthread_mutex_lock(&w.lock);
		if (callback)
			wait_with_callback(&w, callback);
		while (!w.ended)
			pthread_cond_wait(&w.cond, &w.lock);
		pthread_mutex_unlock(&w.lock);
	} else {
		w.rc = mu_fail(err, start_error.code, "%s", start_error.msg);
	}
	pthread_cond_destroy(&w.cond);
	pthread_mutex_destroy(&w.lock);
	return w.rc;
}

int rpc_call(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
	     long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err)
{
	return rpc_call_with_callback(ch, method, request, timeout_ms, flags, NULL, reply, err);
}
