/* SPDX-License-Identifier: Apache-2.0 */
/* Listening addresses.
 *
 * gRPC does not report the reason of a failure.  Therefore this file tries the same bind first, so
 * that the error names the port and the reason. */
#include "task/rpc/bind.h"

#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib/base/mem.h"

/* The port in "host:port" must be a number without trailing characters. */
static bool is_well_formed(const char *address)
{
	const char *colon = strrchr(address, ':');

	if (!strncmp(address, "unix:", 5))
		return address[5] != 0;
	return colon && colon != address && colon[1] && strlen(colon + 1) <= 5 &&
	       strspn(colon + 1, "0123456789") == strlen(colon + 1) && atoi(colon + 1) <= 65535;
}

/* Fails if a server listens on the socket.  gRPC removes an existing socket file before it binds,
 * which is right only if its server has ended. */
static int check_unix(const char *path, struct mu_err *err)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	struct stat st;
	bool is_in_use;
	int fd;

	if (strlen(path) >= sizeof(a.sun_path))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "cannot listen on unix:%.200s: the path of a socket has at most %zu bytes",
		    path, sizeof(a.sun_path) - 1);
	strcpy(a.sun_path, path);
	/* connect() to a listener whose backlog is full would wait; so it fails with EAGAIN */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return mu_fail_errno(err, errno, "cannot listen on unix:%s", path);
	is_in_use = lstat(path, &st) == 0 &&
		    (!S_ISSOCK(st.st_mode) ||
		     !connect(fd, (const struct sockaddr *)&a, sizeof(a)) || errno != ECONNREFUSED);
	close(fd);
	return is_in_use ? mu_fail_errno(err, EADDRINUSE, "cannot listen on unix:%s", path) : 0;
}

static int explain_errno(const char *address, const char *host, int e, struct mu_err *err)
{
	if (e == EADDRINUSE)
		return mu_fail(err, MU_ALREADY_EXISTS, "port %s on %s is already in use",
			       strrchr(address, ':') + 1, host);
	if (e == EADDRNOTAVAIL)
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "%s is not an address of this machine: give a local address with --bind", host);
	return mu_fail_errno(err, e ? e : EIO, "cannot listen on %s", address);
}

/* Returns the errno of a bind to this address, or 0. */
static int try_bind(const struct addrinfo *ai)
{
	int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC, 0), one = 1, e = 0;

	if (fd < 0)
		return errno;
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
		e = errno;
	close(fd);
	return e;
}

/* Fails if an address of the name is in use or none is usable.  gRPC listens on the available
 * addresses and does not report the others. */
static int check_tcp(const char *address, struct mu_err *err)
{
	const char *colon = strrchr(address, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	MU_AUTO_FREE char *host = NULL;
	int e = 0, first_errno = 0, n_usable = 0, gai_rc;

	host = address[0] == '[' && colon[-1] == ']'
		   ? mu_xstrndup(address + 1, (size_t)(colon - address - 2))
		   : mu_xstrndup(address, (size_t)(colon - address));
	gai_rc = getaddrinfo(host, colon + 1, &hints, &list);
	if (gai_rc)
		return mu_fail(err, MU_INVALID_ARGUMENT, "cannot listen on %s: %s: %s", address,
			       host, gai_strerror(gai_rc));
	for (struct addrinfo *ai = list; ai && e != EADDRINUSE; ai = ai->ai_next) {
		e = try_bind(ai);
		n_usable += e == 0;
		first_errno = first_errno ? first_errno : e;
	}
	freeaddrinfo(list);
	if (e != EADDRINUSE && n_usable)
		return 0;
	return explain_errno(address, host, e == EADDRINUSE ? e : first_errno, err);
}

int bind_listen(grpc_server *server, const char *address, grpc_server_credentials *creds, int *port,
		struct mu_err *err)
{
	bool local = !strncmp(address, "unix:", 5);
	int bound_port, rc;

	if (!is_well_formed(address))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%s' is not a listen address: expected host:port or unix:path",
			       address);
	rc = local ? check_unix(address + 5, err) : check_tcp(address, err);
	if (rc)
		return rc;
	bound_port = grpc_server_add_http2_port(server, address, creds);
	if (bound_port == 0)
		return mu_fail(err, MU_FAILED_PRECONDITION, "cannot listen on %s", address);
	*port = local ? 0 : bound_port;
	return 0;
}
