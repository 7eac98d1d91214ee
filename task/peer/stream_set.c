/* SPDX-License-Identifier: Apache-2.0 */
#include "task/peer/stream_set.h"

#include <errno.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "task/peer/stream_conn.h"

enum { EVENTS = 32 };

int stream_set_open(struct stream_set *set, struct streams *owner, stream_event_fn on_event,
		    struct mu_err *err)
{
	set->owner = owner;
	set->on_event = on_event;
	set->epoll = epoll_create1(EPOLL_CLOEXEC);
	set->wakeup_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (set->epoll < 0 || set->wakeup_fd < 0)
		return mu_fail_errno(err, errno, "cannot start the streams");
	return stream_set_add(set, set->wakeup_fd, &set->wakeup_fd, err);
}

void stream_set_close(struct stream_set *set)
{
	if (set->epoll >= 0)
		close(set->epoll);
	if (set->wakeup_fd >= 0)
		close(set->wakeup_fd);
	set->epoll = set->wakeup_fd = -1;
}

int stream_set_add(struct stream_set *set, int fd, void *what, struct mu_err *err)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = what};

	return epoll_ctl(set->epoll, EPOLL_CTL_ADD, fd, &e)
		   ? mu_fail_errno(err, errno, "cannot poll a stream")
		   : 0;
}

void stream_set_wake_up(struct stream_set *set)
{
	eventfd_write(set->wakeup_fd, 1);
}

void stream_set_unread(struct stream_set *set, struct stream_conn *c)
{
	if (c->unread)
		return;
	c->unread = true;
	c->next_unread = set->unread;
	set->unread = stream_conn_ref(c);
}

/* Reads data that the TLS library has buffered, for which epoll reports no event. */
static void read_buffered(struct stream_set *set)
{
	struct stream_conn *list = set->unread, *next;

	set->unread = NULL;
	for (struct stream_conn *c = list; c; c = next) {
		next = c->next_unread;
		c->unread = false;
		if (c->link)
			set->on_event(set->owner, c, EPOLLIN);
		stream_conn_unref(c);
		stream_flush_deferred();
	}
}

static int poll_once(struct stream_set *set, struct epoll_event *e)
{
	int64_t end = mu_clock_us() + SPIN_US;
	bool in_time;
	int n;

	while ((n = epoll_wait(set->epoll, e, EVENTS, 0)) == 0 && mu_clock_us() < end)
		sched_yield(); /* other threads run first */
	in_time = mu_clock_us() < end;
	adaptive_spin_done(&set->spin, n > 0 && in_time);
	return n;
}

static int wait_for_some(struct stream_set *set, struct epoll_event *e, int wait_ms)
{
	int n = 0;

	if (set->unread)
		wait_ms = 0;
	if (wait_ms && adaptive_spin_start(&set->spin))
		n = poll_once(set, e);
	return n > 0 ? n : epoll_wait(set->epoll, e, EVENTS, wait_ms);
}

void stream_set_poll(struct stream_set *set, int wait_ms)
{
	const struct streams *outer = stream_defer_writes(set->owner);
	struct epoll_event e[EVENTS];
	eventfd_t wakeups;
	int n;

	read_buffered(set);
	n = wait_for_some(set, e, wait_ms);
	for (int i = 0; i < n; i++) {
		if (e[i].data.ptr == &set->wakeup_fd)
			eventfd_read(set->wakeup_fd, &wakeups);
		else
			set->on_event(set->owner, e[i].data.ptr, e[i].events);
		stream_flush_deferred();
	}
	stream_defer_writes(outer);
}
