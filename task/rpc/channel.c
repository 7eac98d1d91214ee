/* SPDX-License-Identifier: Apache-2.0 */
/* Unary calls.  One batch does everything: metadata, request, half-close, reply, status; so a call
 * is one completion.
 *
 * Who owns what: a call is owned by the loop from rpc_start until its completion, and is in its
 * channel's list for that time, which is how rpc_out_cancel finds it and how rpc_channel_close
 * knows that it may free.  done runs after the call has left the list.
 *
 * A call that waits a little for its connection is known by its `give_up` time.  While there are
 * such calls and no connection, the channel's state is watched in slices; a slice that ends without
 * a connection ends the calls whose time is over.  A connected channel is never watched.
 *
 * Keep-alive pings find a peer whose machine is gone while a call waits; at most two without data
 * in between (gRPC's default), so that servers that count pings do not hang up. */
#include "task/rpc/channel.h"

#include <grpc/support/time.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "task/rpc/core.h"

enum {
	KEEPALIVE_MS = 20000,
	KEEPALIVE_TIMEOUT_MS = 10000,
	BACKOFF_MS = 1000,
	FIRST_BACKOFF_MS = 50,
	WAIT_A_LITTLE_MS = 5000,
	WATCH_SLICE_MS = 200
};

struct out_call {
	struct core_tag tag;
	uint64_t id;
	struct rpc_channel *ch;
	grpc_call *call;
	rpc_done done;
	void *arg;
	gpr_timespec give_up; /* of a call that waits a little for its connection */
	bool may_give_up;
	bool cancelled; /* by us */
	struct out_call *prev, *next;
	grpc_metadata_array initial, trailing;
	grpc_byte_buffer *reply;
	grpc_status_code status;
	grpc_slice details;
};

struct rpc_channel {
	grpc_channel *channel;
	grpc_completion_queue *queue;
	pthread_mutex_t lock; /* guards the list; not held across done or into gRPC's callbacks */
	pthread_cond_t empty;
	struct out_call *calls;
	unsigned busy; /* calls whose done has not returned */
	uint64_t last_id;
	bool closing;
	bool watched;
	struct core_tag watch;
};

static grpc_channel *make_channel(const char *target)
{
	grpc_arg args[] = {
	    CORE_TRANSPORT_ARGS,
	    CORE_INT(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1),
	    CORE_INT(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
	    CORE_INT(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
	    CORE_INT(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, FIRST_BACKOFF_MS),
	    CORE_INT(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, BACKOFF_MS),
	    CORE_INT(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, BACKOFF_MS),
	    /* a pod that is made again has another address behind its name: the default is 30 s */
	    CORE_INT(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, BACKOFF_MS),
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
	};
	grpc_channel_args list = {MU_COUNT(args), args};
	grpc_channel_credentials *creds = grpc_insecure_credentials_create();
	grpc_channel *c = grpc_channel_create(target, creds, &list);

	grpc_channel_credentials_release(creds);
	return c;
}

static bool connected(struct rpc_channel *ch, grpc_connectivity_state *state)
{
	*state = grpc_channel_check_connectivity_state(ch->channel, 1);
	return *state == GRPC_CHANNEL_READY;
}

/* With the lock held. */
static void watch(struct rpc_channel *ch, grpc_connectivity_state state)
{
	ch->watched = true;
	ch->busy++;
	core_hand_over(&ch->watch);
	grpc_channel_watch_connectivity_state(ch->channel, state, core_deadline(WATCH_SLICE_MS),
					      ch->queue, &ch->watch);
}

/* Ends the calls that have waited long enough; true when others still wait. */
static bool give_up_waiting(struct rpc_channel *ch)
{
	gpr_timespec now = gpr_now(GPR_CLOCK_MONOTONIC);
	bool more = false;

	for (struct out_call *c = ch->calls; c; c = c->next) {
		if (!c->may_give_up)
			continue;
		if (gpr_time_cmp(now, c->give_up) < 0) {
			more = true;
			continue;
		}
		c->may_give_up = false;
		grpc_call_cancel_with_status(c->call, GRPC_STATUS_UNAVAILABLE,
					     "no connection to the peer within 5 s", NULL);
	}
	return more;
}

static void watch_fired(struct core_tag *tag, bool ok)
{
	struct rpc_channel *ch = MU_CONTAINER(tag, struct rpc_channel, watch);
	grpc_connectivity_state state;

	pthread_mutex_lock(&ch->lock);
	ch->watched = false;
	if (connected(ch, &state)) {
		for (struct out_call *c = ch->calls; c; c = c->next)
			c->may_give_up = false;
	} else if (!ch->closing && state != GRPC_CHANNEL_SHUTDOWN && give_up_waiting(ch)) {
		watch(ch, state);
	}
	if (--ch->busy == 0)
		pthread_cond_broadcast(&ch->empty);
	pthread_mutex_unlock(&ch->lock);
}

int rpc_channel_open(const char *target, struct rpc_channel **out, struct mu_err *err)
{
	struct rpc_channel *ch;

	if (!strncmp(target, "grpc://", 7))
		target += 7;
	if (!*target || (strncmp(target, "unix:", 5) && !strchr(target, ':')))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%s' is no address: host:port or unix:path is meant", target);
	ch = MU_NEW(struct rpc_channel);
	pthread_mutex_init(&ch->lock, NULL);
	pthread_cond_init(&ch->empty, NULL);
	ch->queue = loop_ref();
	ch->watch.fire = watch_fired;
	ch->channel = make_channel(target);
	*out = ch;
	return 0;
}

/* With the lock held. */
static void cancel(struct out_call *c)
{
	c->cancelled = true;
	grpc_call_cancel(c->call, NULL);
}

void rpc_channel_close(struct rpc_channel *ch)
{
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	ch->closing = true;
	for (struct out_call *c = ch->calls; c; c = c->next)
		cancel(c);
	while (ch->busy > 0)
		pthread_cond_wait(&ch->empty, &ch->lock);
	pthread_mutex_unlock(&ch->lock);
	grpc_channel_destroy(ch->channel);
	loop_unref();
	pthread_cond_destroy(&ch->empty);
	pthread_mutex_destroy(&ch->lock);
	free(ch);
}

static void unlink_call(struct out_call *c)
{
	if (c->prev)
		c->prev->next = c->next;
	else
		c->ch->calls = c->next;
	if (c->next)
		c->next->prev = c->prev;
}

static void free_call(struct out_call *c)
{
	grpc_metadata_array_destroy(&c->initial);
	grpc_metadata_array_destroy(&c->trailing);
	grpc_slice_unref(c->details);
	grpc_call_unref(c->call);
	free(c);
}

static void completed(struct core_tag *tag, bool ok)
{
	struct out_call *c = MU_CONTAINER(tag, struct out_call, tag);
	struct rpc_channel *ch = c->ch;
	struct rpc_bytes reply;
	struct mu_err err;
	bool by_us;

	pthread_mutex_lock(&ch->lock);
	unlink_call(c);
	by_us = c->cancelled;
	pthread_mutex_unlock(&ch->lock);
	bytes_init(&reply, c->reply);
	if (c->status == GRPC_STATUS_OK && c->reply) {
		c->done(c->arg, NULL, &reply);
	} else {
		if (c->status == GRPC_STATUS_OK)
			mu_fail(&err, MU_INTERNAL, "the peer answered without a message");
		else
			core_status(&err, c->status, c->details);
		if (err.code == MU_CANCELLED && !by_us && !strcmp(err.msg, "CANCELLED"))
			mu_fail(&err, MU_UNAVAILABLE, "the peer ended the call as it went down");
		c->done(c->arg, &err, NULL);
	}
	bytes_fini(&reply);
	free_call(c);
	pthread_mutex_lock(&ch->lock);
	if (--ch->busy == 0)
		pthread_cond_broadcast(&ch->empty);
	pthread_mutex_unlock(&ch->lock);
}

static grpc_call_error start_batch(struct out_call *c, grpc_byte_buffer *request, unsigned flags)
{
	grpc_op ops[6] = {0};

	ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
	if (flags & RPC_WAIT_FOR_READY)
		ops[0].flags = GRPC_INITIAL_METADATA_WAIT_FOR_READY |
			       GRPC_INITIAL_METADATA_WAIT_FOR_READY_EXPLICITLY_SET;
	ops[1].op = GRPC_OP_SEND_MESSAGE;
	ops[1].data.send_message.send_message = request;
	ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
	ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &c->initial;
	ops[4].op = GRPC_OP_RECV_MESSAGE;
	ops[4].data.recv_message.recv_message = &c->reply;
	ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
	ops[5].data.recv_status_on_client.trailing_metadata = &c->trailing;
	ops[5].data.recv_status_on_client.status = &c->status;
	ops[5].data.recv_status_on_client.status_details = &c->details;
	core_hand_over(&c->tag);
	return grpc_call_start_batch(c->call, ops, MU_COUNT(ops), &c->tag, NULL);
}

uint64_t rpc_start(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		   long timeout_ms, unsigned flags, rpc_done done, void *arg, struct mu_err *err)
{
	struct out_call *c = MU_NEW(struct out_call);
	grpc_slice path = grpc_slice_from_copied_string(method);
	grpc_byte_buffer *buffer;
	grpc_connectivity_state state;
	grpc_call_error bad;
	uint64_t id;

	*c = (struct out_call){.tag.fire = completed, .ch = ch, .done = done, .arg = arg};
	c->details = grpc_empty_slice();
	grpc_metadata_array_init(&c->initial);
	grpc_metadata_array_init(&c->trailing);
	c->call = grpc_channel_create_call(ch->channel, NULL, GRPC_PROPAGATE_DEFAULTS, ch->queue,
					   path, NULL, core_deadline(timeout_ms), NULL);
	grpc_slice_unref(path);
	pthread_mutex_lock(&ch->lock);
	if (ch->closing) {
		pthread_mutex_unlock(&ch->lock);
		free_call(c);
		mu_fail(err, MU_CANCELLED, "the channel is closed");
		return 0;
	}
	id = c->id = ++ch->last_id;
	ch->busy++;
	c->next = ch->calls;
	if (c->next)
		c->next->prev = c;
	ch->calls = c;
	if ((flags & RPC_WAIT_A_LITTLE) && !connected(ch, &state)) {
		flags |= RPC_WAIT_FOR_READY;
		c->may_give_up = true;
		c->give_up = core_deadline(WAIT_A_LITTLE_MS);
		if (!ch->watched)
			watch(ch, state);
	}
	pthread_mutex_unlock(&ch->lock);

	buffer = message_to_buffer(request);
	bad = start_batch(c, buffer, flags);
	grpc_byte_buffer_destroy(buffer);
	if (bad == GRPC_CALL_OK)
		return id;
	pthread_mutex_lock(&ch->lock);
	unlink_call(c);
	if (--ch->busy == 0)
		pthread_cond_broadcast(&ch->empty);
	pthread_mutex_unlock(&ch->lock);
	free_call(c);
	mu_fail(err, MU_INTERNAL, "gRPC refused to start %s (%d)", method, (int)bad);
	return 0;
}

void rpc_out_cancel(struct rpc_channel *ch, uint64_t call)
{
	pthread_mutex_lock(&ch->lock);
	for (struct out_call *c = ch->calls; c; c = c->next)
		if (c->id == call) {
			cancel(c);
			break;
		}
	pthread_mutex_unlock(&ch->lock);
}

struct waiter {
	pthread_mutex_t lock;
	pthread_cond_t cond;
	bool ended;
	int rc;
	struct mu_buf *reply;
	struct mu_err *err;
};

static void wake(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct waiter *w = arg;

	pthread_mutex_lock(&w->lock);
	if (err) {
		w->rc = -(int)err->code;
		if (w->err)
			*w->err = *err;
	} else if (w->reply) {
		size_t len = rpc_bytes_len(reply);

		mu_buf_reserve(w->reply, len);
		rpc_bytes_copy(reply, 0, len, w->reply->data + w->reply->len);
		w->reply->len += len;
		w->reply->data[w->reply->len] = 0;
	}
	w->ended = true;
	pthread_cond_signal(&w->cond);
	pthread_mutex_unlock(&w->lock);
}

int rpc_call(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
	     long timeout_ms, unsigned flags, struct mu_buf *reply, struct mu_err *err)
{
	struct waiter w = {.reply = reply, .err = err};
	struct mu_err refused;

	if (loop_is_this_thread())
		return mu_fail(err, MU_INTERNAL, "%s: a blocking call from a channel's thread",
			       method);
	pthread_mutex_init(&w.lock, NULL);
	pthread_cond_init(&w.cond, NULL);
	if (rpc_start(ch, method, request, timeout_ms, flags, wake, &w, &refused)) {
		pthread_mutex_lock(&w.lock);
		while (!w.ended)
			pthread_cond_wait(&w.cond, &w.lock);
		pthread_mutex_unlock(&w.lock);
	} else {
		w.rc = mu_fail(err, refused.code, "%s", refused.msg);
	}
	pthread_cond_destroy(&w.cond);
	pthread_mutex_destroy(&w.lock);
	return w.rc;
}
