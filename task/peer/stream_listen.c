/* SPDX-License-Identifier: Apache-2.0 */
#include "task/peer/stream_listen.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "lib/base/random.h"

int stream_listen_local(struct stream_offer *o, struct mu_err *err)
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

int stream_listen_tcp(struct stream_offer *o, const char *host, int port)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	struct sockaddr_storage got;
	socklen_t len = sizeof(got);
	char service[8];
	int fd, one = 1;

	snprintf(service, sizeof(service), "%d", port);
	if (getaddrinfo(host, service, &hints, &list))
		return -1;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && port) /* connections of the previous process may be in TIME_WAIT */
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd >= 0 && !bind(fd, list->ai_addr, list->ai_addrlen) && !listen(fd, 64) &&
	    !getsockname(fd, (struct sockaddr *)&got, &len)) {
		o->port = ntohs(got.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&got)->sin6_port
							  : ((struct sockaddr_in *)&got)->sin_port);
	} else {
		mu_warn("stream", "no streams from other machines: %s:%d: %s", host, port,
			strerror(errno));
		if (fd >= 0)
			close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}
