/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 server under clients that do only what the protocol allows, and far too much of it, or
 * never the other half of it.  Whatever one does, what it costs stays bounded and another client is
 * answered meanwhile. */
#include "tests/task/h2_raw.h"

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "lib/base/clock.h"
#include "lib/base/log.h"

static _Atomic int arrived, cancelled;

static void echo(struct rpc_call *call, void *ctx)
{
	struct rpc_message m = {.head = rpc_bytes_flat(rpc_request(call))};

	rpc_reply(call, &m);
}

static void end_parked(void *arg)
{
	struct mu_err err;

	mu_fail(&err, MU_CANCELLED, "gone");
	atomic_fetch_add(&cancelled, 1);
	rpc_reply_error(arg, &err);
}

static void park(struct rpc_call *call, void *ctx)
{
	atomic_fetch_add(&arrived, 1);
	rpc_on_cancel(call, end_parked, call);
}

/* A MiB that belongs to this answer alone. */
static void big(struct rpc_call *call, void *ctx)
{
	static char zeros[1 << 20];
	struct rpc_message m = {.head = {zeros, sizeof(zeros)}};

	rpc_reply(call, &m);
}

static const struct rpc_method methods[] = {{"/t/Echo", echo}, {"/t/Park", park}, {"/t/Big", big}};

static int start(void **state)
{
	atomic_store(&arrived, 0);
	atomic_store(&cancelled, 0);
	*state = server_with(methods, MU_COUNT(methods));
	return 0;
}

/* MiB of memory in use by this process. */
static long resident(void)
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

/* A sanitizer keeps what was freed and its own books, and is ten times as slow. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = true };
#else
enum { SANITIZED = false };
#endif

static void assert_grew_little_since(long before)
{
	if (!SANITIZED)
		assert_in_range(resident() - before + 1, 0, 33);
}

/* As much as the server takes, until it takes nothing for so long; whether it took all. */
static bool pour(struct fixture *f, int ms)
{
	struct pollfd w = {.fd = f->fd, .events = POLLOUT};
	size_t at = 0;

	while (at < f->out.len && poll(&w, 1, ms) > 0) {
		ssize_t n =
		    send(f->fd, f->out.data + at, f->out.len - at, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0)
			break; /* it has hung up */
		at += (size_t)n;
	}
	if (at < f->out.len)
		return false;
	mu_buf_clear(&f->out);
	return true;
}

/* Somebody else is served all the while. */
static void assert_others_are_served(const struct fixture *f)
{
	struct fixture other = {0};
	int64_t began = mu_clock_ms();

	client_init(&other, f->port);
	call(&other, 1, "/t/Echo", "and me?");
	flush(&other);
	assert_echoed(&other, 1, "and me?");
	assert_in_range(mu_clock_ms() - began, 0, 5000);
	client_fini(&other);
}

static void reset(struct fixture *f, uint32_t stream)
{
	char code[4];

	h2_put32(code, H2_CANCEL);
	frame(f, H2_RST_STREAM, 0, stream, code, 4);
}

/* ---- floods ---- */

/* Calls that are made and taken back at once, 20,000 of them: each is told, none is left. */
static void calls_that_are_taken_back_at_once__leave_nothing(void **state)
{
	enum { CALLS = 20000, AT_ONCE = 500 };
	struct fixture *f = *state;
	uint32_t id = 1;
	long before;

	call(f, id, "/t/Echo", "warm");
	flush(f);
	assert_echoed(f, id, "warm");
	before = resident();
	for (int i = 0; i < CALLS / AT_ONCE; i++) {
		for (int k = 0; k < AT_ONCE; k++) {
			id += 2;
			call(f, id, "/t/Park", "");
			reset(f, id);
		}
		assert_true(pour(f, PATIENCE_SECONDS * 1000));
	}
	assert_others_are_served(f);
	UNTIL(atomic_load(&cancelled) == CALLS);
	assert_int_equal(atomic_load(&arrived), CALLS);
	assert_grew_little_since(before);
	call(f, id + 2, "/t/Echo", "still here");
	flush(f);
	assert_echoed(f, id + 2, "still here");
}

/* Two hundred answers of a MiB, of which the client takes back all but the first `kept`: they go
 * with their calls. */
static void take_back_answers(struct fixture *f, long before, uint32_t kept)
{
	enum { ANSWERS = 200 };

	for (uint32_t i = 0; i < ANSWERS; i++) {
		call(f, 2 * i + 1, "/t/Big", "");
		if (i >= kept)
			reset(f, 2 * i + 1);
	}
	frame(f, H2_PING, 0, 0, "12345678", 8);
	assert_true(pour(f, PATIENCE_SECONDS * 1000));
	assert_true(await(f, H2_PING, H2_ACK, 0));
	assert_grew_little_since(before);
	assert_others_are_served(f);
}

static void answers_that_have_no_room__go_when_they_are_taken_back(void **state)
{
	struct fixture *f = *state;
	long before = resident();

	frame(f, H2_SETTINGS, 0, 0, "\0\4\0\0\0\0", 6); /* streams have no window */
	take_back_answers(f, before, 0);
}

/* The same where it is the connection that has no room left. */
static void answers_behind_a_full_connection__go_when_they_are_taken_back(void **state)
{
	take_back_answers(*state, resident(), 1);
}

/* Questions without end from somebody who reads no answer: at some point nobody listens. */
static void pings_of_who_never_reads__are_heard_up_to_a_limit(void **state)
{
	static const struct {
		uint8_t type;
		size_t len;
	} floods[] = {{H2_PING, 8}, {H2_SETTINGS, 0}};

	for (unsigned k = 0; k < MU_COUNT(floods); k++) {
		struct fixture *f;
		long before;

		if (k) {
			stop(state);
			start(state);
		}
		f = *state;
		for (int i = 0; i < 4 << 20; i++)
			frame(f, floods[k].type, 0, 0, "12345678", floods[k].len);
		before = resident();
		assert_false(pour(f, 500));
		assert_grew_little_since(before);
		assert_others_are_served(f);
	}
}

/* A header block that never ends, in pieces of a byte and in pieces of none. */
static void header_block_without_end__ends_the_connection(void **state)
{
	for (size_t piece = 0; piece < 2; piece++) {
		struct fixture *f;

		if (piece) {
			stop(state);
			start(state);
		}
		f = *state;
		frame(f, H2_HEADERS, 0, 1, "\x83", 1);
		for (int i = 0; i < 64 << 10; i++)
			frame(f, H2_CONTINUATION, 0, 1, "\x86", piece);
		pour(f, 1000);
		assert_false(await(f, 255, 0, 0));
		assert_int_equal(f->went_away, H2_ENHANCE_YOUR_CALM + 1);
		assert_others_are_served(f);
	}
}

/* One byte of a block names a field of 4 KiB: what it comes to is what counts. */
static void headers_that_unpack_to_megabytes__are_refused(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};
	char length[3] = {0x7f, (char)0x81, 0x1e}; /* 127 + 1 + 30 * 128 */

	mu_buf_putc(&b, 0x40); /* into the table, from now on 62 */
	mu_buf_puts(&b, "\x01x");
	mu_buf_put(&b, length, 3);
	for (int i = 0; i < 127 + 1 + 30 * 128; i++)
		mu_buf_putc(&b, 'y');
	frame(f, H2_HEADERS, H2_END_HEADERS, 1, b.data, b.len);
	mu_buf_clear(&b);
	for (int i = 0; i < 20000; i++)
		mu_buf_putc(&b, (char)0xbe);
	frame(f, H2_HEADERS, H2_END_HEADERS, 3, b.data, 2);
	flush(f);
	assert_true(await(f, H2_RST_STREAM, 0, 3)); /* no call, but no more than that */
	frame(f, H2_HEADERS, H2_END_HEADERS, 5, b.data, b.len);
	pour(f, 1000);
	assert_false(await(f, 255, 0, 0));
	assert_int_equal(f->went_away, H2_COMPRESSION_ERROR + 1);
	assert_others_are_served(f);
}

static void frame_that_is_too_long__ends_the_connection(void **state)
{
	struct fixture *f = *state;
	char head[H2_HEADER];

	h2_frame_put(head, H2_MAX_BLOCK + 1, H2_HEADERS, H2_END_HEADERS, 1);
	mu_buf_put(&f->out, head, sizeof(head));
	flush(f);
	assert_false(await(f, 255, 0, 0));
	assert_int_equal(f->went_away, H2_FRAME_SIZE_ERROR + 1);
	assert_others_are_served(f);
}

/* ---- who has much open ---- */

/* Has many streams open that wait, and a frame that is about all of them, again and again. */
static void begin_flood(struct fixture *f, const char *path, uint8_t type, const char *bytes,
			size_t len)
{
	enum { STREAMS = SANITIZED ? 2000 : 20000, FRAMES = 50000 };

	frame(f, H2_SETTINGS, 0, 0, "\0\4\0\0\0\0", 6);
	for (uint32_t i = 0; i < STREAMS; i++)
		call(f, 2 * i + 1, path, "x");
	frame(f, H2_PING, 0, 0, "12345678", 8);
	assert_true(pour(f, PATIENCE_SECONDS * 1000));
	assert_true(await(f, H2_PING, H2_ACK, 0));
	for (int i = 0; i < FRAMES; i++)
		frame(f, type, 0, 0, i % 2 ? bytes : bytes + len, len);
}

/* More of them than there are threads that read. */
static void windows_that_move_for_thousands__hold_up_nobody(void **state)
{
	enum { CLIENTS = 3 };
	static const struct {
		uint8_t type;
		const char *path, *bytes; /* of one frame, and of the next */
		size_t len;
	} floods[] = {
	    {H2_SETTINGS, "/t/Park", "\0\4\0\0\0\x01\0\4\0\0\0\x02", 6},
	    {H2_WINDOW_UPDATE, "/t/Echo", "\0\0\0\x01\0\0\0\x01", 4},
	};

	for (unsigned k = 0; k < MU_COUNT(floods); k++) {
		struct fixture hostile[CLIENTS] = {0}, *f = *state;

		for (int i = 0; i < CLIENTS; i++) {
			client_init(&hostile[i], f->port);
			begin_flood(&hostile[i], floods[k].path, floods[k].type, floods[k].bytes,
				    floods[k].len);
		}
		for (int i = 0; i < CLIENTS; i++)
			pour(&hostile[i], 10); /* what fits */
		assert_others_are_served(f);
		for (int i = 0; i < CLIENTS; i++)
			client_fini(&hostile[i]);
	}
}

/* gRPC's clients move all windows now and then; thousands of times a second nobody has to. */
static void windows_that_move_too_often__end_the_connection(void **state)
{
	static const char *const to[] = {"\0\4\0\0\0\x01", "\0\4\0\0\0\x02"};
	struct fixture *f = *state;

	for (int i = 0; i < 900; i++)
		frame(f, H2_SETTINGS, 0, 0, to[i % 2], 6);
	frame(f, H2_PING, 0, 0, "12345678", 8);
	assert_true(pour(f, 1000));
	assert_true(await(f, H2_PING, H2_ACK, 0));
	for (int i = 0; i < 100000; i++)
		frame(f, H2_SETTINGS, 0, 0, to[i % 2], 6);
	pour(f, 1000);
	assert_false(await(f, 255, 0, 0));
	assert_int_equal(f->went_away, H2_ENHANCE_YOUR_CALM + 1);
}

/* Half a frame, and then nothing. */
static void clients_that_stop_in_the_middle__keep_nobody_out(void **state)
{
	enum { CLIENTS = 200 };
	struct fixture *f = *state, halves[CLIENTS] = {0};

	for (int i = 0; i < CLIENTS; i++) {
		client_init(&halves[i], f->port);
		call(&halves[i], 1, "/t/Echo", "never whole");
		halves[i].out.len -= (size_t)i % 60;
		flush(&halves[i]);
	}
	assert_others_are_served(f);
	for (int i = 0; i < CLIENTS; i++)
		client_fini(&halves[i]);
	assert_others_are_served(f);
}

#define WITH_SERVER(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_SERVER(calls_that_are_taken_back_at_once__leave_nothing),
	    WITH_SERVER(answers_that_have_no_room__go_when_they_are_taken_back),
	    WITH_SERVER(answers_behind_a_full_connection__go_when_they_are_taken_back),
	    WITH_SERVER(pings_of_who_never_reads__are_heard_up_to_a_limit),
	    WITH_SERVER(header_block_without_end__ends_the_connection),
	    WITH_SERVER(headers_that_unpack_to_megabytes__are_refused),
	    WITH_SERVER(frame_that_is_too_long__ends_the_connection),
	    WITH_SERVER(windows_that_move_for_thousands__hold_up_nobody),
	    WITH_SERVER(windows_that_move_too_often__end_the_connection),
	    WITH_SERVER(clients_that_stop_in_the_middle__keep_nobody_out),
	};

	mu_log_set_level(MU_ERROR + 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
