/* SPDX-License-Identifier: Apache-2.0 */
#include "task/rpc/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/mem.h"
#include "task/rpc/channel.h"
#include "task/rpc/h2/socket.h"

enum { STACK = 256 << 10 };

struct dial {
	dial_done done;
	void *arg;
	char target[];
};

void dial_host(const char *target, char *host, size_t size)
{
	const char *colon = strrchr(target, ':');
	size_t n = colon ? (size_t)(colon - target) : strlen(target);

	if (!strncmp(target, "unix:", 5)) {
		snprintf(host, size, "localhost");
		return;
	}
	if (n >= 2 && target[0] == '[' && target[n - 1] == ']') {
		target++;
		n -= 2;
	}
	snprintf(host, size, "%.*s", (int)n, target);
}

/* 0, or errno. */
static int wait_connected(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	socklen_t len = sizeof(int);
	int n, e = 0;

	do
		n = poll(&p, 1, RPC_CONNECT_TIMEOUT_MS);
	while (n < 0 && errno == EINTR);
	if (n == 0)
		return ETIMEDOUT;
	if (n < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &e, &len))
		return errno;
	return e;
}

/* A descriptor, or -errno. */
static int connect_one(int family, const struct sockaddr *a, socklen_t len)
{
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), e = 0;

	if (fd < 0)
		return -errno;
	h2_socket_tune(fd);
	if (connect(fd, a, len))
		e = errno == EINPROGRESS ? wait_connected(fd) : errno;
	if (!e)
		return fd;
	close(fd);
	return -e;
}

static int dial_unix(const char *path, struct mu_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd;

	if (strlen(path) >= sizeof(a.sun_path))
		return mu_fail(err, MU_UNAVAILABLE, "a socket's path has at most %zu bytes",
			       sizeof(a.sun_path) - 1);
	strcpy(a.sun_path, path);
	fd = connect_one(AF_UNIX, (const struct sockaddr *)&a, sizeof(a));
	if (fd < 0)
		mu_fail(err, MU_UNAVAILABLE, "%s", strerror(-fd));
	return fd;
}

static int dial_tcp(const char *target, struct mu_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list;
	char host[NI_MAXHOST];
	int bad, fd = -EADDRNOTAVAIL;

	dial_host(target, host, sizeof(host));
	bad = getaddrinfo(host, strrchr(target, ':') + 1, &hints, &list);
	if (bad)
		return mu_fail(err, MU_UNAVAILABLE, "%s",
			       bad == EAI_SYSTEM ? strerror(errno) : gai_strerror(bad));
	for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
		fd = connect_one(a->ai_family, a->ai_addr, a->ai_addrlen);
	freeaddrinfo(list);
	if (fd < 0)
		mu_fail(err, MU_UNAVAILABLE, "%s", strerror(-fd));
	return fd;
}

static void *run(void *arg)
{
	struct dial *d = arg;
	bool local = !strncmp(d->target, "unix:", 5);
	struct mu_err err;
	int fd = local ? dial_unix(d->target + 5, &err) : dial_tcp(d->target, &err);

	if (fd < 0)
		mu_wrap(&err, "cannot connect to %s", d->target);
	d->done(d->arg, fd, fd < 0 ? &err : NULL);
	free(d);
	return NULL;
}

int dial_start(const char *target, dial_done done, void *arg, struct mu_err *err)
{
	size_t n = strlen(target) + 1;
	struct dial *d = mu_xmalloc(sizeof(*d) + n);
	pthread_attr_t attr;
	pthread_t thread;
	int bad;

	d->done = done;
	d->arg = arg;
	memcpy(d->target, target, n);
	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK);
	bad = pthread_create(&thread, &attr, run, d);
	pthread_attr_destroy(&attr);
	if (!bad)
		return 0;
	free(d);
	return mu_fail(err, MU_UNAVAILABLE, "cannot connect to %s: no thread could be started: %s",
		       target, strerror(bad));
}
