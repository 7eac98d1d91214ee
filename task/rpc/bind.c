/* SPDX-License-Identifier: Apache-2.0 */
/* gRPC says only that a listener could not be had.  When it does, the same bind is tried by hand to
 * learn why, so that the user reads one line with the port in it. */
#include "task/rpc/bind.h"

#include <errno.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

static int why(const struct addrinfo *ai)
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

static int explain(const char *address, struct mu_err *err)
{
	const char *colon = strrchr(address, ':');
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	MU_AUTO_FREE char *host = NULL;
	int e = 0, bad;

	if (!strncmp(address, "unix:", 5) || !colon)
		return mu_fail(err, MU_FAILED_PRECONDITION, "cannot listen on %s", address);
	host = address[0] == '[' && colon[-1] == ']'
		   ? mu_xstrndup(address + 1, (size_t)(colon - address - 2))
		   : mu_xstrndup(address, (size_t)(colon - address));
	bad = getaddrinfo(host, colon + 1, &hints, &list);
	if (bad)
		return mu_fail(err, MU_FAILED_PRECONDITION, "cannot listen on %s: %s: %s", address,
			       host, gai_strerror(bad));
	for (struct addrinfo *ai = list; ai && !e; ai = ai->ai_next)
		e = why(ai);
	freeaddrinfo(list);
	if (e == EADDRINUSE)
		return mu_fail(err, MU_FAILED_PRECONDITION, "port %s on %s is already in use",
			       colon + 1, host);
	if (e == EADDRNOTAVAIL)
		return mu_fail(
		    err, MU_FAILED_PRECONDITION,
		    "%s is no address of this machine: name one to listen on with --bind", host);
	return mu_fail_errno(err, e ? e : EIO, "cannot listen on %s", address);
}

/* The port in "host:port" must be a number: gRPC would take the part before a letter. */
static bool well_formed(const char *address)
{
	const char *colon = strrchr(address, ':');

	if (!strncmp(address, "unix:", 5))
		return address[5] != 0;
	return colon && colon != address && colon[1] && strlen(colon + 1) <= 5 &&
	       strspn(colon + 1, "0123456789") == strlen(colon + 1) && atoi(colon + 1) <= 65535;
}

int bind_listen(grpc_server *server, const char *address, int *port, struct mu_err *err)
{
	grpc_server_credentials *creds;
	int got;

	if (!well_formed(address))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "'%s' is no address to listen on: host:port or unix:path is meant",
			       address);
	creds = grpc_insecure_server_credentials_create();
	got = grpc_server_add_http2_port(server, address, creds);
	grpc_server_credentials_release(creds);
	if (got == 0)
		return explain(address, err);
	*port = strncmp(address, "unix:", 5) ? got : 0;
	return 0;
}
