/* SPDX-License-Identifier: Apache-2.0 */
/* All threads wait on one epoll; a connection is handed to one of them at a time and given back
 * afterwards, so its frames are read in order and no thread meets a connection that another has
 * just ended.  What frames lead to runs on these threads: it does not block. */
#include "task/rpc/h2/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"

/* What epoll hands out: a connection's serial number and descriptor, or of number 0 another
 * descriptor.  Never a pointer: who writes may have a connection handed out that another thread
 * just ends. */
static uint64_t key_of(uint32_t serial, int fd)
{
	return (uint64_t)serial << 32 | (uint32_t)fd;
}

static _Thread_local const struct h2_loop *here;

static void watch(struct h2_loop *l, int op, int fd, unsigned events, uint64_t key)
{
	struct epoll_event e = {.events = events, .data.u64 = key};

	epoll_ctl(l->epoll, op, fd, &e);
}

void h2_loop_watch_fd(struct h2_loop *l, int fd, bool first)
{
	watch(l, first ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, EPOLLIN | EPOLLONESHOT, key_of(0, fd));
}

void h2_loop_watch(struct h2_conn *c)
{
	unsigned events = EPOLLRDHUP | EPOLLONESHOT;

	if (!c->loop)
		return;
	if (c->queued <= H2_MAX_QUEUE)
		events |= EPOLLIN;
	/* what TLS holds already, no socket will tell of */
	if (c->wants_out || (events & EPOLLIN && h2_wire_unread(c)))
		events |= EPOLLOUT;
	watch(c->loop, EPOLL_CTL_MOD, c->fd, events, key_of(c->serial, c->fd));
}

/* ---- connections ---- */

void h2_loop_add(struct h2_loop *l, struct h2_conn *c)
{
	h2_near_tune(c);
	pthread_mutex_lock(&l->lock);
	c->loop = l;
	c->serial = ++l->last_serial ? l->last_serial : ++l->last_serial;
	if (c->fd >= l->n_fds) {
		int n = c->fd + 64;

		l->by_fd = mu_xrealloc(l->by_fd, (size_t)n * sizeof(struct h2_conn *));
		memset(l->by_fd + l->n_fds, 0, (size_t)(n - l->n_fds) * sizeof(struct h2_conn *));
		l->n_fds = n;
	}
	l->by_fd[c->fd] = h2_conn_ref(c);
	c->next = l->conns;
	c->link = &l->conns;
	if (c->next)
		c->next->link = &c->next;
	l->conns = c;
	l->n_conns++;
	watch(l, EPOLL_CTL_ADD, c->fd,
	      EPOLLIN | EPOLLRDHUP | EPOLLONESHOT | (h2_out_left(c) ? EPOLLOUT : 0),
	      key_of(c->serial, c->fd));
	pthread_mutex_unlock(&l->lock);
}

static void unlist(struct h2_loop *l, struct h2_conn *c)
{
	pthread_mutex_lock(&l->lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	l->by_fd[c->fd] = NULL;
	l->n_conns--;
	pthread_mutex_unlock(&l->lock);
}

static void end(struct h2_loop *l, struct h2_conn *c, const struct mu_err *why)
{
	bool fault = c->fault != H2_NO_ERROR;

	if (fault)
		mu_info("rpc", "%s connection ends: %s",
			c->side->client ? "a peer's" : "a client's", why->msg);
	unlist(l, c);
	epoll_ctl(l->epoll, EPOLL_CTL_DEL, c->fd, NULL);
	h2_conn_break(c, why, fault);
	h2_conn_unref(c);
}

static void on_event(struct h2_loop *l, struct h2_conn *c, unsigned events)
{
	bool live = true, taken, unread;
	struct mu_err err;

	pthread_mutex_lock(&c->lock);
	taken = c->reading || c->broken; /* whoever reads looks again when he gives it back */
	c->reading = true;
	if (!taken && events & EPOLLOUT)
		h2_out_flush(c);
	unread = !taken && h2_wire_unread(c);
	pthread_mutex_unlock(&c->lock);
	if (taken)
		return;
	if (unread || events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR))
		live = h2_conn_read(c, &err);
	if (live && events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) {
		mu_fail(&err, MU_UNAVAILABLE, "the other end has gone");
		live = false;
	}
	if (!live) {
		end(l, c, &err);
		return;
	}
	pthread_mutex_lock(&c->lock);
	h2_out_flush(c);
	c->reading = false;
	h2_loop_watch(c);
	pthread_mutex_unlock(&c->lock);
}

bool h2_loop_has(struct h2_loop *l, uint32_t serial)
{
	struct h2_conn *c;

	pthread_mutex_lock(&l->lock);
	for (c = l->conns; c && c->serial != serial; c = c->next)
		;
	pthread_mutex_unlock(&l->lock);
	return c != NULL;
}

unsigned h2_loop_count(struct h2_loop *l)
{
	unsigned n;

	pthread_mutex_lock(&l->lock);
	n = l->n_conns;
	pthread_mutex_unlock(&l->lock);
	return n;
}

void h2_loop_for_each(struct h2_loop *l, void (*fn)(struct h2_conn *c))
{
	struct h2_conn **list;
	unsigned n = 0;

	pthread_mutex_lock(&l->lock);
	list = MU_NEW_ARRAY(struct h2_conn *, l->n_conns + 1);
	for (struct h2_conn *c = l->conns; c; c = c->next)
		list[n++] = h2_conn_ref(c);
	pthread_mutex_unlock(&l->lock);
	for (unsigned i = 0; i < n; i++) {
		fn(list[i]);
		h2_conn_unref(list[i]);
	}
	free(list);
}

/* ---- threads ---- */

static void dispatch(struct h2_loop *l, const struct epoll_event *e)
{
	uint32_t serial = (uint32_t)(e->data.u64 >> 32);
	int fd = (int)(uint32_t)e->data.u64;
	struct h2_conn *c;

	if (serial == 0) {
		if (fd != l->wake)
			l->ready(l->ctx, fd);
		return;
	}
	pthread_mutex_lock(&l->lock);
	c = fd < l->n_fds ? l->by_fd[fd] : NULL;
	c = c && c->serial == serial ? h2_conn_ref(c) : NULL;
	pthread_mutex_unlock(&l->lock);
	if (c) {
		on_event(l, c, e->events);
		h2_conn_unref(c);
	}
}

static void *serve(void *arg)
{
	struct h2_loop *l = arg;

	here = l;
	while (!atomic_load(&l->stopping)) {
		/* one at a time: what this thread took along, no other could begin */
		struct epoll_event e;
		int n = epoll_wait(l->epoll, &e, 1, l->patience_ms ? l->patience_ms(l->ctx) : -1);

		if (n == 0)
			l->idle(l->ctx);
		else if (n > 0)
			dispatch(l, &e);
	}
	return NULL;
}

bool h2_loop_is_this_thread(const struct h2_loop *l)
{
	return here == l;
}

int h2_loop_start(struct h2_loop *l, unsigned threads, struct mu_err *err)
{
	pthread_mutex_init(&l->lock, NULL);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (l->epoll < 0 || l->wake < 0)
		return mu_fail_errno(err, errno, "cannot wait for connections");
	watch(l, EPOLL_CTL_ADD, l->wake, EPOLLIN, key_of(0, l->wake));
	for (; l->n_threads < threads && l->n_threads < H2_LOOP_THREADS; l->n_threads++) {
		if (pthread_create(&l->threads[l->n_threads], NULL, serve, l))
			break;
		pthread_setname_np(l->threads[l->n_threads], l->name);
	}
	return l->n_threads ? 0
			    : mu_fail(err, MU_RESOURCE_EXHAUSTED,
				      "no thread could be started for connections");
}

void h2_loop_stop(struct h2_loop *l)
{
	atomic_store(&l->stopping, true);
	if (l->wake >= 0)
		eventfd_write(l->wake, 1);
	for (unsigned i = 0; i < l->n_threads; i++)
		pthread_join(l->threads[i], NULL);
	l->n_threads = 0;
}

void h2_loop_fini(struct h2_loop *l, const struct mu_err *why)
{
	while (l->conns)
		end(l, l->conns, why);
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->wake >= 0)
		close(l->wake);
	free(l->by_fd);
	pthread_mutex_destroy(&l->lock);
}
