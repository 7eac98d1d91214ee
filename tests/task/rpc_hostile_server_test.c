/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that do not speak HTTP/2, or speak it wrongly: a call fails within its deadline. */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "task/rpc/channel.h"
#include "tests/test.h"
#include "tests/wait.h"

enum { CALL_MS = 1000 };

#define SETTINGS "\0\0\0\4\0\0\0\0\0"
#define ACK      "\0\0\0\4\1\0\0\0\0"
#define BYTES(literal)                                                                             \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}

static const struct answer {
	const char *name;
	struct mu_span bytes;
	bool stays_open;
} answers[] = {
    {"closes at once", BYTES(""), false},
    {"sends nothing", BYTES(""), true},
    {"HTTP/1.1", BYTES("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), true},
    {"TLS", BYTES("\x15\x03\x01\0\2\2\x28"), true},
    {"frame longer than allowed", BYTES(SETTINGS "\xff\xff\xff\0\0\0\0\0\1xxxx"), true},
    {"headers that are no HPACK", BYTES(SETTINGS ACK "\0\0\4\1\4\0\0\0\1\xff\xff\xff\xff"), true},
    {"data without headers", BYTES(SETTINGS ACK "\0\0\5\0\1\0\0\0\1\0\0\0\0\0"), true},
    {"a message that is truncated",
     BYTES(SETTINGS ACK "\0\0\1\1\4\0\0\0\1\x88\0\0\6\0\1\0\0\0\1\0\0\0\0\x10x"), true},
    {"a reset", BYTES(SETTINGS ACK "\0\0\4\3\0\0\0\0\1\0\0\0\2"), true},
    {"leaves", BYTES(SETTINGS ACK "\0\0\x8\7\0\0\0\0\0\0\0\0\0\0\0\0\2"), true},
};

struct server {
	int listener;
	const struct answer *answer;
};

static void *serve(void *arg)
{
	const struct server *s = arg;
	/* gRPC may leave a closed channel's connection open while no thread polls it */
	struct timeval limit = {.tv_sec = 2 * CALL_MS / 1000};
	char request[4096];
	int fd;

	while ((fd = accept(s->listener, NULL, NULL)) >= 0) {
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
		if (read(fd, request, sizeof(request)) > 0)
			(void)!write(fd, s->answer->bytes.data, s->answer->bytes.len);
		while (s->answer->stays_open && read(fd, request, sizeof(request)) > 0)
			;
		close(fd);
	}
	return NULL;
}

static void call__to_a_server_with_invalid_replies__fails_in_time(void **state)
{
	for (unsigned i = 0; i < MU_COUNT(answers); i++) {
		struct sockaddr_in a = {.sin_family = AF_INET,
					.sin_addr = {htonl(INADDR_LOOPBACK)}};
		struct server s = {socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), &answers[i]};
		struct rpc_message m = {.head = MU_SPAN("x")};
		int64_t start_ms = mu_clock_ms();
		socklen_t len = sizeof(a);
		struct rpc_channel *ch;
		struct mu_err err;
		pthread_t thread;
		char target[32];
		int rc;

		assert_int_equal(bind(s.listener, (struct sockaddr *)&a, len), 0);
		assert_int_equal(listen(s.listener, 8), 0);
		assert_int_equal(getsockname(s.listener, (struct sockaddr *)&a, &len), 0);
		assert_int_equal(pthread_create(&thread, NULL, serve, &s), 0);
		snprintf(target, sizeof(target), "127.0.0.1:%d", ntohs(a.sin_port));
		assert_ok(rpc_channel_open(target, &ch, &err), &err);
		rc = rpc_call(ch, "/t.T/Echo", &m, CALL_MS, 0, NULL, &err);
		if (rc == 0)
			fail_msg("%s: the call succeeded", answers[i].name);
		if (mu_clock_ms() - start_ms > 5 * CALL_MS)
			fail_msg("%s: %s", answers[i].name, err.msg);
		rpc_channel_close(ch);
		shutdown(s.listener, SHUT_RDWR);
		pthread_join(thread, NULL);
		close(s.listener);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(call__to_a_server_with_invalid_replies__fails_in_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
