/* SPDX-License-Identifier: Apache-2.0 */
/* A listener controls debug ops that have `gated_grpc`: its replies enable and disable watch keys.
 * Their states outlive the stream.  An op with a key in state READ_WRITE is a breakpoint: it
 * waits for a reply. */
#include "task/event_listener.h"

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/clock.h"
#include "lib/base/map.h"
#include "lib/tensor/arena.h"
#include "proto/debug_service.pb-c.h"
#include "task/messages/control.h"
#include "task/rpc/stream_call.h"

#define METHOD      "/tensorflow.EventListener/SendEvents"
#define STATE(name) MUSTER__EVENT_REPLY__DEBUG_OP_STATE_CHANGE__STATE__##name

enum {
	MAX_LISTENERS = 64, /* the least recently used listener is replaced */
	MAX_WATCH_KEYS = 4096,
	MAX_WATCH_KEY_BYTES = 1024,
};

typedef Muster__EventReply__DebugOpStateChange state_change;

struct listener {
	char *url;
	pthread_mutex_t lock;      /* guards `states`; held while the stream is used */
	struct mu_map states;      /* watch key -> its state, READ_ONLY or READ_WRITE */
	_Atomic unsigned failures; /* streams that failed */
	/* guarded by the lock of the table */
	struct rpc_stream *stream; /* changed with both locks; NULL: not open */
	unsigned n_users;
	uint64_t last_use;
};

struct event_listeners {
	long connect_ms, reply_ms;
	pthread_mutex_t lock; /* may be taken with the lock of a listener held */
	struct mu_map by_url;
	uint64_t n_uses;
	bool stopped;
};

/* ---- table of listeners ---- */

static void free_listener(struct listener *l)
{
	rpc_stream_free(l->stream);
	mu_map_fini(&l->states);
	pthread_mutex_destroy(&l->lock);
	free(l->url);
	free(l);
}

/* Drops the least recently used listener that no call uses.  Called with the lock held. */
static void drop_oldest(struct event_listeners *ls)
{
	struct listener *oldest = NULL;

	mu_map_each (&ls->by_url, slot) {
		struct listener *l = slot->value;

		if (!l->n_users && (!oldest || l->last_use < oldest->last_use))
			oldest = l;
	}
	if (!oldest)
		return;
	mu_map_del(&ls->by_url, oldest->url);
	free_listener(oldest);
}

/* Returns the listener at the URL until release(); NULL: too many are in use. */
static struct listener *acquire(struct event_listeners *ls, const char *url)
{
	struct listener *l;

	pthread_mutex_lock(&ls->lock);
	l = mu_map_get(&ls->by_url, url);
	if (!l && ls->by_url.count >= MAX_LISTENERS)
		drop_oldest(ls);
	if (!l && ls->by_url.count < MAX_LISTENERS) {
		l = MU_NEW(struct listener);
		l->url = mu_xstrdup(url);
		pthread_mutex_init(&l->lock, NULL);
		mu_map_init(&l->states);
		mu_map_put(&ls->by_url, url, l);
	}
	if (l) {
		l->n_users++;
		l->last_use = ++ls->n_uses;
	}
	pthread_mutex_unlock(&ls->lock);
	return l;
}

static void release(struct event_listeners *ls, struct listener *l)
{
	pthread_mutex_lock(&ls->lock);
	l->n_users--;
	pthread_mutex_unlock(&ls->lock);
}

/* Replaces the stream, which may be NULL.  Called with the lock of the listener held. */
static void set_stream(struct event_listeners *ls, struct listener *l, struct rpc_stream *stream)
{
	struct rpc_stream *old;

	pthread_mutex_lock(&ls->lock);
	old = l->stream;
	l->stream = stream;
	if (stream && ls->stopped)
		rpc_stream_cancel(stream);
	pthread_mutex_unlock(&ls->lock);
	rpc_stream_free(old);
}

/* ---- replies ---- */

/* Enables or disables a watch key. */
static int apply_state_change(struct listener *l, const state_change *c, struct mu_err *err)
{
	MU_AUTO_FREE char *key =
	    mu_xasprintf("%s:%d:%s", c->node_name, c->output_slot, c->debug_op);

	if (c->state == STATE(DISABLED))
		mu_map_del(&l->states, key);
	if (c->state != STATE(READ_ONLY) && c->state != STATE(READ_WRITE))
		return 0;
	bool is_new = !mu_map_get(&l->states, key);
	if ((is_new && l->states.count >= MAX_WATCH_KEYS) || strlen(key) > MAX_WATCH_KEY_BYTES)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "The event listener at %s enables more than %d watch keys, or one "
			       "of more than %d bytes",
			       l->url, MAX_WATCH_KEYS, MAX_WATCH_KEY_BYTES);
	mu_map_put(&l->states, key, (void *)(intptr_t)c->state);
	return 0;
}

static bool is_breakpoint(const struct listener *l, const char *watch_key)
{
	return (intptr_t)mu_map_get(&l->states, watch_key) == STATE(READ_WRITE);
}

/* Receives a reply.  OUT_OF_RANGE or CANCELLED: the listener has ended the stream. */
static int receive_reply(struct event_listeners *ls, struct listener *l, struct mu_err *err)
{
	const Muster__EventReply *reply;
	MU_AUTO_BUF bytes = {0};
	MU_AUTO_ARENA a = {0};
	int rc = rpc_stream_receive(l->stream, ls->reply_ms, &bytes, err);

	if (rc)
		return rc;
	reply = control_unpack(&a, &muster__event_reply__descriptor, mu_buf_span(&bytes), err);
	if (!reply)
		rc = -MU_INVALID_ARGUMENT;
	for (size_t i = 0; !rc && i < reply->n_debug_op_state_changes; i++)
		rc = apply_state_change(l, reply->debug_op_state_changes[i], err);
	return rc;
}

/* ---- events ---- */

static int open_stream(struct event_listeners *ls, struct listener *l, struct mu_err *err)
{
	const char *target = l->url + strlen("grpc://");
	MU_AUTO_FREE char *address = mu_xstrndup(target, strcspn(target, "/"));
	struct rpc_stream *stream;
	struct mu_err why;

	if (rpc_stream_open(address, METHOD, ls->connect_ms, &stream, &why))
		return mu_fail(err, MU_FAILED_PRECONDITION,
			       "Failed to connect to gRPC channel at %s within a timeout of %g s.",
			       address, (double)ls->connect_ms / 1000);
	set_stream(ls, l, stream);
	return 0;
}

/* Called with the lock of the listener held. */
static int send_event(struct event_listeners *ls, struct listener *l, const struct debug_event *e,
		      struct mu_err *err)
{
	struct mu_err why;
	int rc;

	if (!l->stream)
		MU_RETURN_IF_ERROR(open_stream(ls, l, err));
	if (rpc_stream_send(l->stream, e->bytes, ls->reply_ms, &why))
		return mu_fail(err, MU_CANCELLED, "Write event to stream URL %s failed.", l->url);
	if (!e->is_last || (e->watch_key && !is_breakpoint(l, e->watch_key)))
		return 0;
	rc = receive_reply(ls, l, err);
	if (rc == -MU_DEADLINE_EXCEEDED)
		return mu_fail(err, MU_DEADLINE_EXCEEDED,
			       "The event listener at %s does not reply within %g s.", l->url,
			       (double)ls->reply_ms / 1000);
	/* As in TensorFlow, the end of the stream is an error for the next event only. */
	return rc == -MU_OUT_OF_RANGE || rc == -MU_CANCELLED ? 0 : rc;
}

static int event_send(void *ctx, const char *url, const struct debug_event *e, struct mu_err *err)
{
	struct event_listeners *ls = ctx;
	struct listener *l = acquire(ls, url);
	unsigned failures;
	int rc;

	if (!l)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "%d debug URLs are in use",
			       MAX_LISTENERS);
	failures = atomic_load(&l->failures);
	pthread_mutex_lock(&l->lock);
	/* If the stream has failed meanwhile, this event fails too and opens no new stream. */
	if (failures != atomic_load(&l->failures)) {
		rc = mu_fail(err, MU_CANCELLED, "Write event to stream URL %s failed.", url);
	} else {
		rc = send_event(ls, l, e, err);
		if (rc) {
			atomic_fetch_add(&l->failures, 1);
			set_stream(ls, l, NULL);
		}
	}
	pthread_mutex_unlock(&l->lock);
	release(ls, l);
	return rc;
}

static bool event_is_enabled(void *ctx, const char *url, const char *watch_key)
{
	struct event_listeners *ls = ctx;
	struct listener *l = acquire(ls, url);
	bool is_enabled;

	if (!l)
		return false;
	pthread_mutex_lock(&l->lock);
	is_enabled = mu_map_get(&l->states, watch_key) != NULL;
	pthread_mutex_unlock(&l->lock);
	release(ls, l);
	return is_enabled;
}

/* Ends the stream and waits until the listener has ended it too. */
static void event_close(void *ctx, const char *url)
{
	struct event_listeners *ls = ctx;
	struct listener *l = acquire(ls, url);
	int64_t until = mu_clock_ms() + ls->reply_ms;
	struct mu_err ignored;

	if (!l)
		return;
	pthread_mutex_lock(&l->lock);
	if (l->stream && !rpc_stream_send_end(l->stream, ls->reply_ms, &ignored))
		while (!receive_reply(ls, l, &ignored) && mu_clock_ms() < until)
			;
	set_stream(ls, l, NULL);
	pthread_mutex_unlock(&l->lock);
	release(ls, l);
}

/* ---- start and stop ---- */

struct event_listeners *event_listeners_new(long connect_ms, long reply_ms,
					    struct debug_streams *streams)
{
	struct event_listeners *ls = MU_NEW(struct event_listeners);

	ls->connect_ms = connect_ms;
	ls->reply_ms = reply_ms;
	pthread_mutex_init(&ls->lock, NULL);
	mu_map_init(&ls->by_url);
	streams->send = event_send;
	streams->is_enabled = event_is_enabled;
	streams->close = event_close;
	streams->ctx = ls;
	return ls;
}

void event_listeners_stop(struct event_listeners *ls)
{
	pthread_mutex_lock(&ls->lock);
	ls->stopped = true;
	mu_map_each (&ls->by_url, slot) {
		struct listener *l = slot->value;

		if (l->stream)
			rpc_stream_cancel(l->stream);
	}
	pthread_mutex_unlock(&ls->lock);
}

void event_listeners_free(struct event_listeners *ls)
{
	if (!ls)
		return;
	mu_map_each (&ls->by_url, slot)
		free_listener(slot->value);
	mu_map_fini(&ls->by_url);
	pthread_mutex_destroy(&ls->lock);
	free(ls);
}
