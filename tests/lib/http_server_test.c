/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server of probes and metrics, called by well-behaved, slow and broken peers. */
#include "lib/net/http_server.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/test.h"
#include "tests/wait.h"

enum { MANY_PEERS = 40 }; /* more than the server's connection limit */
enum { MAX_FD = 64 };     /* RLIMIT_NOFILE */

static void echo(void *ctx, const struct mu_http_request *rq, struct mu_http_answer *out)
{
	out->status = 200;
	mu_buf_printf(&out->body, "%s|%s|%s|%.*s|%s", (const char *)ctx, rq->method, rq->path,
		      (int)rq->body.len, rq->body.data, rq->authorization ? rq->authorization : "");
}

static void connect_to(int fd, int port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons((uint16_t)port),
				.sin_addr = {htonl(INADDR_LOOPBACK)}};

	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
}

static int dial(int port)
{
	struct timeval timeout = {TEST_TIMEOUT_S, 0};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
	connect_to(fd, port);
	return fd;
}

/* Sends these bytes and reads the response until the server closes the connection. */
static void exchange(int port, const char *request, struct mu_buf *out)
{
	char piece[4096];
	ssize_t n;
	int fd = dial(port);

	n = send(fd, request, strlen(request), MSG_NOSIGNAL);
	assert_int_equal(n, (ssize_t)strlen(request));
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
		mu_buf_put(out, piece, (size_t)n);
	close(fd);
}

/* True when a request on a new connection is answered. */
static bool answers(int port)
{
	MU_AUTO_BUF out = {0};

	exchange(port, "GET /now HTTP/1.1\r\nHost: x\r\n\r\n", &out);
	return out.len && strstr(out.data, "me|GET|/now");
}

static void request__valid_or_malformed__gets_a_response_or_an_error(void **state)
{
	static const struct {
		const char *request, *status, *body;
	} cases[] = {
	    {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200 OK\r\n", "\r\n\r\nme|GET|/|"},
	    {"GET /a?b=c HTTP/1.0\r\n\r\n", " 200 ", "\r\n\r\nme|GET|/a|"},
	    {"POST /finish HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n", " 200 ",
	     "\r\n\r\nme|POST|/finish|"},
	    {"POST /c HTTP/1.1\r\nHost: x\r\ncontent-length:  3\r\n\r\nabc", " 200 ",
	     "me|POST|/c|abc"},
	    {"POST /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: "
	     "chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
	     " 200 ", "me|POST|/c|abc"},
	    {"GET /t HTTP/1.1\r\nHost: x\r\nauthorization: Bearer abc\r\n\r\n", " 200 ",
	     "me|GET|/t||Bearer abc"},
	    {"POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 99999999999999999999999\r\n\r\n",
	     " 413 ", ""},
	    {"POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", " 400 ", ""},
	    {"GET / HTTP/1.1\r\nno header\r\n\r\n", " 400 ", ""},
	};
	struct mu_http_server *h;
	struct mu_err err;
	int port;

	assert_ok(mu_http_start("127.0.0.1", 0, echo, "me", &h, &port, &err), &err);
	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		MU_AUTO_BUF out = {0};

		exchange(port, cases[i].request, &out);
		assert_true(out.len > 0);
		if (!strstr(out.data, cases[i].status))
			fail_msg("case %u: %s", i, out.data);
		assert_true(strstr(out.data, cases[i].status) <= out.data + 8);
		assert_non_null(strstr(out.data, cases[i].body));
		assert_non_null(strcasestr(out.data, "Connection: close\r\n"));
	}
	mu_http_stop(h);
}

static void request__that_is_too_long__is_an_error(void **state)
{
	struct mu_http_server *h;
	struct mu_err err;
	int port;

	assert_ok(mu_http_start("127.0.0.1", 0, echo, "me", &h, &port, &err), &err);
	for (int in_header = 0; in_header < 2; in_header++) {
		MU_AUTO_BUF head = {0};
		MU_AUTO_BUF out = {0};

		mu_buf_puts(&head, in_header ? "GET / HTTP/1.1\r\nHost: x\r\nA: " : "GET /");
		for (int i = 0; i < 20000; i++)
			mu_buf_putc(&head, 'a');
		mu_buf_puts(&head, in_header ? "\r\n\r\n" : " HTTP/1.1\r\nHost: x\r\n\r\n");
		exchange(port, head.data, &out);
		assert_true(!out.len || strstr(out.data, in_header ? " 431 " : " 414 "));
		assert_true(answers(port));
	}
	mu_http_stop(h);
}

static void body__over_the_limit__is_rejected(void **state)
{
	MU_AUTO_BUF rq = {0};
	MU_AUTO_BUF out = {0};
	struct mu_http_server *h;
	struct mu_err err;
	int port;

	mu_buf_puts(&rq, "POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: 262145\r\n\r\n");
	for (int i = 0; i < 262145; i++)
		mu_buf_putc(&rq, 'x');
	assert_ok(mu_http_start("127.0.0.1", 0, echo, "me", &h, &port, &err), &err);
	exchange(port, rq.data, &out);
	assert_non_null(strstr(out.data, "262144 bytes"));
	mu_http_stop(h);
}

/* The server closes idle connections after a few seconds. At the connection limit it closes the
 * oldest one. */
static void peers__that_are_slow__do_not_block_other_clients(void **state)
{
	struct mu_http_server *h;
	int peers[MANY_PEERS], port;
	char byte;
	struct mu_err err;

	assert_ok(mu_http_start("127.0.0.1", 0, echo, "me", &h, &port, &err), &err);
	for (int i = 0; i < MANY_PEERS; i++) {
		peers[i] = dial(port);
		assert_int_equal(send(peers[i], "GET", 3, MSG_NOSIGNAL), 3);
		if (i == 2)
			assert_true(answers(port));
	}
	for (int i = 0; i < MANY_PEERS; i++)
		assert_true(answers(port));
	for (int i = 0; i < MANY_PEERS; i++) {
		assert_true(recv(peers[i], &byte, 1, 0) <= 0);
		close(peers[i]);
	}
	mu_http_stop(h);
}

/* The body has the maximum size. */
static void body__sent_in_pieces__is_received(void **state)
{
	enum { MAX_BODY = 256 << 10 };
	MU_AUTO_FREE char *body = mu_xmalloc(MAX_BODY);
	MU_AUTO_BUF response = {0};
	struct mu_http_server *h;
	char head[64], piece[4096];
	ssize_t n;
	int fd, port;
	struct mu_err err;

	memset(body, 'x', MAX_BODY);
	snprintf(head, sizeof(head), "POST /c HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
		 MAX_BODY);
	assert_ok(mu_http_start("127.0.0.1", 0, echo, "me", &h, &port, &err), &err);
	fd = dial(port);
	assert_int_equal(send(fd, head, strlen(head), MSG_NOSIGNAL), (ssize_t)strlen(head));
	for (size_t sent = 0; sent < MAX_BODY; sent += (size_t)n)
		assert_true((n = send(fd, body + sent, MAX_BODY - sent, MSG_NOSIGNAL)) > 0);
	while ((n = recv(fd, piece, sizeof(piece), 0)) > 0)
		mu_buf_put(&response, piece, (size_t)n);
	assert_int_equal(n, 0);
	assert_non_null(strstr(response.data, "me|POST|/c|xxx"));
	assert_true(response.len > MAX_BODY);
	close(fd);
	mu_http_stop(h);
}

struct stopping {
	struct mu_http_server *server;
	pthread_t thread;
};

static void *stop(void *arg)
{
	struct stopping *e = arg;

	mu_http_stop(e->server);
	return NULL;
}

static void stop_server(void *ctx, const struct mu_http_request *rq, struct mu_http_answer *out)
{
	struct stopping *e = ctx;

	assert_int_equal(pthread_create(&e->thread, NULL, stop, e), 0);
	wait_ms(50); /* mu_http_stop() starts before the response */
	echo("me", rq, out);
}

static void request__that_stops_the_server__is_answered(void **state)
{
	struct stopping e;
	struct mu_err err;
	int port;

	assert_ok(mu_http_start("127.0.0.1", 0, stop_server, &e, &e.server, &port, &err), &err);
	assert_true(answers(port));
	pthread_join(e.thread, NULL);
}

/* A pending connection stays in the backlog and poll() reports it each time. */
static void server__without_descriptors__waits_and_recovers(void **state)
{
	struct mu_http_server *h;
	struct rlimit original, limited;
	int port, fd, last;
	clock_t before;
	struct mu_err err;

	assert_ok(mu_http_start("127.0.0.1", 0, echo, "me", &h, &port, &err), &err);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0 && fd < MAX_FD);
	while ((last = dup(fd)) < MAX_FD) /* occupies all descriptors up to the limit */
		assert_true(last > fd);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &original), 0);
	limited = (struct rlimit){(rlim_t)last + 1, original.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limited), 0);
	connect_to(fd, port);
	before = clock();
	wait_ms(300);
	assert_true(clock() - before < CLOCKS_PER_SEC / 10);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &original), 0);
	assert_true(answers(port));
	for (int i = fd; i <= last; i++)
		close(i);
	mu_http_stop(h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(request__valid_or_malformed__gets_a_response_or_an_error),
	    cmocka_unit_test(body__sent_in_pieces__is_received),
	    cmocka_unit_test(request__that_is_too_long__is_an_error),
	    cmocka_unit_test(body__over_the_limit__is_rejected),
	    cmocka_unit_test(request__that_stops_the_server__is_answered),
	    cmocka_unit_test(peers__that_are_slow__do_not_block_other_clients),
	    cmocka_unit_test(server__without_descriptors__waits_and_recovers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
