/* SPDX-License-Identifier: Apache-2.0 */
/* A name may stand for several addresses of this machine ("localhost" for 127.0.0.1 and ::1): all
 * of them are listened on, with one port; one that this machine does not have is left out as long
 * as another is there. */
#include "task/rpc/bind.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/mem.h"

enum { BACKLOG = 1024 };

/* The port in "host:port" must be a number: what follows it is not for us to guess. */
static bool well_formed(const char *address)
{
	const char *colon = strrchr(address, ':');

	if (!strncmp(address, "unix:", 5))
		return address[5] != 0;
	return colon && colon != address && colon[1] && strlen(colon + 1) <= 5 &&
	       strspn(colon + 1, "0123456789") == strlen(colon + 1) && atoi(colon + 1) <= 65535;
}

/* A socket's name may be left over from a server that is gone; one that still answers is taken. */
static bool is_left_over(const struct sockaddr_un *a)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct stat st;
	bool dead;

	if (fd < 0)
		return false;
	dead = lstat(a->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	       connect(fd, (const struct sockaddr *)a, sizeof(*a)) && errno == ECONNREFUSED;
	close(fd);
	return dead;
}

static int listen_unix(const char *path, int *out, struct mu_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd, e;

	if (strlen(path) >= sizeof(a.sun_path))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "cannot listen on unix:%.200s: a socket's path has at most %zu bytes", path,
		    sizeof(a.sun_path) - 1);
	strcpy(a.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0 && is_left_over(&a))
		unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, BACKLOG)) {
		e = errno;
		if (fd >= 0)
			close(fd);
		return mu_fail_errno(err, e, "cannot listen on unix:%s", path);
	}
	*out = fd;
	return 1;
}

static void set_port(struct addrinfo *ai, int port)
{
	if (ai->ai_family == AF_INET6)
		((struct sockaddr_in6 *)ai->ai_addr)->sin6_port = htons((uint16_t)port);
	else
		((struct sockaddr_in *)ai->ai_addr)->sin_port = htons((uint16_t)port);
}

static int port_of(int fd)
{
	struct sockaddr_storage got;
	socklen_t len = sizeof(got);

	if (getsockname(fd, (struct sockaddr *)&got, &len))
		return 0;
	return ntohs(got.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&got)->sin6_port
					       : ((struct sockaddr_in *)&got)->sin_port);
}

/* A listening socket, or -1 with errno. */
static int listen_one(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), one = 1, e;

	if (fd < 0)
		return -1;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (ai->ai_family == AF_INET6 &&
	    !IN6_IS_ADDR_UNSPECIFIED(&((struct sockaddr_in6 *)ai->ai_addr)->sin6_addr))
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, BACKLOG)) {
		e = errno;
		close(fd);
		errno = e;
		return -1;
	}
	return fd;
}

static int complain(const char *address, const char *host, int e, struct mu_err *err)
{
	if (e == EADDRINUSE)
		return mu_fail(err, MU_ALREADY_EXISTS, "port %s on %s is already in use",
			       strrchr(address, ':') + 1, host);
	if (e == EADDRNOTAVAIL)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "%s is no address of this machine: name one to listen on with --bind", host);
	return mu_fail_errno(err, e ? e : EIO, "cannot listen on %s", address);
}

/* All addresses of the list; 0 or what errno said of the one that failed. */
static int listen_all(struct addrinfo *list, int *fds, int *n, int *port)
{
	int missing = 0;

	for (struct addrinfo *ai = list; ai && *n < BIND_MOST; ai = ai->ai_next) {
		int fd;

		if (ai->ai_family != AF_INET && ai->ai_family != AF_INET6)
			continue;
		if (*n > 0)
			set_port(ai, *port);
		fd = listen_one(ai);
		if (fd < 0 && (errno == EADDRNOTAVAIL || errno == EAFNOSUPPORT)) {
			missing = errno;
			continue;
		}
		if (fd < 0)
			return errno;
		fds[(*n)++] = fd;
		*port = port_of(fd);
	}
	return *n ? 0 : missing ? missing : EADDRNOTAVAIL;
}

int bind_listen(const char *address, int fds[BIND_MOST], int *port, struct mu_err *err)
{
	const char *colon = strrchr(address, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	MU_AUTO_FREE char *host = NULL;
	int n = 0, got = 0, bad;

	if (!well_formed(address))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%s' is no address to listen on: host:port or unix:path is meant",
			       address);
	if (!strncmp(address, "unix:", 5)) {
		*port = 0;
		return listen_unix(address + 5, fds, err);
	}
	host = address[0] == '[' && colon[-1] == ']'
		   ? mu_xstrndup(address + 1, (size_t)(colon - address - 2))
		   : mu_xstrndup(address, (size_t)(colon - address));
	bad = getaddrinfo(host, colon + 1, &hints, &list);
	if (bad)
		return mu_fail(err, MU_INVALID_ARGUMENT, "cannot listen on %s: %s: %s", address,
			       host, gai_strerror(bad));
	bad = listen_all(list, fds, &n, &got);
	freeaddrinfo(list);
	if (bad) {
		while (n > 0)
			close(fds[--n]);
		return complain(address, host, bad, err);
	}
	*port = got;
	return n;
}
