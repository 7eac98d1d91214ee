/* SPDX-License-Identifier: Apache-2.0 */
/* accept4 for the gRPC library, in place of libc's.
 *
 * gRPC 1.51 closes a listener for good when accept4 fails with EMFILE, ENFILE, ENOBUFS or ENOMEM, so
 * a task that once had no descriptor left would never accept a connection again.  On the threads of
 * the completion queue, accept4 closes a reserved descriptor then, accepts and closes the pending
 * connections, and reports EAGAIN: the client sees its connection closed and tries again later.
 * Other threads get libc's behaviour. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/base/starved.h"
#include "task/rpc/core.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int reserve = -1; /* under the lock */

static int plain_accept(int fd, struct sockaddr *addr, socklen_t *len, int flags)
{
	return (int)syscall(SYS_accept4, fd, addr, len, flags);
}

void core_accept_reserve(void)
{
	pthread_mutex_lock(&lock);
	if (reserve < 0)
		reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	pthread_mutex_unlock(&lock);
}

static void close_pending(int fd)
{
	int got = -1;

	pthread_mutex_lock(&lock);
	do {
		if (reserve >= 0)
			close(reserve);
		got = plain_accept(fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (got >= 0)
			close(got);
		reserve = open("/dev/null", O_RDONLY | O_CLOEXEC);
	} while (got >= 0);
	pthread_mutex_unlock(&lock);
}

__attribute__((visibility("default"))) int accept4(int fd, struct sockaddr *addr, socklen_t *len,
						   int flags)
{
	int got = plain_accept(fd, addr, len, flags);

	if (got >= 0 || !core_is_queue_thread() || !mu_starved(errno, "rpc"))
		return got;
	close_pending(fd);
	errno = EAGAIN;
	return -1;
}
