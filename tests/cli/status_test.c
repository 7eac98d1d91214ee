/* SPDX-License-Identifier: Apache-2.0 */
/* muster status with servers that respond, that send one byte at a time, and that do not respond.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "tests/cli/job.h"

enum { BYTE_INTERVAL_MS = 50, MAX_SECONDS = 30 };

/* Sends a response, then single bytes until the client disconnects or the test ends. */
struct server {
	const char *first;
	bool sends_slowly;
	int fd;
	char address[32];
	_Atomic bool stopping;
	pthread_t thread;
};

static void send_response(const struct server *s, int fd)
{
	struct pollfd disconnect = {.fd = fd, .events = POLLRDHUP};
	ssize_t sent = send(fd, s->first, strlen(s->first), MSG_NOSIGNAL);

	while (s->sends_slowly && sent >= 0 && !atomic_load(&s->stopping)) {
		if (poll(&disconnect, 1, BYTE_INTERVAL_MS) > 0)
			return;
		sent = send(fd, "x", 1, MSG_NOSIGNAL);
	}
}

static void *serve(void *arg)
{
	struct server *s = arg;
	char request[512];
	int fd = accept(s->fd, NULL, NULL);

	if (fd < 0)
		return NULL;
	if (recv(fd, request, sizeof(request), 0) > 0)
		send_response(s, fd);
	close(fd);
	return NULL;
}

static void start_server(struct server *s, const char *first, bool sends_slowly)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof(a);

	*s = (struct server){.first = first, .sends_slowly = sends_slowly};
	s->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(s->fd, (struct sockaddr *)&a, n), 0);
	assert_int_equal(listen(s->fd, 4), 0);
	assert_int_equal(getsockname(s->fd, (struct sockaddr *)&a, &n), 0);
	snprintf(s->address, sizeof(s->address), "127.0.0.1:%d", ntohs(a.sin_port));
	assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

static void stop_server(struct server *s)
{
	atomic_store(&s->stopping, true);
	shutdown(s->fd, SHUT_RDWR);
	pthread_join(s->thread, NULL);
	close(s->fd);
}

static void status__prints_the_response(void **state)
{
	MU_AUTO_BUF output = {0};
	struct server s;

	start_server(&s, "HTTP/1.0 200 OK\r\n\r\n{\"task\": \"ps\"}", false);
	assert_int_equal(muster(&output, "status", s.address), 0);
	assert_output_has(output, "{\"task\": \"ps\"}");
	stop_server(&s);
}

static void slow_server__is_abandoned_after_the_timeout(void **state)
{
	static const char *const firsts[] = {"HTTP/1.0 200 OK\r\n\r\n{", "HTTP/1.0 200 OK\r\nX: "};

	for (unsigned i = 0; i < MU_COUNT(firsts); i++) {
		MU_AUTO_BUF output = {0};
		double start_s = mu_clock();
		struct server s;
		int status;

		start_server(&s, firsts[i], true);
		status = muster(&output, "status", s.address);
		stop_server(&s);
		assert_int_equal(status, 1);
		assert_output_has(output, "did not respond within 5 s");
		if (mu_clock() - start_s > MAX_SECONDS)
			fail_msg("it took %.1f s", mu_clock() - start_s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(status__prints_the_response),
	    cmocka_unit_test(slow_server__is_abandoned_after_the_timeout),
	};

	return cmocka_run_group_tests(tests, find_program, NULL);
}
