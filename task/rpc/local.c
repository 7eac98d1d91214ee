/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking call of a server in this process.
 *
 * The caller and the handler each hold a reference to the call.  After its deadline the call is
 * cancelled.  If the handler has not replied AFTER_CANCEL_MS later, the caller returns. */
#include <errno.h>

#include "lib/base/clock.h"
#include "lib/base/cond.h"
#include "task/rpc/call.h"

enum { AFTER_CANCEL_MS = 5000 };

struct local_call {
	struct rpc_call base; /* the first member */
	pthread_mutex_t lock; /* guards the members below */
	pthread_cond_t changed;
	bool done, failed;
	struct mu_err err;
	struct mu_buf reply;
};

static void local_send(struct rpc_call *base, const struct rpc_message *m, const struct mu_err *err)
{
	struct local_call *c = MU_CONTAINER(base, struct local_call, base);

	pthread_mutex_lock(&c->lock);
	if (err)
		c->err = *err;
	else
		message_flatten(m, &c->reply);
	c->failed = err != NULL;
	c->done = true;
	pthread_cond_signal(&c->changed);
	pthread_mutex_unlock(&c->lock);
}

static void local_call_free(struct rpc_call *base)
{
	struct local_call *c = MU_CONTAINER(base, struct local_call, base);

	pthread_mutex_destroy(&c->lock);
	pthread_cond_destroy(&c->changed);
	mu_buf_fini(&c->reply);
	free(c);
}

static const struct rpc_call_ops local_ops = {.send = local_send, .free = local_call_free};

/* Returns false if the call has not ended at until_ms; 0: no limit. */
static bool wait_done(struct local_call *c, int64_t until_ms)
{
	bool done;
	int rc = 0;

	pthread_mutex_lock(&c->lock);
	while (!c->done && rc != ETIMEDOUT)
		rc = mu_cond_wait_until(&c->changed, &c->lock, until_ms ? until_ms : INT64_MAX);
	done = c->done;
	pthread_mutex_unlock(&c->lock);
	return done;
}

static int take_reply(struct local_call *c, struct mu_buf *reply, struct mu_err *err)
{
	struct mu_buf empty = *reply;

	if (c->failed)
		return mu_fail(err, c->err.code, "%s", c->err.msg);
	if (reply->len == 0) {
		*reply = c->reply;
		c->reply = empty;
	} else {
		mu_buf_put(reply, c->reply.data, c->reply.len);
	}
	return 0;
}

int rpc_local_call(struct rpc_server *s, const char *path, const struct rpc_message *request,
		   long timeout_ms, struct mu_buf *reply, struct mu_err *err)
{
	int64_t until_ms = timeout_ms > 0 ? mu_clock_ms() + timeout_ms : 0;
	const struct rpc_method *method = rpc_find_method(s, path);
	struct local_call *c;
	int rc;

	if (!method)
		return mu_fail(err, MU_UNIMPLEMENTED, "this server has no method %.200s", path);
	c = MU_NEW(struct local_call);
	c->base = (struct rpc_call){.refs = 2, .ops = &local_ops, .server = s, .method = method};
	pthread_mutex_init(&c->lock, NULL);
	pthread_cond_init(&c->changed, NULL);
	if (!rpc_call_enter(&c->base)) {
		local_call_free(&c->base);
		return mu_fail(err, MU_UNAVAILABLE, "the server in this process is stopping");
	}
	bytes_receive(&c->base.request, message_to_buffer(request));
	rpc_call_handle(&c->base);
	if (wait_done(c, until_ms)) {
		rc = take_reply(c, reply, err);
	} else {
		rpc_call_on_disconnect(&c->base);
		wait_done(c, mu_clock_ms() + AFTER_CANCEL_MS);
		rc = mu_fail(err, MU_DEADLINE_EXCEEDED,
			     "Deadline Exceeded: %s took longer than %ld ms", path, timeout_ms);
	}
	rpc_call_unref(&c->base);
	return rc;
}
