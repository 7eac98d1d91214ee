/* SPDX-License-Identifier: Apache-2.0 */
/* Unary calls to one address, by one connection that is made when the first call wants it.
 *
 * IDLE -> CONNECTING -> READY -> IDLE, when the connection is lost; or CONNECTING -> RESTING, when
 * there is nobody: calls that do not wait fail then, and for a while (50 ms to 1 s) at once, the
 * others have it tried again.  Who is READY has heard the server's SETTINGS.
 *
 * Who owns what: a call is in its channel's list from rpc_start to its end, which is how
 * rpc_out_cancel finds it and how rpc_channel_close knows that it may go on.  Whoever takes it out
 * of the list ends it: the thread that read its answer calls done itself; what we end by ourselves
 * (cancelled, out of time, nobody there) is handed to the loop, so that done never runs inside a
 * call of ours.
 *
 * Locks: the channel's, then a connection's. */
#include "task/rpc/channel.h"

#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "task/rpc/channel_internal.h"
#include "task/rpc/dial.h"
#include "task/rpc/hot.h"
#include "task/rpc/tls.h"

enum {
	SETTLE_MS = 20000, /* for TLS and the server's first words */
	WAIT_A_LITTLE_MS = 5000,
	LONGEST_TARGET = 1024,
};

/* ---- references ---- */

static void channel_unref(void *owner)
{
	struct rpc_channel *ch = owner;

	if (atomic_fetch_sub_explicit(&ch->refs, 1, memory_order_acq_rel) != 1)
		return;
	rpc_tls_unref(ch->tls);
	pthread_cond_destroy(&ch->empty);
	pthread_mutex_destroy(&ch->lock);
	free(ch->target);
	free(ch->host);
	free(ch);
}

static struct rpc_channel *channel_ref(struct rpc_channel *ch)
{
	atomic_fetch_add_explicit(&ch->refs, 1, memory_order_relaxed);
	return ch;
}

static struct out_call *call_of(struct h2_ask *a)
{
	return MU_CONTAINER(a, struct out_call, ask);
}

static void call_unref(struct h2_ask *a)
{
	struct out_call *c = call_of(a);
	struct rpc_channel *ch = c->ch;

	if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
		return;
	h2_ask_fini(a);
	free(c->why);
	free(c);
	channel_unref(ch);
}

/* ---- calls, with the lock held ---- */

static void enqueue(struct rpc_channel *ch, struct out_call *c)
{
	c->state = OUT_QUEUED;
	c->next_queued = NULL;
	*ch->last_queued = c;
	ch->last_queued = &c->next_queued;
}

static void dequeue(struct rpc_channel *ch, struct out_call *c)
{
	struct out_call **at = &ch->queued;

	while (*at != c)
		at = &(*at)->next_queued;
	*at = c->next_queued;
	if (ch->last_queued == &c->next_queued)
		ch->last_queued = at;
}

/* Takes it out of the list: whoever does so ends it. */
static void unlink_call(struct rpc_channel *ch, struct out_call *c)
{
	if (c->state == OUT_QUEUED)
		dequeue(ch, c);
	c->state = OUT_ENDED;
	if (c->prev)
		c->prev->next = c->next;
	else
		ch->calls = c->next;
	if (c->next)
		c->next->prev = c->prev;
}

static void end_call(struct rpc_channel *ch, struct out_call *c, enum mu_code code,
		     const char *text)
{
	bool sent = c->state == OUT_SENT;

	unlink_call(ch, c);
	if (sent)
		h2_client_cancel(&c->ask);
	c->why = MU_NEW(struct mu_err);
	mu_fail(c->why, code, "%s", text);
	channels_end(ch->channels, c);
}

/* Its done has returned. */
static void finish(struct out_call *c)
{
	struct rpc_channel *ch = c->ch;

	pthread_mutex_lock(&ch->lock);
	if (--ch->busy == 0)
		pthread_cond_broadcast(&ch->empty);
	pthread_mutex_unlock(&ch->lock);
	call_unref(&c->ask);
}

void channel_run_ended(struct out_call *c)
{
	c->done(c->arg, c->why, NULL);
	finish(c);
}

/* ---- the connection, with the lock held ---- */

static void dialled(void *arg, int fd, const struct mu_err *err);

static void rest(struct rpc_channel *ch, const struct mu_err *why)
{
	struct out_call *next;

	mu_fail(&ch->why, MU_UNAVAILABLE, "%s", why->msg);
	ch->state = CH_RESTING;
	ch->until_ms = mu_clock_ms() + ch->rest_ms;
	ch->rest_ms = ch->rest_ms * 8 / 5;
	if (ch->rest_ms > RPC_BACKOFF_MAX_MS)
		ch->rest_ms = RPC_BACKOFF_MAX_MS;
	for (struct out_call *c = ch->queued; c; c = next) {
		next = c->next_queued;
		if (!c->patient)
			end_call(ch, c, MU_UNAVAILABLE, ch->why.msg);
	}
	if (ch->queued)
		channels_due(ch->channels, ch->until_ms);
}

static void dial(struct rpc_channel *ch)
{
	struct mu_err err;

	ch->state = CH_CONNECTING;
	ch->until_ms = INT64_MAX; /* dialling has limits of its own */
	if (dial_start(ch->target, dialled, channel_ref(ch), &err)) {
		channel_unref(ch);
		rest(ch, &err);
	}
}

static void let_go_of_conn(struct rpc_channel *ch)
{
	struct h2_conn *c = ch->conn;

	ch->conn = NULL;
	if (c)
		h2_conn_unref(c);
}

/* Starts what is queued, as far as the connection takes it. */
static void run_queue(struct rpc_channel *ch)
{
	while (ch->state == CH_READY && ch->queued) {
		struct out_call *c = ch->queued;
		enum h2_start how = h2_client_start(ch->conn, &c->ask);

		if (how == H2_FULL)
			return;
		if (how == H2_STARTED) {
			dequeue(ch, c);
			c->state = OUT_SENT;
			continue;
		}
		let_go_of_conn(ch);
		ch->state = CH_IDLE;
	}
	if (ch->queued && ch->state == CH_IDLE && !ch->closing)
		dial(ch);
}

/* ---- what happens to connections ---- */

static void dialled(void *arg, int fd, const struct mu_err *err)
{
	struct rpc_channel *ch = arg;
	struct h2_conn *c = fd >= 0 ? h2_conn_new(&h2_client_side, channel_ref(ch), fd) : NULL;
	struct mu_err bad;

	if (c && ch->tls) {
		c->tls = tls_conn_new(ch->tls, fd, ch->host, &bad);
		if (!c->tls) {
			h2_conn_unref(c);
			c = NULL;
			err = &bad;
		}
	}
	pthread_mutex_lock(&ch->lock);
	if (ch->closing) {
		if (c)
			h2_conn_unref(c);
	} else if (c) {
		h2_conn_hello(c);
		ch->conn = c;
		ch->until_ms = mu_clock_ms() + SETTLE_MS;
		channels_due(ch->channels, ch->until_ms);
		channels_add(ch->channels, c);
	} else {
		rest(ch, err);
	}
	pthread_mutex_unlock(&ch->lock);
	channel_unref(ch);
}

static void settled(void *owner, struct h2_conn *c)
{
	struct rpc_channel *ch = owner;

	pthread_mutex_lock(&ch->lock);
	if (ch->conn == c && ch->state == CH_CONNECTING) {
		ch->state = CH_READY;
		ch->why.code = MU_OK;
		ch->rest_ms = RPC_BACKOFF_INITIAL_MS;
		run_queue(ch);
	}
	pthread_mutex_unlock(&ch->lock);
}

static void lost(void *owner, struct h2_conn *c, const struct mu_err *why)
{
	struct rpc_channel *ch = owner;
	struct mu_err err;

	pthread_mutex_lock(&ch->lock);
	if (ch->conn == c && !ch->closing) {
		bool was_ready = ch->state == CH_READY;

		let_go_of_conn(ch);
		ch->state = CH_IDLE;
		if (was_ready) {
			run_queue(ch);
		} else {
			mu_fail(&err, MU_UNAVAILABLE, "cannot connect to %s: %s", ch->target,
				why ? why->msg : "it is going down");
			rest(ch, &err);
		}
	}
	pthread_mutex_unlock(&ch->lock);
}

static void answered(struct h2_ask *a, const struct mu_err *err, struct rpc_bytes *reply)
{
	struct out_call *c = call_of(a);
	struct rpc_channel *ch = c->ch;
	bool ours;

	pthread_mutex_lock(&ch->lock);
	ours = c->state == OUT_SENT;
	if (ours) {
		unlink_call(ch, c);
		if (ch->queued)
			run_queue(ch);
	}
	pthread_mutex_unlock(&ch->lock);
	if (ours)
		c->done(c->arg, err, reply);
	if (reply)
		bytes_fini(reply);
	if (ours)
		finish(c);
}

/* Once: who refuses twice means it. */
static void again(struct h2_ask *a)
{
	struct out_call *c = call_of(a);
	struct rpc_channel *ch = c->ch;

	pthread_mutex_lock(&ch->lock);
	if (c->state == OUT_SENT && !c->again) {
		c->again = true;
		enqueue(ch, c);
		run_queue(ch);
	} else if (c->state == OUT_SENT) {
		enqueue(ch, c);
		end_call(ch, c, MU_UNAVAILABLE, "the peer refused the call");
	}
	pthread_mutex_unlock(&ch->lock);
}

static const struct h2_client_events events = {
    .settled = settled,
    .lost = lost,
    .answered = answered,
    .again = again,
    .unref = call_unref,
    .freed = channel_unref,
};

/* ---- time ---- */

static int64_t sooner(int64_t a, int64_t b)
{
	return b && b < a ? b : a;
}

/* Its time was over before there was a connection: what stood in the way is said, if we know. */
static void end_unconnected(struct rpc_channel *ch, struct out_call *c, enum mu_code code,
			    const char *text)
{
	struct mu_err err;

	mu_fail(&err, code, "%s: %s", text, ch->why.msg);
	end_call(ch, c, code, ch->why.code ? err.msg : text);
}

/* A call's: when it is next due, or 0 when that is now and it has been ended. */
static int64_t call_due(struct rpc_channel *ch, struct out_call *c, int64_t now_ms)
{
	bool unconnected = c->state == OUT_QUEUED && ch->state != CH_READY;

	if (c->ask.deadline_ms && c->ask.deadline_ms <= now_ms) {
		if (unconnected)
			end_unconnected(ch, c, MU_DEADLINE_EXCEEDED, "Deadline Exceeded");
		else
			end_call(ch, c, MU_DEADLINE_EXCEEDED, "Deadline Exceeded");
		return 0;
	}
	if (unconnected && c->give_up_ms) {
		if (c->give_up_ms <= now_ms) {
			end_unconnected(ch, c, MU_UNAVAILABLE,
					"no connection to the peer within 5 s");
			return 0;
		}
		return sooner(c->give_up_ms, c->ask.deadline_ms);
	}
	return c->ask.deadline_ms;
}

int64_t channel_tick(struct rpc_channel *ch, int64_t now_ms)
{
	int64_t due = INT64_MAX;
	struct out_call *next;

	pthread_mutex_lock(&ch->lock);
	for (struct out_call *c = ch->calls; c; c = next) {
		next = c->next;
		due = sooner(due, call_due(ch, c, now_ms));
	}
	if (ch->state == CH_CONNECTING && ch->conn) {
		if (ch->until_ms <= now_ms)
			shutdown(ch->conn->fd, SHUT_RDWR);
		else
			due = sooner(due, ch->until_ms);
	} else if (ch->state == CH_RESTING && ch->queued) {
		if (ch->until_ms <= now_ms)
			dial(ch);
		else
			due = sooner(due, ch->until_ms);
	} else if (ch->state == CH_READY) {
		due = sooner(due, h2_client_tick(ch->conn, now_ms));
	}
	pthread_mutex_unlock(&ch->lock);
	return due;
}

/* ---- for users ---- */

int rpc_channel_open(const char *target, struct rpc_channel **out, struct mu_err *err)
{
	return rpc_channel_open_tls(target, NULL, out, err);
}

int rpc_channel_open_tls(const char *target, struct rpc_tls *tls, struct rpc_channel **out,
			 struct mu_err *err)
{
	struct rpc_channel *ch;
	int rc;

	if (!strncmp(target, "grpc://", 7))
		target += 7;
	if (!*target || strlen(target) > LONGEST_TARGET ||
	    (strncmp(target, "unix:", 5) && !strchr(target, ':')))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%.200s' is no address: host:port or unix:path is meant", target);
	ch = MU_NEW(struct rpc_channel);
	ch->refs = 1;
	pthread_mutex_init(&ch->lock, NULL);
	pthread_cond_init(&ch->empty, NULL);
	ch->target = mu_xstrdup(target);
	ch->host = mu_xcalloc(1, LONGEST_TARGET + 1);
	dial_host(target, ch->host, LONGEST_TARGET + 1);
	ch->tls = tls ? rpc_tls_ref(tls) : NULL;
	ch->client =
	    (struct h2_client){.events = &events,
			       .authority = strncmp(target, "unix:", 5) ? ch->target : "localhost",
			       .name = ch->target,
			       .secured = tls != NULL};
	ch->last_queued = &ch->queued;
	ch->rest_ms = RPC_BACKOFF_INITIAL_MS;
	rc = channels_enter(ch, err);
	if (rc) {
		channel_unref(ch);
		return rc;
	}
	*out = ch;
	return 0;
}

void rpc_channel_close(struct rpc_channel *ch)
{
	if (!ch)
		return;
	pthread_mutex_lock(&ch->lock);
	ch->closing = true;
	while (ch->calls)
		end_call(ch, ch->calls, MU_CANCELLED, "CANCELLED");
	while (ch->busy > 0)
		pthread_cond_wait(&ch->empty, &ch->lock);
	if (ch->conn)
		shutdown(ch->conn->fd, SHUT_RDWR);
	let_go_of_conn(ch);
	pthread_mutex_unlock(&ch->lock);
	channels_leave(ch);
	channel_unref(ch);
}

bool rpc_channel_is_away(struct rpc_channel *ch, struct mu_err *why)
{
	bool away;

	pthread_mutex_lock(&ch->lock);
	away = ch->state != CH_READY && ch->why.code;
	if (away)
		*why = ch->why;
	pthread_mutex_unlock(&ch->lock);
	return away;
}

/* With the lock held. */
static void begin(struct rpc_channel *ch, struct out_call *c)
{
	int64_t now = mu_clock_ms();

	if (ch->state == CH_RESTING && ch->until_ms <= now)
		ch->state = CH_IDLE;
	enqueue(ch, c);
	if (ch->state == CH_RESTING && !c->patient)
		end_call(ch, c, MU_UNAVAILABLE, ch->why.msg);
	else
		run_queue(ch);
	if (c->state == OUT_QUEUED && c->give_up_ms)
		channels_due(ch->channels, c->give_up_ms);
	if (c->state == OUT_QUEUED && ch->state == CH_RESTING)
		channels_due(ch->channels, ch->until_ms);
	if (c->state != OUT_ENDED && c->ask.deadline_ms)
		channels_due(ch->channels, c->ask.deadline_ms);
	if (ch->state == CH_READY)
		channels_due(ch->channels, now + H2_QUIET_MS);
}

uint64_t rpc_start(struct rpc_channel *ch, const char *method, const struct rpc_message *request,
		   long timeout_ms, unsigned flags, rpc_done done, void *arg, struct mu_err *err)
{
	size_t total = h2_message_length(request);
	struct out_call *c;
	uint64_t id = 0;

	if (total > UINT32_MAX - 5) {
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "%s: a request of %zu bytes: 4 GiB is the most",
			method, total);
		return 0;
	}
	c = mu_xcalloc(1, sizeof(*c) + strlen(method) + 1);
	h2_ask_init(&c->ask, strcpy(c->path, method), request);
	c->ch = channel_ref(ch);
	c->done = done;
	c->arg = arg;
	c->patient = flags & (RPC_WAIT_FOR_READY | RPC_WAIT_A_LITTLE);
	c->ask.deadline_ms = timeout_ms > 0 ? mu_clock_ms() + timeout_ms : 0;
	c->give_up_ms = flags & RPC_WAIT_A_LITTLE ? mu_clock_ms() + WAIT_A_LITTLE_MS : 0;
	if (flags & RPC_FOR_TENSOR)
		c->ask.stream.in.place = hot_recv_tensor_place;
	pthread_mutex_lock(&ch->lock);
	if (!ch->closing) {
		id = c->id = ++ch->last_id;
		ch->busy++;
		c->next = ch->calls;
		if (c->next)
			c->next->prev = c;
		ch->calls = c;
		begin(ch, c);
	}
	pthread_mutex_unlock(&ch->lock);
	if (!id) {
		call_unref(&c->ask);
		mu_fail(err, MU_CANCELLED, "the channel is closed");
	}
	return id;
}

void rpc_out_cancel(struct rpc_channel *ch, uint64_t call)
{
	pthread_mutex_lock(&ch->lock);
	for (struct out_call *c = ch->calls; c; c = c->next)
		if (c->id == call) {
			end_call(ch, c, MU_CANCELLED, "CANCELLED");
			break;
		}
	pthread_mutex_unlock(&ch->lock);
}
