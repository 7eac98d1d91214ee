/* SPDX-License-Identifier: Apache-2.0 */
/* accept4 for the gRPC library, in place of libc's.
 *
 * gRPC 1.51 closes a listener for good when accept4 fails with EMFILE, ENFILE, ENOBUFS or ENOMEM,
 * so a task that once had no descriptor left would never accept a connection again.  On the threads
 * of the completion queue, accept4 reports EAGAIN instead.  gRPC then waits for the next connection
 * (its epoll is edge-triggered); a thread makes one as soon as a descriptor is free, and gRPC
 * accepts all that are pending.  Other threads get libc's behaviour. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "lib/net/accept_backoff.h"
#include "task/rpc/core.h"
#include "task/rpc/frame_guard.h"

enum { MAX_LISTENERS = 16 };

struct address {
	struct sockaddr_storage to;
	socklen_t len;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the variables below */
static struct address waiting[MAX_LISTENERS];            /* listeners with pending connections */
static unsigned n_waiting;
static bool running;

/* False when there is still no descriptor. */
static bool connect_once(const struct address *a)
{
	int fd = socket(a->to.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return false;
	(void)!connect(fd, (const struct sockaddr *)&a->to, a->len);
	close(fd);
	return true;
}

static void *connect_later(void *arg)
{
	static const struct timespec pause = {0, ACCEPT_BACKOFF_MS * 1000000L};

	pthread_mutex_lock(&lock);
	while (n_waiting > 0) {
		pthread_mutex_unlock(&lock);
		nanosleep(&pause, NULL);
		pthread_mutex_lock(&lock);
		while (n_waiting > 0 && connect_once(&waiting[n_waiting - 1]))
			n_waiting--;
	}
	running = false;
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void accept_later(int fd)
{
	struct address a;
	pthread_t thread;
	bool known = false;

	memset(&a, 0, sizeof(a));
	a.len = sizeof(a.to);
	if (getsockname(fd, (struct sockaddr *)&a.to, &a.len))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < n_waiting; i++)
		known |= !memcmp(&waiting[i], &a, sizeof(a));
	if (!known && n_waiting < MAX_LISTENERS)
		waiting[n_waiting++] = a;
	if (!running && !pthread_create(&thread, NULL, connect_later, NULL)) {
		running = true;
		pthread_detach(thread);
	}
	pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) int accept4(int fd, struct sockaddr *addr, socklen_t *len,
						   int flags)
{
	int got = (int)syscall(SYS_accept4, fd, addr, len, flags);

	if (got >= 0 && core_is_queue_thread())
		frame_guard_watch(got);
	if (got >= 0 || !core_is_queue_thread() || !mu_accept_backoff(errno, "rpc"))
		return got;
	accept_later(fd);
	errno = EAGAIN;
	return -1;
}

void core_link_accept(void)
{
}
