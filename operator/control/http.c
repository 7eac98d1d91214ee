/* SPDX-License-Identifier: Apache-2.0 */
/* Probes and metrics: a small HTTP server, one connection at a time, each closed after its answer.
 *
 *	/healthz  200 as long as the process answers
 *	/readyz   200 once every watch has delivered its first list
 *	/metrics  Prometheus' text form
 *
 * A peer has two seconds for its request line; whoever is slower is dropped.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/base/log.h"
#include "operator/control/control.h"

enum { PATIENCE_MS = 2000, TICK_MS = 500 };

struct probe_server {
	struct control *control;
	pthread_t thread;
	int fd;
	_Atomic bool stop;
};

static void metrics(struct control *c, struct mu_buf *out)
{
	cache_metrics(&c->cache, out);
	workqueue_metrics(&c->queue, out);
	kube_client_metrics(c->kube, out);
	mu_buf_printf(out,
		      "# TYPE controller_runtime_reconcile_total counter\n"
		      "controller_runtime_reconcile_total{controller=\"job\"} %u\n"
		      "# TYPE controller_runtime_reconcile_errors_total counter\n"
		      "controller_runtime_reconcile_errors_total{controller=\"job\"} %u\n"
		      "# TYPE leader_election_master_status gauge\n"
		      "leader_election_master_status{name=\"muster-operator\"} %d\n",
		      atomic_load(&c->reconciles), atomic_load(&c->reconcile_errors),
		      leader_may_write(c) ? 1 : 0);
}

static void answer(struct probe_server *s, int fd, const char *path)
{
	MU_AUTO_BUF body = {0};
	MU_AUTO_BUF out = {0};
	const char *status = "200 OK";

	if (strcmp(path, "/healthz") == 0 || strcmp(path, "/livez") == 0) {
		mu_buf_puts(&body, "ok\n");
	} else if (strcmp(path, "/readyz") == 0) {
		bool ready = atomic_load(&s->control->synced);
		status = ready ? status : "503 Service Unavailable";
		mu_buf_puts(&body, ready ? "ok\n" : "the first lists are not complete\n");
	} else if (strcmp(path, "/metrics") == 0) {
		metrics(s->control, &body);
	} else {
		status = "404 Not Found";
		mu_buf_puts(&body, "there are /healthz, /readyz and /metrics\n");
	}
	mu_buf_printf(&out,
		      "HTTP/1.1 %s\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
		      "Content-Length: %zu\r\nConnection: close\r\n\r\n",
		      status, body.len);
	mu_buf_put(&out, body.data, body.len);
	for (size_t sent = 0; sent < out.len;) {
		ssize_t n = send(fd, out.data + sent, out.len - sent, MSG_NOSIGNAL);
		if (n <= 0)
			return;
		sent += (size_t)n;
	}
	shutdown(fd, SHUT_WR);
}

static void serve(struct probe_server *s, int fd)
{
	struct timeval patience = {PATIENCE_MS / 1000, 0};
	char request[2048], *end, *path;
	size_t n = 0;

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	do {
		ssize_t got = recv(fd, request + n, sizeof(request) - 1 - n, 0);
		if (got <= 0)
			return;
		n += (size_t)got;
		request[n] = 0;
		end = strstr(request, "\r\n");
	} while (!end && n < sizeof(request) - 1);
	if (!end || strncmp(request, "GET ", 4) != 0)
		return;
	path = request + 4;
	path[strcspn(path, " ?\r")] = 0;
	answer(s, fd, path);
}

static void *run(void *arg)
{
	struct probe_server *s = arg;

	while (!atomic_load(&s->stop)) {
		struct pollfd p = {s->fd, POLLIN, 0};
		int fd;

		if (poll(&p, 1, TICK_MS) <= 0)
			continue;
		fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0) {
			serve(s, fd);
			close(fd);
		}
	}
	return NULL;
}

int probe_server_start(struct probe_server **out, struct control *c, int port, struct mu_err *err)
{
	struct sockaddr_in6 address = {.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
	struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct probe_server *s = MU_NEW(struct probe_server);
	int on = 1, off = 0, rc;

	s->control = c;
	s->fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (s->fd >= 0) {
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		setsockopt(s->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
		rc = bind(s->fd, (struct sockaddr *)&address, sizeof(address));
	} else { /* a machine without IPv6 */
		s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		setsockopt(s->fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		rc = bind(s->fd, (struct sockaddr *)&v4, sizeof(v4));
	}
	if (rc < 0 || listen(s->fd, 16) < 0) {
		mu_fail_errno(err, errno, "port %d for probes and metrics", port);
		if (s->fd >= 0)
			close(s->fd);
		free(s);
		return -(int)(err ? err->code : MU_UNAVAILABLE);
	}
	if (pthread_create(&s->thread, NULL, run, s) != 0) {
		close(s->fd);
		free(s);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no thread for the probes");
	}
	*out = s;
	return 0;
}

void probe_server_stop(struct probe_server *s)
{
	if (!s)
		return;
	atomic_store(&s->stop, true);
	pthread_join(s->thread, NULL);
	close(s->fd);
	free(s);
}
