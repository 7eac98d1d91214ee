/* SPDX-License-Identifier: Apache-2.0 */
/* A client that writes HTTP/2 frames by hand and violates or overloads the protocol. After anything
 * it sends the server must be alive, its memory bounded, and another client's call answered. */
#include "tests/test.h"
#include "tests/wait.h"

#include <errno.h>
#include <malloc.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "lib/base/clock.h"
#include "task/rpc/server.h"

enum {
	DATA,
	HEADERS,
	RST_STREAM = 3,
	SETTINGS,
	PING = 6,
	WINDOW_UPDATE = 8,
	CONTINUATION,
};
enum { ACK = 1, END_STREAM = 1, END_HEADERS = 4 };
enum {
	CALL_MS = TEST_TIMEOUT_S * 1000,
	STALL_MS = 500,
	STRING_CPU_MS = 1000,
	GROWTH_MIB = 96,
	STREAMS_MIB = 288, /* 16384 streams, which the server allows */
};

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true, SCALE = 10 }; /* keeps freed memory, and is slow */
#else
enum { SANITIZED = false, SCALE = 1 };
#endif

static void echo(struct rpc_call *call, void *ctx)
{
	struct rpc_message m = {.head = rpc_bytes_flat(rpc_request(call))};

	rpc_reply(call, &m);
}

static void end_held_call(void *arg)
{
	struct mu_err err;

	mu_fail(&err, MU_CANCELLED, "gone");
	rpc_reply_error(arg, &err);
}

static void hold_call(struct rpc_call *call, void *ctx)
{
	rpc_on_cancel(call, end_held_call, call);
}

/* Replies 1 MiB, which a client with a closed window does not receive. */
static void reply_1_mib(struct rpc_call *call, void *ctx)
{
	MU_AUTO_FREE char *bytes = mu_xcalloc(1, 1 << 20);
	struct rpc_message m = {.head = {bytes, 1 << 20}};

	rpc_reply(call, &m);
}

static const struct rpc_method methods[] = {{"/t/Echo", .handle = echo},
					    {"/t/Hold", .handle = hold_call},
					    {"/t/Big", .handle = reply_1_mib}};

struct fixture {
	struct rpc_server *server;
	struct rpc_channel *other_client;
	int port, fd;
	struct mu_buf out; /* frames to send */
	long before_mib, peak_mib, limit_mib;
};

static long resident_mib(void)
{
	long pages = 0;
	FILE *f;

	malloc_trim(0);
	f = fopen("/proc/self/statm", "r");
	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*d %ld", &pages), 1);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE) >> 20;
}

static void frame(struct fixture *f, uint8_t type, uint8_t flags, uint32_t stream, const void *p,
		  size_t n)
{
	unsigned char head[9] = {(unsigned char)(n >> 16),
				 (unsigned char)(n >> 8),
				 (unsigned char)n,
				 type,
				 flags,
				 (unsigned char)(stream >> 24),
				 (unsigned char)(stream >> 16),
				 (unsigned char)(stream >> 8),
				 (unsigned char)stream};

	mu_buf_put(&f->out, head, sizeof(head));
	mu_buf_put(&f->out, p, n);
}

static void field(struct mu_buf *b, const char *name, const char *value)
{
	mu_buf_putc(b, 0);
	mu_buf_putc(b, (char)strlen(name));
	mu_buf_puts(b, name);
	mu_buf_putc(b, (char)strlen(value));
	mu_buf_puts(b, value);
}

static void open_stream(struct fixture *f, uint32_t stream, const char *path, uint8_t flags)
{
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, "\x83\x86", 2); /* POST, http */
	field(&b, ":path", path);
	field(&b, ":authority", "localhost");
	field(&b, "content-type", "application/grpc");
	field(&b, "te", "trailers");
	frame(f, HEADERS, flags, stream, b.data, b.len);
}

static void send_call(struct fixture *f, uint32_t stream, const char *path)
{
	open_stream(f, stream, path, END_HEADERS);
	frame(f, DATA, END_STREAM, stream, "\0\0\0\0", 5);
}

/* Sends the frames until the server closes the connection or stops reading; reads nothing. Returns
 * false in either case. */
static bool send_unread(struct fixture *f)
{
	struct pollfd w = {.fd = f->fd, .events = POLLOUT};
	bool open = true;

	for (size_t at = 0; open && at < f->out.len;) {
		ssize_t n = poll(&w, 1, STALL_MS) > 0
				? send(f->fd, f->out.data + at, f->out.len - at,
				       MSG_NOSIGNAL | MSG_DONTWAIT)
				: -1;

		open = n >= 0;
		at += n > 0 ? (size_t)n : 0;
	}
	mu_buf_clear(&f->out);
	return open;
}

/* Like send_unread(), but reads and discards the bytes of the server. */
static bool send_and_discard(struct fixture *f)
{
	static char junk[1 << 16];
	bool open = true;

	for (size_t at = 0; open && at < f->out.len;) {
		struct pollfd w = {.fd = f->fd, .events = POLLIN | POLLOUT};
		ssize_t n;

		if (poll(&w, 1, CALL_MS) <= 0)
			break;
		if (w.revents & POLLIN && recv(f->fd, junk, sizeof(junk), MSG_DONTWAIT) == 0)
			open = false;
		n = send(f->fd, f->out.data + at, f->out.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);
		open = open && (n >= 0 || errno == EAGAIN);
		at += n > 0 ? (size_t)n : 0;
	}
	mu_buf_clear(&f->out);
	return open;
}

static void assert_other_client_served(struct fixture *f)
{
	struct rpc_message m = {.head = MU_SPAN("and me?")};
	MU_AUTO_BUF reply = {0};
	struct mu_err err;

	assert_ok(rpc_call(f->other_client, "/t/Echo", &m, CALL_MS, 0, &reply, &err), &err);
	assert_true(mu_span_is(mu_buf_span(&reply), "and me?"));
}

static int start(void **state)
{
	static const char *const address = "127.0.0.1:0";
	struct fixture *f = MU_NEW(struct fixture);
	struct rpc_server_options o = {.addresses = &address,
				       .n_addresses = 1,
				       .methods = methods,
				       .n_methods = MU_COUNT(methods),
				       .max_message = 1 << 20};
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	struct mu_err err;
	char target[64];

	assert_ok(rpc_server_start(&o, &f->server, &f->port, &err), &err);
	snprintf(target, sizeof(target), "127.0.0.1:%d", f->port);
	assert_ok(rpc_channel_open(target, &f->other_client, &err), &err);
	assert_other_client_served(f);
	a.sin_port = htons((uint16_t)f->port);
	f->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(f->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	mu_buf_puts(&f->out, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
	frame(f, SETTINGS, 0, 0, NULL, 0);
	f->before_mib = resident_mib();
	f->limit_mib = GROWTH_MIB;
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	close(f->fd);
	rpc_channel_close(f->other_client);
	rpc_server_stop(f->server, 100);
	mu_buf_fini(&f->out);
	free(f);
	return 0;
}

static long growth_mib(struct fixture *f)
{
	long mib = resident_mib() - f->before_mib;

	if (mib > f->peak_mib)
		f->peak_mib = mib;
	return mib;
}

static void assert_unharmed(struct fixture *f)
{
	assert_other_client_served(f);
	if (SANITIZED)
		return;
	growth_mib(f);
	assert_in_range(f->peak_mib, 0, f->limit_mib);
}

/* Most clients here acknowledge the server's settings, so that its limits are in force. */
static void acknowledge(struct fixture *f)
{
	char settings[512];

	send_unread(f);
	assert_true(recv(f->fd, settings, sizeof(settings), 0) > 0);
	frame(f, SETTINGS, ACK, 0, NULL, 0);
}

static void calls__reset_immediately__do_no_harm(void **state)
{
	struct fixture *f = *state;

	acknowledge(f);
	for (uint32_t i = 0, stream = 1; i < 20000 / SCALE; i++, stream += 2) {
		send_call(f, stream, "/t/Hold");
		frame(f, RST_STREAM, 0, stream, "\0\0\0\x08", 4);
		if (i % 500 == 499 && !send_and_discard(f))
			break;
	}
	assert_unharmed(f);
}

static void flood(struct fixture *f, uint8_t type, uint8_t flags, uint32_t stream, const void *p,
		  size_t n, bool read)
{
	for (int i = 0; i < 200 / SCALE; i++) {
		for (int k = 0; k < 1000; k++)
			frame(f, type, flags, stream, p, n);
		if (!(read ? send_and_discard(f) : send_unread(f)))
			break;
		growth_mib(f);
	}
	assert_unharmed(f);
}

static void pings__of_a_client_that_never_reads__do_no_harm(void **state)
{
	acknowledge(*state);
	flood(*state, PING, 0, 0, "12345678", 8, false);
}

static void settings__of_a_client_that_never_reads__do_no_harm(void **state)
{
	acknowledge(*state);
	flood(*state, SETTINGS, 0, 0, "\0\4\0\1\0\0", 6, false);
}

static void data_frames__empty_and_without_end__do_no_harm(void **state)
{
	struct fixture *f = *state;

	acknowledge(f);
	open_stream(f, 1, "/t/Echo", END_HEADERS);
	flood(f, DATA, 0, 1, NULL, 0, true);
}

static void continuation_frames__without_end__do_no_harm(void **state)
{
	static char block[1024]; /* NULs: literals with empty names */
	struct fixture *f = *state;

	open_stream(f, 1, "/t/Echo", 0);
	flood(f, CONTINUATION, 0, 1, block, sizeof(block), true);
}

static void headers__of_megabytes__do_no_harm(void **state)
{
	char value[127];
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};

	memset(value, 'x', sizeof(value) - 1);
	value[sizeof(value) - 1] = 0;
	while (b.len < 16000)
		field(&b, "a", value);
	open_stream(f, 1, "/t/Echo", 0);
	flood(f, CONTINUATION, 0, 1, b.data, b.len, true);
}

/* gRPC limits the streams of a client only after it acknowledged the server's settings. */
static void streams__without_acknowledged_settings__do_no_harm(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0, stream = 1; i < 100000 / SCALE; i++, stream += 2) {
		open_stream(f, stream, "/t/Hold", END_HEADERS);
		if (i % 500 == 499 && !send_and_discard(f))
			break;
		if (i % 5000 == 4999)
			growth_mib(f);
	}
	assert_unharmed(f);
}

static void streams__with_acknowledged_settings__do_no_harm(void **state)
{
	struct fixture *f = *state;

	acknowledge(f);
	f->limit_mib = STREAMS_MIB;
	streams__without_acknowledged_settings__do_no_harm(state);
}

static long cpu_ms(void)
{
	return (long)(clock() / (CLOCKS_PER_SEC / 1000));
}

/* A value of 2 GiB in small pieces.  Each piece must not cost as much as all pieces before it. */
static void header_string__without_end__does_no_harm(void **state)
{
	static char block[16000];
	struct fixture *f = *state;
	long before = cpu_ms();

	open_stream(f, 1, "/t/Echo", 0);
	frame(f, CONTINUATION, 0, 1, "\0\1a\x7f\xff\xff\xff\xff\7", 9);
	for (int i = 0; i < 1000; i++)
		frame(f, CONTINUATION, 0, 1, block, sizeof(block));
	send_and_discard(f);
	assert_unharmed(f);
	if (!SANITIZED)
		assert_in_range(cpu_ms() - before, 0, STRING_CPU_MS);
}

/* Header fields of 16 KiB, after the server's limit of 8 KiB is acknowledged. */
static void headers__over_the_limit__do_no_harm(void **state)
{
	static char value[127];
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};

	memset(value, 'x', sizeof(value) - 1);
	mu_buf_put(&b, "\x83\x86", 2);
	field(&b, "te", "x"); /* some gRPC releases abort here: CVE-2023-1428 */
	while (b.len < 16000)
		field(&b, "a", value);
	acknowledge(f);
	frame(f, HEADERS, END_HEADERS, 1, b.data, b.len);
	send_and_discard(f);
	assert_unharmed(f);
}

static void window_updates__of_one_byte__do_no_harm(void **state)
{
	acknowledge(*state);
	flood(*state, WINDOW_UPDATE, 0, 0, "\0\0\0\1", 4, true);
}

/* Forty replies of 1 MiB each, blocked by the flow-control window. */
static void replies__never_read__do_no_harm(void **state)
{
	struct fixture *f = *state;

	for (uint32_t stream = 1; stream < 80; stream += 2)
		send_call(f, stream, "/t/Big");
	send_unread(f);
	for (uint32_t stream = 1; stream < 80; stream += 2)
		frame(f, RST_STREAM, 0, stream, "\0\0\0\x08", 4);
	send_unread(f);
	assert_unharmed(f);
}

static void frame__over_the_size_limit__does_no_harm(void **state)
{
	struct fixture *f = *state;

	open_stream(f, 1, "/t/Echo", END_HEADERS);
	mu_buf_put(&f->out, "\xff\xff\xff\0\0\0\0\0\1", 9);
	for (int i = 0; i < 4000 / SCALE; i++)
		mu_buf_put(&f->out, "0123456789abcdef", 16);
	send_and_discard(f);
	assert_unharmed(f);
}

static void connection__of_another_protocol__does_no_harm(void **state)
{
	struct fixture *f = *state;

	mu_buf_clear(&f->out);
	mu_buf_puts(&f->out, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
	send_and_discard(f);
	assert_unharmed(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(calls__reset_immediately__do_no_harm, start, stop),
	    cmocka_unit_test_setup_teardown(pings__of_a_client_that_never_reads__do_no_harm, start,
					    stop),
	    cmocka_unit_test_setup_teardown(settings__of_a_client_that_never_reads__do_no_harm,
					    start, stop),
	    cmocka_unit_test_setup_teardown(data_frames__empty_and_without_end__do_no_harm, start,
					    stop),
	    cmocka_unit_test_setup_teardown(continuation_frames__without_end__do_no_harm, start,
					    stop),
	    cmocka_unit_test_setup_teardown(headers__of_megabytes__do_no_harm, start, stop),
	    cmocka_unit_test_setup_teardown(streams__without_acknowledged_settings__do_no_harm,
					    start, stop),
	    cmocka_unit_test_setup_teardown(streams__with_acknowledged_settings__do_no_harm, start,
					    stop),
	    cmocka_unit_test_setup_teardown(header_string__without_end__does_no_harm, start, stop),
	    cmocka_unit_test_setup_teardown(headers__over_the_limit__do_no_harm, start, stop),
	    cmocka_unit_test_setup_teardown(window_updates__of_one_byte__do_no_harm, start, stop),
	    cmocka_unit_test_setup_teardown(replies__never_read__do_no_harm, start, stop),
	    cmocka_unit_test_setup_teardown(frame__over_the_size_limit__does_no_harm, start, stop),
	    cmocka_unit_test_setup_teardown(connection__of_another_protocol__does_no_harm, start,
					    stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
