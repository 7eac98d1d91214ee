/* SPDX-License-Identifier: Apache-2.0 */
/* One thread polls the listener and libmicrohttpd's epoll descriptor.  This file owns the
 * listener for two reasons.  The library spins if accept() fails for lack of descriptors, and it
 * rejects new connections while idle ones reach the limit.  Here a new connection closes the oldest
 * connection, so that probes always receive a reply. */
#include "lib/net/http_server.h"

#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "lib/net/accept_backoff.h"
#include "lib/net/listen.h"

enum { MAX_CONNECTIONS = 32, CONNECTION_TIMEOUT_MS = 5000, CONNECTION_MEMORY = 16 << 10 };
enum { MAX_BODY = 256 << 10 }; /* bytes; twice the size of a cluster spec with a thousand tasks */

struct mu_http_server {
	int listener, stop_event, epoll;
	int64_t accept_paused_until_ms;
	mu_http_handler handler;
	void *ctx;
	pthread_t thread;
	struct MHD_Daemon *daemon;
	struct open_connection {
		int fd;
		int64_t deadline_ms;
	} open[2 * MAX_CONNECTIONS]; /* oldest first; includes connections that are shut down
				      * but not yet closed by the library */
	unsigned open_count;
};

struct request_body {
	struct mu_buf data;
	bool too_large;
};

static enum MHD_Result send_answer(struct MHD_Connection *c, struct mu_http_answer *a)
{
	struct MHD_Response *r =
	    MHD_create_response_from_buffer(a->body.len, a->body.data, MHD_RESPMEM_MUST_COPY);
	enum MHD_Result sent = MHD_NO;

	if (r) {
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->type);
		MHD_add_response_header(r, MHD_HTTP_HEADER_CONNECTION, "close");
		if (a->status == MHD_HTTP_UNAUTHORIZED)
			MHD_add_response_header(r, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
		sent = MHD_queue_response(c, (unsigned)a->status, r);
		MHD_destroy_response(r);
	}
	mu_buf_fini(&a->body);
	return sent;
}

static bool is_loopback(struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(c, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
	const struct sockaddr *a = info ? info->client_addr : NULL;
	const struct in6_addr *ipv6;

	if (a && a->sa_family == AF_INET)
		return ntohl(((const struct sockaddr_in *)a)->sin_addr.s_addr) >> 24 == 127;
	if (!a || a->sa_family != AF_INET6)
		return false;
	ipv6 = &((const struct sockaddr_in6 *)a)->sin6_addr;
	return IN6_IS_ADDR_LOOPBACK(ipv6) ||
	       (IN6_IS_ADDR_V4MAPPED(ipv6) && ipv6->s6_addr[12] == 127);
}

/* The library calls this once for the header, then for each piece of the body, then at the end. */
static enum MHD_Result on_request(void *server, struct MHD_Connection *c, const char *path,
				  const char *method, const char *version, const char *piece,
				  size_t *piece_len, void **state)
{
	struct mu_http_server *h = server;
	struct request_body *body = *state;
	struct mu_http_answer a = {.status = 400, .type = "text/plain"};

	if (!body) {
		*state = MU_NEW(struct request_body);
		return MHD_YES;
	}
	if (*piece_len) {
		body->too_large |= *piece_len > MAX_BODY - body->data.len;
		if (!body->too_large)
			mu_buf_put(&body->data, piece, *piece_len);
		*piece_len = 0;
		return MHD_YES;
	}
	if (body->too_large) {
		a.status = MHD_HTTP_CONTENT_TOO_LARGE;
		mu_buf_printf(&a.body, "a request body may have at most %d bytes\n", MAX_BODY);
	} else {
		struct mu_http_request rq = {
		    .method = method,
		    .path = path,
		    .authorization = MHD_lookup_connection_value(c, MHD_HEADER_KIND,
								 MHD_HTTP_HEADER_AUTHORIZATION),
		    .loopback = is_loopback(c),
		    .body = {body->data.data ? body->data.data : "", body->data.len}};
		h->handler(h->ctx, &rq, &a);
	}
	return send_answer(c, &a);
}

static void on_completed(void *server, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode termination)
{
	struct request_body *body = *state;

	if (!body)
		return;
	mu_buf_fini(&body->data);
	free(body);
	*state = NULL;
}

static void on_connection(void *server, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode notification)
{
	struct mu_http_server *h = server;
	const union MHD_ConnectionInfo *info =
	    MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
	unsigned i = 0;

	if (notification == MHD_CONNECTION_NOTIFY_STARTED) {
		h->open[h->open_count++] = (struct open_connection){
		    info->connect_fd, mu_clock_ms() + CONNECTION_TIMEOUT_MS};
		return;
	}
	while (i < h->open_count && h->open[i].fd != info->connect_fd)
		i++;
	if (i < h->open_count)
		memmove(&h->open[i], &h->open[i + 1], (--h->open_count - i) * sizeof(h->open[0]));
}

/* Shuts down connections past their deadline, and the oldest ones if there are MAX_CONNECTIONS. The
 * library reads the end of the stream and frees them. */
static void shut_down_expired(struct mu_http_server *h, int64_t now)
{
	for (unsigned i = 0; i < h->open_count; i++)
		if (now > h->open[i].deadline_ms || h->open_count - i >= MAX_CONNECTIONS)
			shutdown(h->open[i].fd, SHUT_RDWR);
}

static void accept_one(struct mu_http_server *h, int64_t now)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	int fd = accept4(h->listener, (struct sockaddr *)&addr, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		MHD_add_connection(h->daemon, fd, (struct sockaddr *)&addr, len);
	else if (mu_accept_backoff(errno, "http"))
		h->accept_paused_until_ms = now + ACCEPT_BACKOFF_MS;
}

static int poll_timeout_ms(struct mu_http_server *h, bool paused)
{
	MHD_UNSIGNED_LONG_LONG library_ms;
	int ms = paused ? ACCEPT_BACKOFF_MS : h->open_count ? 1000 : -1;

	if (MHD_get_timeout(h->daemon, &library_ms) == MHD_YES &&
	    (ms < 0 || library_ms < (unsigned)ms))
		ms = (int)(library_ms < 1000 ? library_ms : 1000);
	return ms;
}

static void *http_serve(void *arg)
{
	struct mu_http_server *h = arg;

	for (;;) {
		bool paused = mu_clock_ms() < h->accept_paused_until_ms;
		struct pollfd p[] = {{h->stop_event, POLLIN, 0},
				     {h->epoll, POLLIN, 0},
				     {paused ? -1 : h->listener, POLLIN, 0}};
		int64_t now;

		if (poll(p, MU_COUNT(p), poll_timeout_ms(h, paused)) < 0 && errno != EINTR)
			usleep(ACCEPT_BACKOFF_MS * 1000); /* ENOMEM */
		if (p[0].revents)
			return NULL;
		now = mu_clock_ms();
		shut_down_expired(h, now);
		MHD_run(h->daemon);
		if (p[2].revents)
			accept_one(h, now);
	}
}

static void server_free(struct mu_http_server *h)
{
	if (h->daemon)
		MHD_stop_daemon(h->daemon);
	if (h->stop_event >= 0)
		close(h->stop_event);
	close(h->listener);
	free(h);
}

int mu_http_start(const char *host, int port, mu_http_handler handler, void *ctx,
		  struct mu_http_server **out, int *got_port, struct mu_err *err)
{
	struct mu_http_server *h;
	int bound_port = 0, fd = mu_listen_tcp(host, port, &bound_port, err);

	if (fd < 0)
		return mu_wrap(err, "HTTP");
	h = MU_NEW(struct mu_http_server);
	h->listener = fd;
	h->handler = handler;
	h->ctx = ctx;
	h->stop_event = eventfd(0, EFD_CLOEXEC);
	h->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET, 0, NULL, NULL, on_request, h,
	    MHD_OPTION_CONNECTION_LIMIT, 2u * MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
	    (size_t)CONNECTION_MEMORY, MHD_OPTION_NOTIFY_COMPLETED, on_completed, h,
	    MHD_OPTION_NOTIFY_CONNECTION, on_connection, h, MHD_OPTION_END);
	if (h->daemon)
		h->epoll = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
	if (h->stop_event < 0 || !h->daemon || pthread_create(&h->thread, NULL, http_serve, h)) {
		server_free(h);
		return mu_fail(
		    err, MU_RESOURCE_EXHAUSTED,
		    "cannot start the HTTP server: no descriptor, memory or thread is available");
	}
	*out = h;
	*got_port = bound_port;
	return 0;
}

void mu_http_stop(struct mu_http_server *h)
{
	if (!h)
		return;
	if (eventfd_write(h->stop_event, 1) == 0)
		pthread_join(h->thread, NULL);
	server_free(h);
}
