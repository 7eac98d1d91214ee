/* SPDX-License-Identifier: Apache-2.0 */
/* The streams of a task: two listeners (an abstract Unix socket, and TCP if there is a host to
 * bind), the stream thread, which reads all connections, and the dialler thread.
 *
 * Only the stream thread handles the end of a connection.  Connections without a HELLO are closed
 * after some seconds.  If accept() fails for lack of descriptors, the listeners are not polled for
 * a while. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/random.h"
#include "lib/net/accept_backoff.h"
#include "lib/net/listen.h"
#include "task/peer/stream_conn.h"
#include "task/rpc/tls.h"
#include "task/runtime/runtime.h"

enum { HANDSHAKE_MS = 5000, HANDSHAKE_CHECK_MS = 1000, MAX_CONNS = 4096, EVENTS = 32 };

/* ---- listeners ---- */

/* Listens on an abstract Unix socket with a random name, which is stored in the offer. */
static int listen_local(struct stream_offer *o, struct mu_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), n;

	snprintf(o->local, sizeof(o->local), "muster-%016llx%016llx",
		 (unsigned long long)mu_random_u64(), (unsigned long long)mu_random_u64());
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", o->local);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(fd, 64)) {
		int e = errno;

		if (fd >= 0)
			close(fd);
		return mu_fail_errno(err, e, "cannot listen for streams");
	}
	return fd;
}

/* Listens on a TCP port (0: any); the real port is stored in the offer.  A failure is only logged,
 * because tensors can be sent over gRPC. */
static int listen_tcp(struct stream_offer *o, const char *host, int port)
{
	struct mu_err err;
	int fd = mu_listen_tcp(host, port, &o->port, &err);

	if (fd < 0)
		mu_warn("stream", "no streams from other machines: %s", err.msg);
	return fd < 0 ? -1 : fd;
}

/* ---- polling ---- */

/* Polls fd; loop_on_event gets its events with `source`: a listener's descriptor or a connection.
 */
static int loop_poll_fd(struct streams *s, int fd, void *source, struct mu_err *err)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = source};

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e)
		   ? mu_fail_errno(err, errno, "cannot poll a stream")
		   : 0;
}

static int open_epoll(struct streams *s, struct mu_err *err)
{
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->epoll < 0 || s->wakeup_fd < 0)
		return mu_fail_errno(err, errno, "cannot start the streams");
	return loop_poll_fd(s, s->wakeup_fd, &s->wakeup_fd, err);
}

static void loop_on_event(struct streams *s, void *source, unsigned events);

/* Reads data that the TLS library has buffered, for which epoll reports no event. */
static void read_buffered(struct streams *s)
{
	struct stream_conn *list = s->unread, *next;

	s->unread = NULL;
	for (struct stream_conn *c = list; c; c = next) {
		next = c->next_unread;
		c->is_unread = false;
		if (c->link)
			loop_on_event(s, c, EPOLLIN);
		stream_conn_unref(c);
	}
}

/* Waits for events, at most wait_ms (-1: no limit), and handles them. */
static void loop_poll(struct streams *s, int wait_ms)
{
	struct epoll_event e[EVENTS];
	eventfd_t wakeups;
	int n;

	read_buffered(s);
	n = epoll_wait(s->epoll, e, EVENTS, s->unread ? 0 : wait_ms);
	for (int i = 0; i < n; i++) {
		if (e[i].data.ptr == &s->wakeup_fd)
			eventfd_read(s->wakeup_fd, &wakeups);
		else
			loop_on_event(s, e[i].data.ptr, e[i].events);
	}
}

/* ---- connections ---- */

/* Undoes loop_add, except for the reference and the epoll registration. */
static void unlink_conn(struct streams *s, struct stream_conn *c)
{
	pthread_mutex_lock(&s->lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->link = NULL;
	pthread_mutex_unlock(&s->lock);
	if (!c->dialled) {
		s->n_conns--;
		s->n_handshakes -= !c->handshake_done;
	}
}

/* Adds a connection; takes a reference on success.  The stream thread may handle events of c, also
 * its end, before this returns. */
static int loop_add(struct streams *s, struct stream_conn *c, struct mu_err *err)
{
	int rc;

	stream_conn_ref(c);
	c->since_ms = mu_clock_ms();
	pthread_mutex_lock(&s->lock);
	c->next = s->conns;
	c->link = &s->conns;
	if (c->next)
		c->next->link = &c->next;
	s->conns = c;
	pthread_mutex_unlock(&s->lock);
	if (!c->dialled) {
		s->n_conns++;
		s->n_handshakes++;
	}
	rc = loop_poll_fd(s, c->fd, c, err);
	if (rc) {
		unlink_conn(s, c);
		stream_conn_unref(c);
	}
	return rc;
}

/* ---- events ---- */

/* Removes the connection from the loop, closes it and passes the reason to its handler. */
static void close_conn(struct streams *s, struct stream_conn *c, const struct mu_err *why)
{
	unlink_conn(s, c);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	stream_conn_shutdown(c);
	if (!atomic_load(&s->stopping))
		mu_info("stream", "%s: %s", *c->task ? c->task : "unknown peer", why->msg);
	s->handlers->on_close(c, why);
	stream_conn_unref(c);
}

static void watch_listeners(struct streams *s, bool enabled)
{
	int *const fds[] = {&s->local, &s->tcp};

	for (size_t i = 0; i < MU_COUNT(fds); i++) {
		struct epoll_event e = {.events = enabled ? EPOLLIN : 0u, .data.ptr = fds[i]};

		if (*fds[i] >= 0)
			epoll_ctl(s->epoll, EPOLL_CTL_MOD, *fds[i], &e);
	}
	s->accept_paused_until_ms = enabled ? 0 : mu_clock_ms() + ACCEPT_BACKOFF_MS;
}

static void loop_accept(struct streams *s, int listener)
{
	static _Atomic int64_t next_warning_ms;
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	struct stream_conn *c;
	struct mu_err err;

	if (fd < 0) {
		if (mu_accept_backoff(errno, "stream"))
			watch_listeners(s, false);
		return;
	}
	if (s->n_conns >= MAX_CONNS) {
		if (mu_log_ratelimit(&next_warning_ms))
			mu_warn("stream", "rejected a connection: %u are open", s->n_conns);
		close(fd);
		return;
	}
	if (listener == s->local)
		stream_enlarge_send_buffer(fd);
	else
		stream_set_tcp_options(fd);
	c = stream_conn_new(s, fd);
	c->local = listener == s->local;
	if ((s->tls && !c->local && stream_conn_secure(c, s->tls, NULL, &err)) ||
	    loop_add(s, c, &err))
		mu_warn("stream", "rejected a connection: %s", err.msg);
	stream_conn_unref(c);
}

/* Makes the next loop_poll read c again, although its socket is empty. */
static void read_again(struct streams *s, struct stream_conn *c)
{
	if (c->is_unread)
		return;
	c->is_unread = true;
	c->next_unread = s->unread;
	s->unread = stream_conn_ref(c);
}

static void loop_on_event(struct streams *s, void *source, unsigned events)
{
	struct stream_conn *c = source;
	struct mu_err err;
	bool is_unread;

	if (atomic_load(&s->stopping))
		return;
	if (source == &s->local || source == &s->tcp) {
		loop_accept(s, *(int *)source);
		return;
	}
	if (events & EPOLLOUT)
		stream_conn_flush(c);
	if (!(events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		return;
	if (!stream_conn_read(c, &is_unread, &err))
		close_conn(s, c, &err);
	else if (is_unread)
		read_again(s, c);
}

/* ---- stream thread ---- */

/* Closes connections whose HELLO is late.  Returns the time until the next check; -1: no limit. */
static int close_late_handshakes(struct streams *s)
{
	int64_t now = mu_clock_ms();
	struct mu_err timeout_err;
	int wait_ms = -1;

	mu_fail(&timeout_err, MU_DEADLINE_EXCEEDED, "no HELLO in time");
	for (;;) {
		struct stream_conn *c;

		pthread_mutex_lock(&s->lock);
		for (c = s->conns, wait_ms = -1; c; c = c->next) {
			if (c->handshake_done)
				continue;
			if (now - c->since_ms > HANDSHAKE_MS)
				break;
			wait_ms = HANDSHAKE_CHECK_MS;
		}
		pthread_mutex_unlock(&s->lock);
		if (!c)
			return wait_ms;
		close_conn(s, c, &timeout_err);
	}
}

/* Runs the expired timers: late handshakes, paused listeners.  Returns the milliseconds until the
 * next timer; -1: none. */
static int loop_run_timers(struct streams *s)
{
	int wait_ms = s->n_handshakes ? close_late_handshakes(s) : -1;
	int64_t pause_ms = s->accept_paused_until_ms - mu_clock_ms();

	if (!s->accept_paused_until_ms)
		return wait_ms;
	if (pause_ms > 0)
		return wait_ms >= 0 && wait_ms < pause_ms ? wait_ms : (int)pause_ms;
	watch_listeners(s, true);
	return wait_ms;
}

static void *stream_thread(void *arg)
{
	struct streams *s = arg;

	while (!atomic_load(&s->stopping))
		loop_poll(s, loop_run_timers(s));
	return NULL;
}

/* ---- dialling ---- */

static void dial_one(struct streams *s, struct stream_peer *p)
{
	struct mu_err err;
	struct stream_conn *c = stream_dial(p, &err);

	pthread_mutex_lock(&p->lock);
	p->is_dialling = false;
	p->conn = c;
	if (c && loop_add(s, c, &err)) {
		stream_conn_unref(c);
		c = p->conn = NULL;
	}
	pthread_mutex_unlock(&p->lock);
	if (c)
		mu_info("stream", "connected to %s", p->task);
	else
		mu_info("stream", "no stream to %s, tensors are sent over gRPC: %s", p->task,
			err.msg);
}

static void *dialler_thread(void *arg)
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

/* ---- start and stop ---- */

static int loop_listen_on(struct streams *s, int *listener, int fd, struct mu_err *err)
{
	*listener = fd;
	return fd < 0 ? 0 : loop_poll_fd(s, fd, listener, err);
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

static int start_threads(struct streams *s, struct mu_err *err)
{
	if (pthread_create(&s->thread, NULL, stream_thread, s))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot start the streams' thread");
	if (pthread_create(&s->dialler, NULL, dialler_thread, s)) {
		atomic_store(&s->stopping, true);
		eventfd_write(s->wakeup_fd, 1);
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
	s->handlers = &stream_handlers;
	s->tls = o->tls ? rpc_tls_ref(o->tls) : NULL;
	s->local = s->tcp = s->epoll = s->wakeup_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->queued, NULL);
	s->offer.version = STREAM_VERSION;
	s->offer.incarnation = w->runtime->incarnation;
	rc = open_epoll(s, err);
	if (!rc && getrandom(s->offer.key, STREAM_KEY, 0) != (ssize_t)STREAM_KEY)
		rc = mu_fail_errno(err, errno, "cannot start the streams");
	if (!rc && !o->only_tcp) {
		int fd = listen_local(&s->offer, err);

		rc = fd < 0 ? fd : loop_listen_on(s, &s->local, fd, err);
	}
	if (!rc && o->host)
		rc = loop_listen_on(s, &s->tcp, listen_tcp(&s->offer, o->host, o->port), err);
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
	eventfd_write(s->wakeup_fd, 1);
	pthread_mutex_lock(&s->lock);
	pthread_cond_signal(&s->queued);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_join(s->dialler, NULL);
	mu_fail(&why, MU_UNAVAILABLE, "this task is shutting down");
	while (s->conns)
		close_conn(s, s->conns, &why);
	loop_poll(s, 0);
	stop_listening(s);
}

void streams_offer(struct streams *s, struct mu_buf *status)
{
	stream_offer_write(status, &s->offer);
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	if (s->epoll >= 0)
		close(s->epoll);
	if (s->wakeup_fd >= 0)
		close(s->wakeup_fd);
	rpc_tls_unref(s->tls);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->queued);
	free(s);
}
