/* SPDX-License-Identifier: Apache-2.0 */
/* A task's streams: two listeners (an abstract unix socket, and TCP when there is a host to bind),
 * the thread that reads all connections and runs what the frames ask for, and a thread that dials.
 *
 * A connection is in the list while the thread reads it; its end is handled there and nowhere else.
 * Who has not greeted after some seconds is sent away. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "task/peer/stream_conn.h"
#include "task/request_ids.h"
#include "task/rpc/tls.h"
#include "task/timer.h"
#include "task/worker/worker.h"

enum { EVENTS = 32, GREETING_MS = 5000, MAX_CONNS = 4096 };

struct streams {
	struct worker *worker;
	struct rpc_tls *tls; /* a reference, or NULL */
	struct stream_offer offer;
	int epoll, wake, local, tcp; /* -1: none */
	pthread_t thread, dialler;
	_Atomic bool stopping;
	struct stream_conn *dirty, *unread; /* the thread's */
	unsigned n_conns, n_strangers;      /* accepted; of these not greeted yet.  The thread's */
	pthread_mutex_t lock;               /* guards what follows */
	pthread_cond_t queued;
	struct stream_conn *conns;
	struct stream_peer *to_dial;
};

static _Thread_local const struct streams *mine;

bool stream_loop_is_this_thread(const struct streams *s)
{
	return mine == s;
}

struct worker *stream_worker(const struct streams *s)
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

void stream_loop_dirty(struct stream_conn *c)
{
	if (c->dirty)
		return;
	c->dirty = true;
	c->next_dirty = c->owner->dirty;
	c->owner->dirty = stream_conn_ref(c);
}

void stream_loop_unread(struct stream_conn *c)
{
	if (c->unread)
		return;
	c->unread = true;
	c->next_unread = c->owner->unread;
	c->owner->unread = stream_conn_ref(c);
}

void stream_loop_greeted(struct stream_conn *c)
{
	c->owner->n_strangers--;
}

static void flush_dirty(struct streams *s)
{
	while (s->dirty) {
		struct stream_conn *c = s->dirty;

		s->dirty = c->next_dirty;
		c->dirty = false;
		stream_conn_flush(c);
		stream_conn_unref(c);
	}
}

void stream_loop_watch(struct stream_conn *c, bool out)
{
	struct epoll_event e = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data.ptr = c};

	epoll_ctl(c->owner->epoll, EPOLL_CTL_MOD, c->fd, &e);
}

void stream_loop_add(struct streams *s, struct stream_conn *c)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

	stream_conn_ref(c);
	c->since_ms = timer_now_ms();
	pthread_mutex_lock(&s->lock);
	c->next = s->conns;
	c->link = &s->conns;
	if (c->next)
		c->next->link = &c->next;
	s->conns = c;
	pthread_mutex_unlock(&s->lock);
	epoll_ctl(s->epoll, EPOLL_CTL_ADD, c->fd, &e);
}

/* ---- the thread ---- */

static void end_conn(struct streams *s, struct stream_conn *c, const struct mu_err *why)
{
	pthread_mutex_lock(&s->lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	c->link = NULL;
	pthread_mutex_unlock(&s->lock);
	epoll_ctl(s->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	stream_conn_break(c);
	if (!c->dialled) {
		s->n_conns--;
		s->n_strangers -= !c->greeted;
	}
	if (!atomic_load(&s->stopping))
		mu_info("stream", "%s: %s", *c->task ? c->task : "somebody", why->msg);
	stream_on_break(c, why);
	stream_conn_unref(c);
}

static void take_in(struct streams *s, int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK), one = 1;
	struct stream_conn *c;
	struct mu_err err;

	if (fd < 0)
		return;
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
		stream_loop_add(s, c);
	}
	stream_conn_unref(c);
}

static void on_event(struct streams *s, struct stream_conn *c, unsigned events)
{
	struct mu_err err;

	if (events & EPOLLOUT)
		stream_conn_flush(c);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) && !stream_conn_read(c, &err))
		end_conn(s, c, &err);
}

/* What a read left in the library's hands: the socket does not tell of it again. */
static void read_on(struct streams *s)
{
	struct stream_conn *list = s->unread, *next;

	s->unread = NULL;
	for (struct stream_conn *c = list; c; c = next) {
		next = c->next_unread;
		c->unread = false;
		if (c->link && !atomic_load(&s->stopping))
			on_event(s, c, EPOLLIN);
		stream_conn_unref(c);
		flush_dirty(s);
	}
}

/* How long to wait; those who are late with their greeting are sent away. */
static int strangers(struct streams *s)
{
	int64_t now = timer_now_ms();
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

static void *serve(void *arg)
{
	struct streams *s = arg;
	struct epoll_event e[EVENTS];

	mine = s;
	while (!atomic_load(&s->stopping)) {
		int wait, n;

		read_on(s);
		wait = s->n_strangers ? strangers(s) : -1;
		n = epoll_wait(s->epoll, e, EVENTS, s->unread ? 0 : wait);
		for (int i = 0; i < n && !atomic_load(&s->stopping); i++) {
			if (e[i].data.ptr == &s->local || e[i].data.ptr == &s->tcp)
				take_in(s, *(int *)e[i].data.ptr);
			else if (e[i].data.ptr != &s->wake)
				on_event(s, e[i].data.ptr, e[i].events);
			flush_dirty(s);
		}
	}
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
		stream_loop_add(s, c);
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

static int listen_local(struct streams *s, struct mu_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), n;

	snprintf(s->offer.local, sizeof(s->offer.local), "muster-%016llx%016llx",
		 (unsigned long long)random_u64(), (unsigned long long)random_u64());
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, "%s", s->offer.local);
	if (fd < 0 ||
	    bind(fd, (struct sockaddr *)&a,
		 (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) ||
	    listen(fd, 64)) {
		int e = errno;

		if (fd >= 0)
			close(fd);
		return mu_fail_errno(err, e, "cannot listen for streams");
	}
	s->local = fd;
	return 0;
}

/* Without it tensors go by gRPC: no reason not to serve. */
static void listen_tcp(struct streams *s, const char *host, int port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	struct sockaddr_storage got;
	socklen_t len = sizeof(got);
	char service[8];
	int fd, one = 1;

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(host, service, &hints, &list))
		return;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && port) /* a task that starts anew finds connections of the one before */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd >= 0 && !bind(fd, list->ai_addr, list->ai_addrlen) && !listen(fd, 64) &&
	    !getsockname(fd, (struct sockaddr *)&got, &len)) {
		s->offer.port =
		    ntohs(got.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&got)->sin6_port
						    : ((struct sockaddr_in *)&got)->sin_port);
		s->tcp = fd;
	} else {
		mu_warn("stream", "no streams from other machines: %s:%d: %s", host, port,
			strerror(errno));
		if (fd >= 0)
			close(fd);
	}
	freeaddrinfo(list);
}

static void watch(struct streams *s, int *fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = fd};

	if (*fd >= 0)
		epoll_ctl(s->epoll, EPOLL_CTL_ADD, *fd, &e);
}

static void close_all(struct streams *s)
{
	int *const fds[] = {&s->epoll, &s->wake, &s->local, &s->tcp};

	for (size_t i = 0; i < MU_COUNT(fds); i++) {
		if (*fds[i] >= 0)
			close(*fds[i]);
		*fds[i] = -1;
	}
}

int streams_start(struct worker *w, const struct streams_options *o, struct streams **out,
		  struct mu_err *err)
{
	struct streams *s = MU_NEW(struct streams);
	int rc = 0;

	s->worker = w;
	s->tls = o->tls ? rpc_tls_ref(o->tls) : NULL;
	s->local = s->tcp = -1;
	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	s->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&s->lock, NULL);
	pthread_cond_init(&s->queued, NULL);
	s->offer.version = STREAM_VERSION;
	s->offer.incarnation = worker_runtime(w)->incarnation;
	if (s->epoll < 0 || s->wake < 0 ||
	    getrandom(s->offer.key, STREAM_KEY, 0) != (ssize_t)STREAM_KEY)
		rc = mu_fail_errno(err, errno, "cannot start the streams");
	if (!rc && !o->only_tcp)
		rc = listen_local(s, err);
	if (!rc && o->host)
		listen_tcp(s, o->host, o->port);
	watch(s, &s->local);
	watch(s, &s->tcp);
	watch(s, &s->wake);
	if (!rc && pthread_create(&s->thread, NULL, serve, s))
		rc = mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot start the streams' thread");
	if (!rc && pthread_create(&s->dialler, NULL, dial, s)) {
		rc = mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot start the streams' dialler");
		atomic_store(&s->stopping, true);
		eventfd_write(s->wake, 1);
		pthread_join(s->thread, NULL);
	}
	if (rc) {
		close_all(s);
		streams_free(s);
		return rc;
	}
	pthread_setname_np(s->thread, "stream");
	pthread_setname_np(s->dialler, "stream-dial");
	*out = s;
	return 0;
}

void streams_stop(struct streams *s)
{
	struct mu_err why;

	if (!s || atomic_exchange(&s->stopping, true))
		return;
	eventfd_write(s->wake, 1);
	pthread_mutex_lock(&s->lock);
	pthread_cond_signal(&s->queued);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_join(s->dialler, NULL);
	mu_fail(&why, MU_UNAVAILABLE, "this task is shutting down");
	mine = s; /* this thread is in its place now */
	while (s->conns)
		end_conn(s, s->conns, &why);
	read_on(s);
	flush_dirty(s);
	mine = NULL;
	close_all(s);
}

void streams_free(struct streams *s)
{
	if (!s)
		return;
	rpc_tls_unref(s->tls);
	pthread_mutex_destroy(&s->lock);
	pthread_cond_destroy(&s->queued);
	free(s);
}
