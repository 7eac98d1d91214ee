/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/net/listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/err.h"

/* Returns a socket, or -1 with errno. */
static int listen_at(const struct addrinfo *a, bool reuse, int *bound_port)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, off = 0;
	struct sockaddr_storage addr;
	socklen_t len = sizeof addr;

	if (fd < 0)
		return -1;
	if (reuse) /* connections of the previous process may be in TIME_WAIT */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (a->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, 64) ||
	    getsockname(fd, (struct sockaddr *)&addr, &len)) {
		int errnum = errno;

		close(fd);
		errno = errnum;
		return -1;
	}
	*bound_port = ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
						       : ((struct sockaddr_in *)&addr)->sin_port);
	return fd;
}

int mu_listen_tcp(const char *host, int port, int *bound_port, struct mu_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	char service[8];
	int fd = -1, errnum = 0;

	snprintf(service, sizeof service, "%d", port);
	int gai_error = getaddrinfo(host, service, &hints, &list);
	if (gai_error)
		return mu_fail(err, MU_FAILED_PRECONDITION, "%s: %s", host,
			       gai_strerror(gai_error));
	/* If the port is in use at one address of the host, it must not be used at another address.
	 */
	for (const struct addrinfo *a = list; a && fd < 0 && errnum != EADDRINUSE; a = a->ai_next) {
		fd = listen_at(a, port != 0, bound_port);
		errnum = errno;
	}
	freeaddrinfo(list);
	if (fd >= 0)
		return fd;
	return errnum == EADDRINUSE ? mu_fail(err, MU_FAILED_PRECONDITION,
					      "port %d on %s is already in use", port, host)
				    : mu_fail_errno(err, errnum, "%s:%d", host, port);
}
