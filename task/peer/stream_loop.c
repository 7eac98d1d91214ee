/* SPDX-License-Identifier: Apache-2.0 */
/* A task's streams: two listeners (an abstract unix socket, and TCP when there is a host to bind),
 * the thread that reads, and a thread that dials.
 *
 * Connections are in two sets.  What others have dialled is read by the thread, always.  What we
 * have dialled, so what we wait for as a master, is read by whoever holds `reading`: a caller of
 * this process from before its step starts until it is over (streams_enter), so that what it waits
 * for need not wake two threads, else the thread.  The thread watches the second set as one event
 * of the first, once: whoever gives `reading` back has it watch again, after that, so that nothing
 * is overlooked when the thread came in vain.
 *
 * A connection is in the list while it is read; its end is handled by its reader and nowhere else.
 * Who has not greeted after some seconds is sent away.  When there are no descriptors for those who
 * come, the thread does not watch the listeners for a moment. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/net/accept_backoff.h"
#include "task/peer/stream_conn.h"
#include "task/peer/stream_listen.h"
#include "task/rpc/tls.h"
#include "task/runtime/runtime.h"

enum { GREETING_MS = 5000, MAX_CONNS = 4096, LOOK_AGAIN_MS = 1000 };

struct streams {
	const struct local_worker *worker;
	struct rpc_tls *tls; /* a reference, or NULL */
	struct stream_offer offer;
	int local, tcp; /* listeners; -1: none */
	pthread_t thread, dialler;
	_Atomic bool stopping;
	struct stream_set accepted;
	unsigned n_conns, n_strangers;  /* accepted; of these not greeted yet.  The thread's */
	int64_t accept_paused_until_ms; /* 0: the listeners are polled; owned by the thread */
	pthread_mutex_t reading;        /* what is in: */
	struct stream_set dialled;
	_Atomic unsigned n_dialled;
	pthread_mutex_t lock; /* guards what follows; after reading */
	pthread_cond_t queued;
	struct stream_conn *conns;
	struct stream_peer *to_dial;
};

const struct local_worker *stream_worker(const struct streams *s)
{
	return s->worker;
}

struct rpc_tls *stream_tls(const struct streams *s)
{
	return s->tls;
}

const struct stream_offer *stream_own_offer(const struct streams *s)
{
	return &s->offer;
}

void streams_offer(struct streams *s, struct mu_buf *status)
{
	stream_offer_write(status, &s->offer);
}

static struct stream_set *set_of(const struct stream_conn *c)
{
	return c->dialled ? &c->owner->dialled : &c->owner->accepted;
}

void stream_loop_unread(struct stream_conn *c)
{
	stream_set_unread(set_of(c), c);
}

void stream_loop_greeted(struct stream_conn *c)
{
	c->owner->n_strangers--;
}

void stream_loop_watch(struct stream_conn *c, bool out)
{
	struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data.ptr = c};

	epoll_ctl(set_of(c)->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

static void loop_add(struct streams *s, struct stream_conn *c)
{
	stream_conn_ref(c);
	c->since_ms = mu_clock_ms();
	pthread_mutex_lock(&s->lock);
	c->next = s->conns;
	c->link = &s->conns;
	if (c->next)
		c->next->link = &c->next;
	s->conns = c;
	pthread_mutex_unlock(&s->lock);
	s->n_dialled += c->dialled != NULL;
	stream_set_add(set_of(c), c->fd, c);
}

/* ---- what comes ---- */

static void end_conn(struct streams *s, struct stream_conn *c, const struct mu_err *why)
{
	pthread_mutex_lock(&s->lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->link = NULL;
	pthread_mutex_unlock(&s->lock);
	epoll_ctl(set_of(c)->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	stream_conn_break(c);
	if (c->dialled) {
		s->n_dialled--;
	} else {
		s->n_conns--;
		s->n_strangers -= !c->greeted;
	}
	if (!atomic_load(&s->stopping))
		mu_info("stream", "%s: %s", *c->task ? c->task : "somebody", why->msg);
	stream_on_break(c, why);
	stream_conn_unref(c);
}

static void watch_listeners(struct streams *s, bool on)
{
	int *const fds[] = {&s->local, &s->tcp};

	for (size_t i = 0; i < MU_COUNT(fds); i++) {
		struct epoll_event e = {.events = on ? EPOLLIN : 0u, .data.ptr = fds[i]};

		if (*fds[i] >= 0)
			epoll_ctl(s->accepted.epoll, EPOLL_CTL_MOD, *fds[i], &e);
	}
	s->accept_paused_until_ms = on ? 0 : mu_clock_ms() + ACCEPT_BACKOFF_MS;
}

static void take_in(struct streams *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;
	struct stream_conn *c;
	struct mu_err err;

	if (fd < 0) {
		if (mu_accept_backoff(errno, "stream"))
			watch_listeners(s, false);
		return;
	}
	if (s->n_conns >= MAX_CONNS) {
		mu_warn("stream", "%u connections are open: one more was refused", s->n_conns);
		close(fd);
		return;
	}
	if (listener == s->local)
		stream_local_room(fd);
	else
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	c = stream_conn_new(s, fd);
	c->local = listener == s->local;
	if (s->tls && !c->local && stream_conn_secure(c, s->tls, NULL, &err)) {
		mu_warn("stream", "a connection was refused: %s", err.msg);
	} else {
		s->n_conns++;
		s->n_strangers++;
		loop_add(s, c);
	}
	stream_conn_unref(c);
}

/* The thread watches what we have dialled: until something comes, or not at all. */
static void watch_dialled(struct streams *s, bool on)
{
	struct epoll_event e = {.events = on ? EPOLLIN | EPOLLONESHOT : 0u,
				.data.ptr = &s->dialled};

	epoll_ctl(s->accepted.epoll, EPOLL_CTL_MOD, s->dialled.epoll, &e);
}

void streams_leave(struct streams *s)
{
	if (s->dialled.unread)
		stream_set_nudge(&s->dialled);
	pthread_mutex_unlock(&s->reading);
	watch_dialled(s, true);
}

static void read_dialled(struct streams *s)
{
	if (pthread_mutex_trylock(&s->reading))
		return;
	stream_set_turn(&s->dialled, 0);
	streams_leave(s);
}

void streams_wake(struct streams *s)
{
	stream_set_nudge(&s->dialled);
}

bool streams_enter(struct streams *s)
{
	if (!atomic_load(&s->n_dialled) || pthread_mutex_trylock(&s->reading))
		return false;
	watch_dialled(s, false);
	return true;
}

/* Whoever ends the step wakes it; it looks by itself every second besides. */
void streams_wait(struct streams *s, const _Atomic bool *over, int64_t until_ms)
{
	while (!atomic_load(over) && !atomic_load(&s->stopping)) {
		int64_t left = until_ms ? until_ms - mu_clock_ms() : LOOK_AGAIN_MS;

		if (left <= 0)
			break;
		stream_set_turn(&s->dialled, left < LOOK_AGAIN_MS ? (int)left : LOOK_AGAIN_MS);
	}
}

void stream_loop_on_event(struct streams *s, void *what, unsigned events)
{
	struct stream_conn *c = what;
	struct mu_err err;

	if (atomic_load(&s->stopping))
		return;
	if (what == &s->local || what == &s->tcp) {
		take_in(s, *(int *)what);
		return;
	}
	if (what == &s->dialled) {
		read_dialled(s);
		return;
	}
	if (events & EPOLLOUT)
		stream_conn_flush(c);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !stream_conn_read(c, &err))
		end_conn(s, c, &err);
}

/* ---- the thread ---- */

/* How long to wait; those who are late with their greeting are sent away. */
static int strangers(struct streams *s)
{
	int64_t now = mu_clock_ms();
	struct mu_err late;
	int wait = -1;

	mu_fail(&late, MU_DEADLINE_EXCEEDED, "no greeting in time");
	for (;;) {
		struct stream_conn *c;

		pthread_mutex_lock(&s->lock);
		for (c = s->conns, wait = -1; c; c = c->next) {
			if (c->greeted)
				continue;
			if (now - c->since_ms > GREETING_MS)
				break;
			wait = 1000;
		}
		pthread_mutex_unlock(&s->lock);
		if (!c)
			return wait;
		end_conn(s, c, &late);
	}
}

/* How long the thread may wait; what is due already is done. */
static int patience(struct streams *s)
{
	int wait = s->n_strangers ? strangers(s) : -1;
	int64_t paused = s->accept_paused_until_ms - mu_clock_ms();

	if (!s->accept_paused_until_ms)
		return wait;
	if (paused > 0)
		return wait >= 0 && wait < paused ? wait : (int)paused;
	watch_listeners(s, true);
	return wait;
}

static void *serve(void *arg)
{
	struct streams *s = arg;

	while (!atomic_load(&s->stopping))
		stream_set_turn(&s->accepted, patience(s));
	return NULL;
}

/* ---- dialling ---- */

void stream_loop_dial(struct streams *s, struct stream_peer *p)
{
	pthread_mutex_lock(&s->lock);
	p->next = s->to_dial;
	s->to_dial = p;
	pthread_cond_signal(&s->queued);
	pthread_mutex_unlock(&s->lock);
}

static void dial_one(struct streams *s, struct stream_peer *p)
{
	struct mu_err err;
	struct stream_conn *c = stream_dial(p, &err);

	if (c)
		mu_info("stream", "connected to %s", p->task);
	else
		mu_info("stream", "%s is reached by gRPC only: %s", p->task, err.msg);
	pthread_mutex_lock(&p->lock);
	p->dialling = false;
	p->conn = c;
	if (c)
		loop_add(s, c);
	pthread_mutex_unlock(&p->lock);
}

static void *dial(void *arg)
{
	struct streams *s = arg;

	pthread_mutex_lock(&s->lock);
	while (!atomic_load(&s->stopping)) {
		struct stream_peer *p = s->to_dial;

		if (!p) {
			pthread_cond_wait(&s->queued, &s->lock);
			continue;
		}
		s->to_dial = p->next;
		pthread_mutex_unlock(&s->lock);
		dial_one(s, p);
		pthread_mutex_lock(&s->lock);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

/* ---- life ---- */

static void listen_on(struct streams *s, int *listener, int fd)
{
	*listener = fd;
	if (fd >= 0)
		stream_set_add(&s->accepted, fd, listener);
}

static void stop_listening(struct streams *s)
{
	int *const fds[] = {&s->local, &s->tcp};

	for (size_t i = 0; i < MU_COUNT(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

static int open_sets(struct streams *s, struct mu_err *err)
{
	int rc = stream_set_open(&s->accepted, s, err);

	if (!rc)
		rc = stream_set_open(&s->dialled, s, err);
	if (rc)
		return rc;
	stream_set_add(&s->accepted, s->dialled.epoll, &s->dialled);
	watch_dialled(s, true);
	return 0;
}

static int start_threads(struct streams *s, struct mu_err *err)
{
	if (pthread_create(&s->thread, NULL, serve, s))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot start the streams' thread");
	if (pthread_create(&s->dialler, NULL, dial, s)) {
		atomic_store(&s->stopping, true);
		stream_set_nudge(&s->accepted);
		pthread_join(s->thread, NULL);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot start the streams' dialler");
	}
	pthread_setname_np(s->thread, "stream");
	pthread_setname_np(s->dialler, "stream-dial");
	return 0;
}

int streams_start(const struct local_worker *w, const struct streams_options *o,
		  struct streams **out, struct mu_err *err)
{
	struct streams *s = MU_NEW(struct streams);
	int rc;

	s->worker = w;
	s->tls = o->tls ? rpc_tls_ref(o->tls) : NULL;
	s->local = s->tcp = s->dialled.epoll = s->dialled.nudge = -1;
	pthread_mutex_init(&s->reading, NULL);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->queued, NULL);
	s->offer.version = STREAM_VERSION;
	s->offer.incarnation = w->runtime->incarnation;
	rc = open_sets(s, err);
	if (!rc && getrandom(s->offer.key, STREAM_KEY, 0) != (ssize_t)STREAM_KEY)
		rc = mu_fail_errno(err, errno, "cannot start the streams");
	if (!rc && !o->only_tcp) {
		int fd = stream_listen_local(&s->offer, err);

		rc = fd < 0 ? fd : 0;
		listen_on(s, &s->local, fd);
	}
	if (!rc && o->host)
		listen_on(s, &s->tcp, stream_listen_tcp(&s->offer, o->host, o->port));
	if (!rc)
		rc = start_threads(s, err);
	if (rc) {
		stop_listening(s);
		streams_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

void streams_stop(struct streams *s)
{
	struct mu_err why;

	if (!s || atomic_exchange(&s->stopping, true))
		return;
	stream_set_nudge(&s->accepted);
	stream_set_nudge(&s->dialled);
	pthread_mutex_lock(&s->lock);
	pthread_cond_signal(&s->queued);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_join(s->dialler, NULL);
	mu_fail(&why, MU_UNAVAILABLE, "this task is shutting down");
	pthread_mutex_lock(
	    &s->reading); /* who waits here goes; this thread is in both's place now */
	while (s->conns)
		end_conn(s, s->conns, &why);
	stream_set_turn(&s->accepted, 0);
	stream_set_turn(&s->dialled, 0);
	pthread_mutex_unlock(&s->reading);
	stop_listening(s);
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	stream_set_close(&s->accepted);
	stream_set_close(&s->dialled);
	rpc_tls_unref(s->tls);
	pthread_mutex_destroy(&s->reading);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->queued);
	free(s);
}
