/* SPDX-License-Identifier: Apache-2.0 */
/* Unary calls by the gRPC C core library.  One batch does everything (metadata, request,
 * half-close, reply, status), so an attempt is one completion.
 *
 * Ownership: the completion queue owns a call from rpc_start until it ends.  For that time the call
 * is in the channel's list, where rpc_out_cancel finds it.  done runs after the call is removed
 * from the list, and rpc_channel_close returns when no done is running.
 *
 * A call that waits for the connection is a series of attempts, because gRPC's own wait-for-ready
 * does not report why there is no connection.  An attempt without a connection has sent nothing, so
 * the next one is safe.  It starts when the channel's state changes, or after RETRY_INTERVAL_MS.
 *
 * Keepalive pings detect that a peer's machine has failed.  At most two are sent without data in
 * between (gRPC's default): a stock server closes the connection after more. */
#include "task/rpc/channel.h"

#include <grpc/byte_buffer.h>
#include <grpc/support/time.h>
#include <pthread.h>

#include "lib/base/clock.h"
#include "task/rpc/bytes.h"
#include "task/rpc/core.h"
#include "task/rpc/tls.h"

enum {
	KEEPALIVE_MS = 20000,
	KEEPALIVE_TIMEOUT_MS = 10000,
	RETRY_INTERVAL_MS = 500,
	SHORT_WAIT_MS = 5000,
	DNS_TIMEOUT_MS = 5000,
	MAX_TARGET = 1024,
};

struct out_call {
	struct core_tag tag; /* tag of the attempt, or of the pause before the next one */
	uint64_t id;
	struct rpc_channel *ch;
	rpc_done done;
	void *arg;
	grpc_slice method;
	grpc_byte_buffer *request;
	gpr_timespec deadline;
	bool waits_for_ready;  /* wait-for-ready */
	int64_t wait_until_ms; /* end of the wait for a connection; 0: the deadline */
	bool cancelled;
	struct out_call *prev, *next;
	/* the current attempt; call is NULL between two attempts */
	grpc_call *call;
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
	bool closing;
	int64_t reset_ms;  /* time of the last reset of gRPC's back-off */
	struct mu_err why; /* error of the last failed attempt to connect; MU_OK after a success */
};

/* ---- open and close ---- */

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
	    CORE_INT(GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, DNS_TIMEOUT_MS),
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
			       "'%.200s' is not an address (host:port, unix:path)", target);
	queue = core_queue_ref(err);
	if (!queue)
		return -MU_RESOURCE_EXHAUSTED;
	ch = MU_NEW(struct rpc_channel);
	pthread_mutex_init(&ch->lock, NULL);
	pthread_cond_init(&ch->idle, NULL);
	ch->queue = queue;
	ch->target = mu_xstrdup(target);
	ch->channel = make_channel(target, tls);
	*out = ch;
	return 0;
}

/* Called with the lock held. */
static void cancel_call(struct out_call *c)
{
	c->cancelled = true;
	if (c->call)
		grpc_call_cancel(c->call, NULL);
}

void rpc_channel_close(struct rpc_channel *ch)
{
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	ch->closing = true;
	for (struct out_call *c = ch->calls; c; c = c->next)
		cancel_call(c);
	while (ch->busy > 0)
		pthread_cond_wait(&ch->idle, &ch->lock);
	pthread_mutex_unlock(&ch->lock);
	grpc_channel_destroy(ch->channel);
	core_queue_unref();
	pthread_cond_destroy(&ch->idle);
	pthread_mutex_destroy(&ch->lock);
	free(ch->target);
	free(ch);
}

bool rpc_channel_is_disconnected(struct rpc_channel *ch, struct mu_err *why)
{
	bool is_disconnected;

	pthread_mutex_lock(&ch->lock);
	is_disconnected = ch->why.code && grpc_channel_check_connectivity_state(ch->channel, 0) !=
					      GRPC_CHANNEL_READY;
	if (is_disconnected)
		*why = ch->why;
	pthread_mutex_unlock(&ch->lock);
	return is_disconnected;
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

static void free_attempt(struct out_call *c)
{
	grpc_metadata_array_destroy(&c->initial);
	grpc_metadata_array_destroy(&c->trailing);
	grpc_slice_unref(c->details);
	grpc_call_unref(c->call);
	c->call = NULL;
}

/* Frees c, which is not in the list any more. */
static void end_call(struct out_call *c)
{
	struct rpc_channel *ch = c->ch;

	grpc_slice_unref(c->method);
	grpc_byte_buffer_destroy(c->request);
	free(c);
	pthread_mutex_lock(&ch->lock);
	if (--ch->busy == 0)
		pthread_cond_broadcast(&ch->idle);
	pthread_mutex_unlock(&ch->lock);
}

/* Extracts the reason from gRPC's text of a failed connection; false for other texts. */
static bool connect_error(const struct rpc_channel *ch, struct mu_span text, struct mu_err *err)
{
	static const char *const prefixes[] = {"failed to connect to all addresses; last error: ",
					       "Failed to connect to remote host: "};
	MU_AUTO_FREE char *copy = mu_xstrndup(text.data, text.len);
	const char *reason = copy, *at;

	if (strncmp(copy, prefixes[0], strlen(prefixes[0])) &&
	    strncmp(copy, "DNS resolution failed", 21))
		return false;
	for (unsigned i = 0; i < MU_COUNT(prefixes); i++)
		if ((at = strstr(reason, prefixes[i])))
			reason = at + strlen(prefixes[i]);
	mu_fail(err, MU_UNAVAILABLE, "cannot connect to %s: %s", ch->target, reason);
	return true;
}

/* Fills the error of an attempt.  Returns true if there was no connection.  Called with the lock
 * held. */
static bool attempt_error(struct out_call *c, struct mu_err *err)
{
	struct rpc_channel *ch = c->ch;
	struct mu_span text = {(const char *)GRPC_SLICE_START_PTR(c->details),
			       GRPC_SLICE_LENGTH(c->details)};
	enum mu_code code = mu_code_from(c->status);

	if (code == MU_UNAVAILABLE && connect_error(ch, text, err)) {
		ch->why = *err;
		return true;
	}
	if (code == MU_UNKNOWN && mu_span_is(text, "Stream removed"))
		code = MU_UNAVAILABLE; /* the connection was lost */
	mu_fail(err, code, "%.*s", (int)(text.len > 4096 ? 4096 : text.len), text.data);
	if (code == MU_DEADLINE_EXCEEDED && ch->why.code)
		mu_append(err, ": %s", ch->why.msg);
	return false;
}

static void on_retry_timer(struct core_tag *tag, bool ok);

/* Schedules another attempt unless the call's deadline has passed.  Called with the lock held. */
static bool schedule_retry(struct out_call *c, struct mu_err *err)
{
	int64_t now = mu_clock_ms(), pause_ms = RETRY_INTERVAL_MS;

	if (!c->waits_for_ready || c->cancelled)
		return false;
	if (c->wait_until_ms && c->wait_until_ms - now < pause_ms)
		pause_ms = c->wait_until_ms - now;
	if (pause_ms <= 0) {
		mu_wrap(err, "no connection to the peer within %d s", SHORT_WAIT_MS / 1000);
		return false;
	}
	c->tag.complete = on_retry_timer;
	mu_tsan_release(&c->tag);
	grpc_channel_watch_connectivity_state(
	    c->ch->channel, GRPC_CHANNEL_TRANSIENT_FAILURE,
	    gpr_time_min(c->deadline, gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
						   gpr_time_from_millis(pause_ms, GPR_TIMESPAN))),
	    c->ch->queue, &c->tag);
	return true;
}

static void channel_deliver(struct out_call *c, const struct mu_err *err)
{
	struct rpc_bytes reply;

	bytes_receive(&reply, c->reply);
	c->done(c->arg, err, err ? NULL : &reply);
	bytes_fini(&reply);
	end_call(c);
}

static void on_attempt_ended(struct core_tag *tag, bool ok)
{
	struct out_call *c = MU_CONTAINER(tag, struct out_call, tag);
	struct rpc_channel *ch = c->ch;
	bool is_ok = c->status == GRPC_STATUS_OK && c->reply;
	struct mu_err err;
	bool will_retry = false;

	pthread_mutex_lock(&ch->lock);
	if (c->status != GRPC_STATUS_OK)
		will_retry = attempt_error(c, &err) && schedule_retry(c, &err);
	else
		ch->why.code = MU_OK;
	free_attempt(c);
	if (!will_retry)
		unlink_call(c);
	pthread_mutex_unlock(&ch->lock);
	if (will_retry)
		return;
	if (c->status == GRPC_STATUS_OK && !c->reply)
		mu_fail(&err, MU_INTERNAL, "the peer replied without a message");
	channel_deliver(c, is_ok ? NULL : &err);
}

/* Resets gRPC's back-off, which may delay name resolution by two minutes.  Called with the lock
 * held. */
static void reconnect(struct rpc_channel *ch)
{
	int64_t now = mu_clock_ms();

	if (!ch->why.code || now - ch->reset_ms < RETRY_INTERVAL_MS)
		return;
	ch->reset_ms = now;
	grpc_channel_reset_connect_backoff(ch->channel);
}

/* Called with the lock held. */
static grpc_call_error start_attempt(struct out_call *c)
{
	grpc_byte_buffer *message = grpc_byte_buffer_copy(c->request); /* sending empties it */
	grpc_op ops[6] = {0};
	grpc_call_error rc;

	reconnect(c->ch);
	grpc_metadata_array_init(&c->initial);
	grpc_metadata_array_init(&c->trailing);
	c->details = grpc_empty_slice();
	c->tag.complete = on_attempt_ended;
	c->call = grpc_channel_create_call(c->ch->channel, NULL, GRPC_PROPAGATE_DEFAULTS,
					   c->ch->queue, c->method, NULL, c->deadline, NULL);
	ops[0].op = GRPC_OP_SEND_INITIAL_METADATA;
	ops[1].op = GRPC_OP_SEND_MESSAGE;
	ops[1].data.send_message.send_message = message;
	ops[2].op = GRPC_OP_SEND_CLOSE_FROM_CLIENT;
	ops[3].op = GRPC_OP_RECV_INITIAL_METADATA;
	ops[3].data.recv_initial_metadata.recv_initial_metadata = &c->initial;
	ops[4].op = GRPC_OP_RECV_MESSAGE;
	ops[4].data.recv_message.recv_message = &c->reply;
	ops[5].op = GRPC_OP_RECV_STATUS_ON_CLIENT;
	ops[5].data.recv_status_on_client.trailing_metadata = &c->trailing;
	ops[5].data.recv_status_on_client.status = &c->status;
	ops[5].data.recv_status_on_client.status_details = &c->details;
	mu_tsan_release(&c->tag);
	rc = grpc_call_start_batch(c->call, ops, MU_COUNT(ops), &c->tag, NULL);
	grpc_byte_buffer_destroy(message);
	return rc;
}

/* Starts the next attempt after the pause. */
static void on_retry_timer(struct core_tag *tag, bool ok)
{
	struct out_call *c = MU_CONTAINER(tag, struct out_call, tag);
	struct rpc_channel *ch = c->ch;
	struct mu_err err;

	pthread_mutex_lock(&ch->lock);
	if (!c->cancelled) {
		if (start_attempt(c) == GRPC_CALL_OK) {
			pthread_mutex_unlock(&ch->lock);
			return;
		}
		free_attempt(c);
	}
	unlink_call(c);
	pthread_mutex_unlock(&ch->lock);
	mu_fail(&err, MU_CANCELLED, "the call was cancelled before it was sent");
	channel_deliver(c, &err);
}

uint64_t rpc_start(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		   long timeout_ms, unsigned flags, rpc_done done, void *arg, struct mu_err *err)
{
	struct out_call *c = MU_NEW(struct out_call);
	bool started;
	uint64_t id;

	*c = (struct out_call){
	    .ch = ch,
	    .done = done,
	    .arg = arg,
	    .method = grpc_slice_from_copied_string(method),
	    .request = message_to_buffer(request),
	    .deadline = timeout_ms > 0
			    ? gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC),
					   gpr_time_from_millis(timeout_ms, GPR_TIMESPAN))
			    : gpr_inf_future(GPR_CLOCK_MONOTONIC),
	    .waits_for_ready = flags & (RPC_WAIT_FOR_READY | RPC_WAIT_SHORT),
	    .wait_until_ms = flags & RPC_WAIT_SHORT ? mu_clock_ms() + SHORT_WAIT_MS : 0};
	pthread_mutex_lock(&ch->lock);
	id = c->id = ++ch->last_id;
	ch->busy++;
	started = !ch->closing && start_attempt(c) == GRPC_CALL_OK;
	if (started) {
		c->next = ch->calls;
		if (c->next)
			c->next->prev = c;
		ch->calls = c;
	}
	pthread_mutex_unlock(&ch->lock);
	if (started)
		return id;
	if (c->call)
		free_attempt(c);
	end_call(c);
	mu_fail(err, MU_CANCELLED, "%s was not sent: the channel is closed", method);
	return 0;
}

void rpc_out_cancel(struct rpc_channel *ch, uint64_t call)
{
	pthread_mutex_lock(&ch->lock);
	for (struct out_call *c = ch->calls; c; c = c->next)
		if (c->id == call) {
			cancel_call(c);
			break;
		}
	pthread_mutex_unlock(&ch->lock);
}
