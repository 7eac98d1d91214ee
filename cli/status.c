/* SPDX-License-Identifier: Apache-2.0 */
/* muster status: GET /status from a task server's HTTP port. */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "cli/cli.h"
#include "lib/base/buf.h"

enum { WAIT_SECONDS = 5, REPLY_MAX = 4 << 20 };

static int dial(const char *host, const char *port, struct mu_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
	struct timeval wait = {.tv_sec = WAIT_SECONDS};
	int fd = -1, failed = 0, rc = getaddrinfo(host, port, &hints, &found);

	if (rc)
		return mu_fail(err, MU_NOT_FOUND, "%s: %s", host, gai_strerror(rc));
	for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
		if (connect(fd, a->ai_addr, a->ai_addrlen)) {
			failed = errno;
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(found);
	return fd >= 0 ? fd : mu_fail_errno(err, failed, "connect to %s:%s", host, port);
}

static int get(int fd, const char *host, struct mu_buf *reply, struct mu_err *err)
{
	MU_AUTO_BUF request = {0};
	ssize_t n;

	mu_buf_printf(&request, "GET /status HTTP/1.0\r\nHost: %s\r\n\r\n", host);
	if (send(fd, request.data, request.len, MSG_NOSIGNAL) != (ssize_t)request.len)
		return mu_fail_errno(err, errno, "send to %s", host);
	do {
		mu_buf_reserve(reply, 65536);
		n = recv(fd, reply->data + reply->len, 65536, 0);
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
	int fd, rc;

	if (argc != 1)
		return cli_usage("status", "expected HOST:PORT of a task's HTTP port");
	at = strncmp(argv[0], "http://", 7) == 0 ? argv[0] + 7 : argv[0];
	colon = strrchr(at, ':');
	if (!colon)
		return cli_usage("status", "'%s' has no port", argv[0]);
	host = mu_xstrndup(at, (size_t)(colon - at));
	MU_AUTO_FREE char *port = mu_xstrndup(colon + 1, strcspn(colon + 1, "/"));

	fd = dial(host, port, &err);
	if (fd < 0)
		return cli_fail(&err);
	rc = get(fd, host, &reply, &err);
	close(fd);
	if (!rc)
		rc = print(reply.data, host, &err);
	return rc ? cli_fail(&err) : CLI_OK;
}
