/* SPDX-License-Identifier: Apache-2.0 */
/* muster status: GET /status from a task server's HTTP port.
 *
 * All of it, from connecting to the last byte, has one time limit: a server that gives a byte now
 * and then would never be late if each wait had its own.  What a name stands for is the resolver's
 * to find, within limits of its own. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/base/buf.h"
#include "lib/base/clock.h"

enum { WAIT_SECONDS = 5, REPLY_MAX = 4 << 20, PIECE = 65536 };

/* Whether it can be written or read before the time is over. */
static bool wait_for(int fd, short events, int64_t until_ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int64_t left;
	int n = -1;

	while (n < 0 && (left = until_ms - mu_clock_ms()) > 0) {
		n = poll(&p, 1, (int)left);
		if (n < 0 && errno != EINTR)
			return false;
	}
	if (n <= 0)
		errno = ETIMEDOUT;
	return n > 0;
}

static int connect_to(const struct addrinfo *a, int64_t until_ms)
{
	int fd =
	    socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol);
	int failed = 0;
	socklen_t len = sizeof(failed);

	if (fd < 0)
		return -errno;
	if (connect(fd, a->ai_addr, a->ai_addrlen) == 0)
		return fd;
	if (errno != EINPROGRESS || !wait_for(fd, POLLOUT, until_ms))
		failed = errno;
	else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len))
		failed = errno;
	if (!failed)
		return fd;
	close(fd);
	return -failed;
}

static int dial(const char *host, const char *port, int64_t until_ms, struct mu_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	int fd = -EADDRNOTAVAIL, rc = getaddrinfo(host, port, &hints, &found);

	if (rc)
		return mu_fail(err, MU_NOT_FOUND, "%s: %s", host, gai_strerror(rc));
	for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next)
		fd = connect_to(a, until_ms);
	freeaddrinfo(found);
	return fd >= 0 ? fd : mu_fail_errno(err, -fd, "connect to %s:%s", host, port);
}

static int get(int fd, const char *host, int64_t until_ms, struct mu_buf *reply, struct mu_err *err)
{
	MU_AUTO_BUF request = {0};
	ssize_t n;

	/* so short that a new connection takes it whole */
	mu_buf_printf(&request, "GET /status HTTP/1.0\r\nHost: %s\r\n\r\n", host);
	if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
		return mu_fail_errno(err, errno, "send to %s", host);
	do {
		if (!wait_for(fd, POLLIN, until_ms))
			return mu_fail(err, MU_DEADLINE_EXCEEDED,
				       reply->len ? "%s did not end its answer within %d s"
						  : "%s did not answer within %d s",
				       host, WAIT_SECONDS);
		mu_buf_reserve(reply, PIECE);
		n = recv(fd, reply->data + reply->len, PIECE, 0);
		if (n > 0)
			reply->len += (size_t)n;
	} while (n > 0 && reply->len < REPLY_MAX);
	if (n < 0)
		return mu_fail_errno(err, errno, "%s does not answer", host);
	mu_buf_putc(reply, 0);
	return 0;
}

static int print(const char *reply, const char *host, struct mu_err *err)
{
	const char *body = strstr(reply, "\r\n\r\n");
	unsigned code;

	if (!body || sscanf(reply, "HTTP/%*u.%*u %u", &code) != 1)
		return mu_fail(err, MU_INTERNAL,
			       "%s does not speak HTTP: is this the task's HTTP port?", host);
	if (code != 200)
		return mu_fail(err, MU_UNAVAILABLE, "%s answers %u: %s", host, code, body + 4);
	puts(body + 4);
	return 0;
}

int cli_status(int argc, char **argv)
{
	MU_AUTO_BUF reply = {0};
	MU_AUTO_FREE char *host = NULL;
	struct mu_err err;
	const char *at, *colon;
	int64_t until_ms;
	int fd, rc;

	if (argc != 1)
		return cli_usage("status", "expected HOST:PORT of a task's HTTP port");
	at = strncmp(argv[0], "http://", 7) == 0 ? argv[0] + 7 : argv[0];
	colon = strrchr(at, ':');
	if (!colon)
		return cli_usage("status", "'%s' has no port", argv[0]);
	host = mu_xstrndup(at, (size_t)(colon - at));
	MU_AUTO_FREE char *port = mu_xstrndup(colon + 1, strcspn(colon + 1, "/"));

	until_ms = mu_clock_ms() + WAIT_SECONDS * 1000;
	fd = dial(host, port, until_ms, &err);
	if (fd < 0)
		return cli_fail(&err);
	rc = get(fd, host, until_ms, &reply, &err);
	close(fd);
	if (!rc)
		rc = print(reply.data, host, &err);
	return rc ? cli_fail(&err) : CLI_OK;
}
