/* SPDX-License-Identifier: Apache-2.0 */
/* A connection is READING until its request is whole, head and body, then WRITING until its answer
 * is out. */
#include "lib/base/http.h"
#include "lib/base/clock.h"
#include "lib/base/starved.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 32, MAX_HEAD = 8192, PATIENCE_MS = 5000 };
enum { MAX_BODY = 256 << 10 }; /* the cluster of a job of a thousand tasks, twice */

struct connection {
	int fd; /* -1: free */
	int64_t until;
	bool writing;
	size_t sent;
	struct mu_buf in, out;
};
struct mu_http_server {
	int fd, wake[2];
	int64_t deaf_until; /* no descriptors were left: who waits to be taken in waits on */
	mu_http_handler handler;
	void *ctx;
	pthread_t thread;
	struct connection list[MAX_CONNECTIONS];
};

static const char *reason(int status)
{
	switch (status) {
	case 200:
		return "OK";
	case 202:
		return "Accepted";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 409:
		return "Conflict";
	case 413:
		return "Content Too Large";
	case 503:
		return "Service Unavailable";
	default:
		return "Bad Request";
	}
}

static void hang_up(struct connection *c)
{
	close(c->fd);
	c->fd = -1;
	mu_buf_fini(&c->in);
	mu_buf_fini(&c->out);
}

/* 0: it is not whole yet. */
static size_t head_size(const char *text)
{
	const char *crlf = strstr(text, "\r\n\r\n"), *lf = strstr(text, "\n\n");

	if (crlf && (!lf || crlf < lf))
		return (size_t)(crlf - text) + 4;
	return lf ? (size_t)(lf - text) + 2 : 0;
}

/* What the head says, SIZE_MAX when that is no length. */
static size_t body_size(const char *head, size_t len)
{
	static const char name[] = "Content-Length:";
	const char *end = head + len;

	for (const char *line = head; line < end; line = strchr(line, '\n') + 1) {
		if (strncasecmp(line, name, sizeof(name) - 1) != 0)
			continue;
		line += sizeof(name) - 1;
		line += strspn(line, " \t");
		return *line >= '0' && *line <= '9' ? strtoul(line, NULL, 10) : SIZE_MAX;
	}
	return 0;
}

static void answer(const char *head, struct mu_span body, mu_http_handler handler, void *ctx,
		   struct mu_buf *out)
{
	struct mu_http_answer a = {.status = 400, .type = "text/plain"};
	char method[8], path[256];
	int end = 0; /* 0 unless all of the line was as it has to be */

	if (body.len > MAX_BODY) {
		a.status = 413;
		mu_buf_printf(&a.body, "a body has %d bytes at most\n", MAX_BODY);
	} else if (sscanf(head, "%7s %255s HTTP/1.%n", method, path, &end) == 2 && end) {
		path[strcspn(path, "?")] = 0;
		handler(ctx,
			&(struct mu_http_request){.method = method, .path = path, .body = body},
			&a);
	} else {
		mu_buf_puts(&a.body, "no HTTP request\n");
	}
	mu_buf_printf(out,
		      "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
		      "Connection: close\r\n\r\n",
		      a.status, reason(a.status), a.type, a.body.len);
	mu_buf_put(out, a.body.data, a.body.len);
	mu_buf_fini(&a.body);
}

bool mu_http_reply(const struct mu_buf *in, mu_http_handler handler, void *ctx, struct mu_buf *out)
{
	const char *text = in->len ? in->data : "";
	size_t head = head_size(text), body = head ? body_size(text, head) : 0;

	if (!head || (body <= MAX_BODY && in->len - head < body))
		return false;
	answer(text, (struct mu_span){text + head, body}, handler, ctx, out);
	return true;
}

static void write_some(struct connection *c)
{
	ssize_t n = send(c->fd, c->out.data + c->sent, c->out.len - c->sent, MSG_NOSIGNAL);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n > 0)
		c->sent += (size_t)n;
	if (n < 0 || c->sent == c->out.len)
		hang_up(c);
}

static void read_some(struct mu_http_server *h, struct connection *c)
{
	char piece[MAX_HEAD];
	ssize_t n = recv(c->fd, piece, sizeof(piece), 0);

	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0) {
		hang_up(c);
		return;
	}
	mu_buf_put(&c->in, piece, (size_t)n);
	c->writing = mu_http_reply(&c->in, h->handler, h->ctx, &c->out);
	/* At once: the answer to what ends this server goes out before the server ends. */
	if (c->writing)
		write_some(c);
	else if (c->in.len > MAX_HEAD && !head_size(c->in.data))
		hang_up(c);
}

/* A place that is free, or else that of who has had one for longest: strangers who say nothing must
 * not keep a probe out, which says at once what it wants. */
static struct connection *place(struct mu_http_server *h)
{
	struct connection *oldest = h->list;

	for (int i = 0; i < MAX_CONNECTIONS; i++) {
		if (h->list[i].fd < 0)
			return &h->list[i];
		if (h->list[i].until < oldest->until)
			oldest = &h->list[i];
	}
	hang_up(oldest);
	return oldest;
}

static void take(struct mu_http_server *h, int64_t now)
{
	int fd = accept4(h->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		*place(h) = (struct connection){.fd = fd, .until = now + PATIENCE_MS};
	else if (mu_starved(errno, "http"))
		h->deaf_until = now + MU_STARVED_REST_MS;
}

static void *run(void *arg)
{
	struct mu_http_server *h = arg;

	for (;;) {
		bool any = false, deaf = mu_clock_ms() < h->deaf_until;
		struct pollfd p[MAX_CONNECTIONS + 2] = {{h->wake[0], POLLIN, 0},
							{deaf ? -1 : h->fd, POLLIN, 0}};
		int64_t now;

		for (int i = 0; i < MAX_CONNECTIONS; i++) {
			p[i + 2] = (struct pollfd){
			    h->list[i].fd, (short)(h->list[i].writing ? POLLOUT : POLLIN), 0};
			any |= h->list[i].fd >= 0;
		}
		if (poll(p, MU_COUNT(p),
			 deaf  ? MU_STARVED_REST_MS
			 : any ? 1000
			       : -1) < 0 &&
		    errno != EINTR)
			return NULL;
		if (p[0].revents)
			return NULL;
		now = mu_clock_ms();
		for (int i = 0; i < MAX_CONNECTIONS; i++) {
			struct connection *c = &h->list[i];

			if (c->fd < 0)
				continue;
			if (p[i + 2].revents && c->writing)
				write_some(c);
			else if (p[i + 2].revents)
				read_some(h, c);
			if (c->fd >= 0 && now > c->until)
				hang_up(c);
		}
		if (p[1].revents)
			take(h, now);
	}
}

static int listen_on(const char *host, int port, int *got, struct mu_err *err)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE}, *list;
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	char text[8];
	int fd, one = 1, off = 0, bad;

	snprintf(text, sizeof(text), "%d", port);
	bad = getaddrinfo(host, text, &hints, &list);
	if (bad)
		return mu_fail(err, MU_FAILED_PRECONDITION, "HTTP on %s: %s", host,
			       gai_strerror(bad));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (fd >= 0 && list->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	bad = fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) || listen(fd, 64) ||
	      getsockname(fd, (struct sockaddr *)&addr, &len);
	freeaddrinfo(list);
	if (bad) {
		int why = errno;

		if (fd >= 0)
			close(fd);
		if (why == EADDRINUSE)
			return mu_fail(err, MU_FAILED_PRECONDITION,
				       "port %d on %s is already in use (HTTP)", port, host);
		return mu_fail_errno(err, why, "HTTP on %s:%d", host, port);
	}
	*got = ntohs(addr.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&addr)->sin6_port
						: ((struct sockaddr_in *)&addr)->sin_port);
	return fd;
}

int mu_http_start(const char *host, int port, mu_http_handler handler, void *ctx,
		  struct mu_http_server **out, int *got_port, struct mu_err *err)
{
	struct mu_http_server *h;
	int got = 0, fd = listen_on(host, port, &got, err);

	if (fd < 0)
		return fd;
	h = MU_NEW(struct mu_http_server);
	h->fd = fd;
	h->handler = handler;
	h->ctx = ctx;
	for (int i = 0; i < MAX_CONNECTIONS; i++)
		h->list[i].fd = -1;
	if (pipe2(h->wake, O_CLOEXEC) || pthread_create(&h->thread, NULL, run, h)) {
		close(fd);
		free(h);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no thread for the HTTP server");
	}
	*out = h;
	*got_port = got;
	return 0;
}

void mu_http_stop(struct mu_http_server *h)
{
	if (!h)
		return;
	if (write(h->wake[1], "", 1) == 1)
		pthread_join(h->thread, NULL);
	for (int i = 0; i < MAX_CONNECTIONS; i++)
		if (h->list[i].fd >= 0)
			hang_up(&h->list[i]);
	close(h->wake[0]);
	close(h->wake[1]);
	close(h->fd);
	free(h);
}
