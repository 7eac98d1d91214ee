/* SPDX-License-Identifier: Apache-2.0 */
/* Unary calls by the gRPC C core library.  One batch does everything (metadata, request, half-close,
 * reply, status), so a call is one completion.
 *
 * Ownership: the completion queue owns a call from rpc_start until its completion.  The channel's
 * list has it for that time; rpc_out_cancel finds it there.  done runs after the call has left the
 * list, and rpc_channel_close returns when no done runs any more.
 *
 * Calls that wait for a connection have the channel's state watched, for three reasons: a name that
 * could not be resolved is resolved again soon (gRPC itself waits up to two minutes), a call that
 * waits a little ends in time, and a health check that does not wait finds out why there is no
 * connection, because gRPC tells only a failed call.
 *
 * Keep-alive pings find a peer whose machine is gone while a call waits.  At most two are sent
 * without data in between (gRPC's default), because a stock server hangs up on more. */
#include "task/rpc/channel.h"

#include <grpc/byte_buffer.h>
#include <grpc/support/time.h>
#include <pthread.h>

#include "lib/base/clock.h"
#include "task/rpc/core.h"
#include "task/rpc/tls.h"

enum {
	KEEPALIVE_MS = 20000,
	KEEPALIVE_TIMEOUT_MS = 10000,
	WATCH_INTERVAL_MS = 500, /* while calls wait and there is no connection */
	WAIT_A_LITTLE_MS = 5000,
	MAX_TARGET = 1024,
};

struct out_call {
	struct core_tag tag;
	uint64_t id;
	struct rpc_channel *ch;
	grpc_call *call;
	rpc_done done;
	void *arg;
	bool waits;         /* for a connection */
	int64_t give_up_ms; /* of a call that waits a little for a connection; 0: it does not */
	struct out_call *prev, *next;
	grpc_metadata_array initial, trailing;
	grpc_byte_buffer *reply;
	grpc_status_code status;
	grpc_slice details;
};

struct rpc_channel {
	grpc_channel *channel;
	grpc_completion_queue *queue;
	char *target;
	pthread_mutex_t lock; /* guards the members below; not held across done */
	pthread_cond_t idle;
	struct out_call *calls;
	unsigned busy; /* calls whose done has not returned */
	uint64_t last_id;
	bool closing, watching, asking;
	struct core_tag watch;
	int64_t reset_ms;  /* of the last reset of gRPC's back-off */
	struct mu_err why; /* of the last failed attempt to connect; MU_OK after a success */
};

/* ---- life ---- */

static grpc_channel *make_channel(const char *target, struct rpc_tls *tls)
{
	bool local = !strncmp(target, "unix:", 5);
	MU_AUTO_FREE char *uri = mu_xasprintf("%s%s", local ? "" : "dns:///", target);
	grpc_arg args[] = {
	    CORE_INT(GRPC_ARG_MAX_RECEIVE_MESSAGE_LENGTH, -1),
	    CORE_INT(GRPC_ARG_MAX_SEND_MESSAGE_LENGTH, -1),
	    CORE_INT(GRPC_ARG_ENABLE_HTTP_PROXY, 0),
	    CORE_INT(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1),
	    CORE_INT(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, RPC_BACKOFF_INITIAL_MS),
	    CORE_INT(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, RPC_CONNECT_TIMEOUT_MS),
	    CORE_INT(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, RPC_BACKOFF_MAX_MS),
	    CORE_INT(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, RPC_BACKOFF_MAX_MS),
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIME_MS, KEEPALIVE_MS),
	    CORE_INT(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, KEEPALIVE_TIMEOUT_MS),
	    CORE_INT(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, CORE_READ_CHUNK),
	    CORE_INT(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, CORE_STREAM_WINDOW),
	    CORE_INT(GRPC_ARG_ENABLE_CHANNELZ, 0),
	};
	grpc_channel_args list = {MU_COUNT(args), args};
	grpc_channel_credentials *creds =
	    tls ? rpc_tls_channel_credentials(tls) : grpc_insecure_credentials_create();
	grpc_channel *c = grpc_channel_create(uri, creds, &list);

	grpc_channel_credentials_release(creds);
	return c;
}

static void on_watch(struct core_tag *tag, bool ok);

int rpc_channel_open(const char *target, struct rpc_channel **out, struct mu_err *err)
{
	return rpc_channel_open_tls(target, NULL, out, err);
}

int rpc_channel_open_tls(const char *target, struct rpc_tls *tls, struct rpc_channel **out,
			 struct mu_err *err)
{
	grpc_completion_queue *queue;
	struct rpc_channel *ch;

	if (!strncmp(target, "grpc://", 7))
		target += 7;
	if (!*target || strlen(target) > MAX_TARGET ||
	    (strncmp(target, "unix:", 5) && !strchr(target, ':')))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.200s' is no address: host:port or unix:path is meant", target);
	queue = core_queue_ref(err);
	if (!queue)
		return -MU_RESOURCE_EXHAUSTED;
	ch = MU_NEW(struct rpc_channel);
	pthread_mutex_init(&ch->lock, NULL);
	pthread_cond_init(&ch->idle, NULL);
	ch->queue = queue;
	ch->watch.complete = on_watch;
	ch->target = mu_xstrdup(target);
	ch->channel = make_channel(target, tls);
	*out = ch;
	return 0;
}

void rpc_channel_close(struct rpc_channel *ch)
{
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	ch->closing = true;
	for (struct out_call *c = ch->calls; c; c = c->next)
		grpc_call_cancel(c->call, NULL);
	while (ch->busy > 0)
		pthread_cond_wait(&ch->idle, &ch->lock);
	pthread_mutex_unlock(&ch->lock);
	grpc_channel_destroy(ch->channel); /* also ends the watch */
	pthread_mutex_lock(&ch->lock);
	while (ch->watching)
		pthread_cond_wait(&ch->idle, &ch->lock);
	pthread_mutex_unlock(&ch->lock);
	core_queue_unref();
	pthread_cond_destroy(&ch->idle);
	pthread_mutex_destroy(&ch->lock);
	free(ch->target);
	free(ch);
}

/* ---- the connection ---- */

static bool is_ready(struct rpc_channel *ch, bool connect)
{
	return grpc_channel_check_connectivity_state(ch->channel, connect) == GRPC_CHANNEL_READY;
}

/* With the lock held: gRPC tries again at once what it would try later. */
static void try_again(struct rpc_channel *ch)
{
	int64_t now = mu_clock_ms();

	if (now - ch->reset_ms < WATCH_INTERVAL_MS)
		return;
	ch->reset_ms = now;
	grpc_channel_reset_connect_backoff(ch->channel);
}

static void asked(void *arg, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct rpc_channel *ch = arg;

	pthread_mutex_lock(&ch->lock);
	ch->asking = false;
	pthread_mutex_unlock(&ch->lock);
}

/* With the lock held: looks at the calls that wait for a connection.  True when a call that does
 * not wait shall find out why there is none. */
static bool watch(struct rpc_channel *ch)
{
	grpc_connectivity_state state = grpc_channel_check_connectivity_state(ch->channel, 1);
	int64_t now = mu_clock_ms(), next = INT64_MAX;
	bool waits = false, failed = state == GRPC_CHANNEL_TRANSIENT_FAILURE;
	struct mu_err err;

	if (state == GRPC_CHANNEL_READY)
		ch->why.code = MU_OK;
	else
		next = now + WATCH_INTERVAL_MS;
	for (struct out_call *c = ch->calls; c; c = c->next) {
		waits |= c->waits;
		if (state == GRPC_CHANNEL_READY || !c->give_up_ms)
			continue;
		if (c->give_up_ms <= now) {
			mu_fail(&err, MU_UNAVAILABLE, "no connection to the peer within 5 s%s%s",
				ch->why.code ? ": " : "", ch->why.code ? ch->why.msg : "");
			grpc_call_cancel_with_status(c->call, GRPC_STATUS_UNAVAILABLE, err.msg,
						     NULL);
			c->give_up_ms = 0;
		} else if (c->give_up_ms < next) {
			next = c->give_up_ms;
		}
	}
	if (!waits || ch->closing)
		return false;
	if (failed)
		try_again(ch);
	ch->watching = true;
	grpc_channel_watch_connectivity_state(
	    ch->channel, state,
	    next == INT64_MAX ? gpr_inf_future(GPR_CLOCK_MONOTONIC)
			      : gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					     gpr_time_from_millis(next - now + 1, GPR_TIMESPAN)),
	    ch->queue, &ch->watch);
	return failed && !ch->asking && (ch->asking = true);
}

static void ask(struct rpc_channel *ch)
{
	static const struct rpc_message empty;

	if (!rpc_start(ch, "/grpc.health.v1.Health/Check", &empty, WAIT_A_LITTLE_MS, 0, asked, ch,
		       NULL))
		asked(ch, NULL, NULL);
}

static void on_watch(struct core_tag *tag, bool ok)
{
	struct rpc_channel *ch = MU_CONTAINER(tag, struct rpc_channel, watch);
	bool shall_ask = false;

	pthread_mutex_lock(&ch->lock);
	ch->watching = false;
	if (!ch->closing)
		shall_ask = watch(ch);
	else
		pthread_cond_broadcast(&ch->idle);
	pthread_mutex_unlock(&ch->lock);
	if (shall_ask)
		ask(ch);
}

bool rpc_channel_is_away(struct rpc_channel *ch, struct mu_err *why)
{
	bool away;

	pthread_mutex_lock(&ch->lock);
	away = ch->why.code && !is_ready(ch, false);
	if (away)
		*why = ch->why;
	pthread_mutex_unlock(&ch->lock);
	return away;
}

/* ---- calls ---- */

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

static void finish(struct rpc_channel *ch)
{
	pthread_mutex_lock(&ch->lock);
	if (--ch->busy == 0)
		pthread_cond_broadcast(&ch->idle);
	pthread_mutex_unlock(&ch->lock);
}

/* gRPC's text of a failed attempt, without the layers that it lists around the reason. */
static bool connect_error(const struct rpc_channel *ch, struct mu_span text, struct mu_err *err)
{
	static const char *const leads[] = {"failed to connect to all addresses; last error: ",
					    "Failed to connect to remote host: "};
	MU_AUTO_FREE char *copy = mu_xstrndup(text.data, text.len);
	const char *reason = copy, *at;

	if (strncmp(copy, leads[0], strlen(leads[0])) && strncmp(copy, "DNS resolution failed", 21))
		return false;
	for (unsigned i = 0; i < MU_COUNT(leads); i++)
		if ((at = strstr(reason, leads[i])))
			reason = at + strlen(leads[i]);
	mu_fail(err, MU_UNAVAILABLE, "cannot connect to %s: %s", ch->target, reason);
	return true;
}

/* With the lock held: the error of a call that the peer, or the library, ended with a status. */
static void call_error(struct out_call *c, struct mu_err *err)
{
	struct rpc_channel *ch = c->ch;
	struct mu_span text = {(const char *)GRPC_SLICE_START_PTR(c->details),
			       GRPC_SLICE_LENGTH(c->details)};
	enum mu_code code = mu_code_from(c->status);

	if (code == MU_UNAVAILABLE && connect_error(ch, text, err)) {
		ch->why = *err;
		return;
	}
	if (code == MU_UNKNOWN && mu_span_is(text, "Stream removed"))
		code = MU_UNAVAILABLE; /* the connection was lost */
	mu_fail(err, code, "%.*s", (int)(text.len > 4096 ? 4096 : text.len), text.data);
	if (code == MU_DEADLINE_EXCEEDED && ch->why.code)
		mu_append(err, ": %s", ch->why.msg);
}

static void completed(struct core_tag *tag, bool ok)
{
	struct out_call *c = MU_CONTAINER(tag, struct out_call, tag);
	struct rpc_channel *ch = c->ch;
	struct rpc_bytes reply;
	struct mu_err err;
	bool good = c->status == GRPC_STATUS_OK && c->reply;

	pthread_mutex_lock(&ch->lock);
	unlink_call(c);
	if (c->status == GRPC_STATUS_OK)
		ch->why.code = MU_OK;
	else
		call_error(c, &err);
	pthread_mutex_unlock(&ch->lock);
	if (c->status == GRPC_STATUS_OK && !c->reply)
		mu_fail(&err, MU_INTERNAL, "the peer answered without a message");
	bytes_receive(&reply, c->reply);
	c->done(c->arg, good ? NULL : &err, good ? &reply : NULL);
	bytes_fini(&reply);
	free_call(c);
	finish(ch);
}

static grpc_call_error start_batch(struct out_call *c, grpc_byte_buffer *request)
{
	grpc_op ops[6] = {0};

	ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
	if (c->waits)
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
	return grpc_call_start_batch(c->call, ops, MU_COUNT(ops), &c->tag, NULL);
}

static struct out_call *new_call(struct rpc_channel *ch, const char *method, long timeout_ms,
				 unsigned flags, rpc_done done, void *arg)
{
	struct out_call *c = MU_NEW(struct out_call);
	grpc_slice path = grpc_slice_from_copied_string(method);
	gpr_timespec deadline = gpr_inf_future(GPR_CLOCK_MONOTONIC);

	if (timeout_ms > 0)
		deadline = gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					gpr_time_from_millis(timeout_ms, GPR_TIMESPAN));
	*c = (struct out_call){
	    .tag.complete = completed,
	    .ch = ch,
	    .done = done,
	    .arg = arg,
	    .waits = flags & (RPC_WAIT_FOR_READY | RPC_WAIT_A_LITTLE),
	    .give_up_ms = flags & RPC_WAIT_A_LITTLE ? mu_clock_ms() + WAIT_A_LITTLE_MS : 0,
	    .details = grpc_empty_slice()};
	grpc_metadata_array_init(&c->initial);
	grpc_metadata_array_init(&c->trailing);
	c->call = grpc_channel_create_call(ch->channel, NULL, GRPC_PROPAGATE_DEFAULTS, ch->queue,
					   path, NULL, deadline, NULL);
	grpc_slice_unref(path);
	return c;
}

uint64_t rpc_start(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		   long timeout_ms, unsigned flags, rpc_done done, void *arg, struct mu_err *err)
{
	struct out_call *c = new_call(ch, method, timeout_ms, flags, done, arg);
	bool shall_ask = false;
	grpc_byte_buffer *buffer;
	grpc_call_error bad;
	uint64_t id;

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
	if (c->waits && !ch->watching)
		shall_ask = watch(ch);
	else if (ch->why.code)
		try_again(ch);
	pthread_mutex_unlock(&ch->lock);

	if (shall_ask)
		ask(ch);
	buffer = core_buffer_from(request);
	bad = start_batch(c, buffer);
	grpc_byte_buffer_destroy(buffer);
	if (bad == GRPC_CALL_OK)
		return id;
	pthread_mutex_lock(&ch->lock);
	unlink_call(c);
	pthread_mutex_unlock(&ch->lock);
	free_call(c);
	finish(ch);
	mu_fail(err, MU_INTERNAL, "gRPC refused to start %s (%d)", method, (int)bad);
	return 0;
}

void rpc_out_cancel(struct rpc_channel *ch, uint64_t call)
{
	pthread_mutex_lock(&ch->lock);
	for (struct out_call *c = ch->calls; c; c = c->next)
		if (c->id == call) {
			grpc_call_cancel(c->call, NULL);
			break;
		}
	pthread_mutex_unlock(&ch->lock);
}
