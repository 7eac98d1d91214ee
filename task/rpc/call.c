/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on the server: references, replies and cancellation.
 *
 * Cancellation and reply exclude each other: the `state` of a call changes OPEN -> CANCELLING ->
 * OPEN, or OPEN -> REPLIED, under the server's lock.  A reply from another thread waits while the
 * state is CANCELLING. */
#include "task/rpc/call.h"

#include "lib/base/offload.h"

void rpc_call_unref(struct rpc_call *c)
{
	struct rpc_server *s = c->server;
	bool is_counted = c->is_counted;

	if (atomic_fetch_sub(&c->refs, 1) != 1)
		return;
	bytes_fini(&c->request);
	c->ops->free(c);
	if (!is_counted)
		return;
	pthread_mutex_lock(&s->lock);
	if (--s->calls == 0)
		pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

/* Runs fn as the call's cancellation.  The lock is held and the state is OPEN, before and after. */
static void run_cancel(struct rpc_call *c, void (*fn)(void *arg), void *arg)
{
	struct rpc_server *s = c->server;

	c->on_cancel = NULL;
	c->state = RPC_CANCELLING;
	c->canceller = pthread_self();
	atomic_fetch_add(&c->refs, 1); /* fn may reply */
	pthread_mutex_unlock(&s->lock);
	fn(arg);
	pthread_mutex_lock(&s->lock);
	if (c->state == RPC_CANCELLING)
		c->state = RPC_OPEN;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	rpc_call_unref(c);
	pthread_mutex_lock(&s->lock);
}

void rpc_call_on_disconnect(struct rpc_call *c)
{
	struct rpc_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	if (c->state == RPC_OPEN) {
		c->cancelled = true;
		if (c->on_cancel)
			run_cancel(c, c->on_cancel, c->on_cancel_arg);
	}
	pthread_mutex_unlock(&s->lock);
}

static void call_reply(struct rpc_call *c, const struct rpc_message *m, const struct mu_err *err)
{
	struct rpc_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	while (c->state == RPC_CANCELLING && !pthread_equal(c->canceller, pthread_self()))
		pthread_cond_wait(&s->changed, &s->lock);
	c->state = RPC_REPLIED;
	c->on_cancel = NULL;
	pthread_mutex_unlock(&s->lock);
	c->ops->send(c, m, err);
	rpc_call_unref(c); /* the handler's reference */
}

void rpc_reply(struct rpc_call *c, const struct rpc_message *m)
{
	static const struct rpc_message empty;

	call_reply(c, m ? m : &empty, NULL);
}

void rpc_reply_error(struct rpc_call *c, const struct mu_err *err)
{
	call_reply(c, NULL, err);
}

struct rpc_bytes *rpc_request(struct rpc_call *c)
{
	return &c->request;
}

uint32_t rpc_client_id(struct rpc_call *c)
{
	return c->ops->client_id ? c->ops->client_id(c) : 0;
}

void rpc_on_cancel(struct rpc_call *c, void (*fn)(void *arg), void *arg)
{
	struct rpc_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	if (c->cancelled && c->state == RPC_OPEN) {
		run_cancel(c, fn, arg);
	} else {
		c->on_cancel = fn;
		c->on_cancel_arg = arg;
	}
	pthread_mutex_unlock(&s->lock);
}

bool rpc_call_enter(struct rpc_call *c)
{
	struct rpc_server *s = c->server;

	pthread_mutex_lock(&s->lock);
	c->is_counted = !s->stopping;
	s->calls += c->is_counted;
	pthread_mutex_unlock(&s->lock);
	return c->is_counted;
}

static void respond_with(struct rpc_call *c, rpc_responder *fn)
{
	MU_AUTO_BUF reply = {0};
	struct mu_err err;

	if (fn(c->server->ctx, rpc_bytes_flat(&c->request), &reply, &err))
		rpc_reply_error(c, &err);
	else
		rpc_reply(c, &(struct rpc_message){.head = mu_buf_span(&reply)});
}

static void respond_offloaded(void *arg)
{
	struct rpc_call *c = arg;

	respond_with(c, c->method->respond_offload);
}

void rpc_call_handle(struct rpc_call *c)
{
	if (c->method->handle)
		c->method->handle(c, c->server->ctx);
	else if (c->method->respond)
		respond_with(c, c->method->respond);
	else
		mu_offload_run(c->server->offload, respond_offloaded, c);
}
