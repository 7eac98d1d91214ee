/* SPDX-License-Identifier: Apache-2.0 */
/* Calls to a server that writes its bytes by hand: what servers may do, and what ours never does.
 */
#include "tests/test.h"

#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "task/rpc/channel.h"
#include "task/rpc/h2/frame.h"
#include "tests/wait.h"

#define HEAD "\x88" /* :status 200 */
#define OK                                                                                         \
	"\x00\x0bgrpc-status\x01"                                                                  \
	"0"

struct outcome {
	_Atomic int ended;
	struct mu_err err; /* code 0: it went well */
	char reply[64];
};
struct fixture {
	int listener, fd; /* the latest connection */
	struct rpc_channel *ch;
};

/* ---- the server ---- */

static void get(struct fixture *f, void *p, size_t n)
{
	for (char *at = p; n > 0;) {
		struct pollfd w = {.fd = f->fd, .events = POLLIN};
		ssize_t k;

		assert_int_equal(poll(&w, 1, 10000), 1);
		k = recv(f->fd, at, n, 0);
		assert_true(k > 0);
		at += k;
		n -= (size_t)k;
	}
}

static void frame(struct fixture *f, uint8_t type, uint8_t flags, uint32_t stream, const void *p,
		  size_t n)
{
	char bytes[512];

	assert_true(n + H2_HEADER <= sizeof(bytes));
	memcpy(h2_frame_put(bytes, (uint32_t)n, type, flags, stream), p, n);
	assert_int_equal(send(f->fd, bytes, n + H2_HEADER, MSG_NOSIGNAL), n + H2_HEADER);
}

static void number(struct fixture *f, uint8_t type, uint32_t stream, uint32_t n)
{
	char bytes[4];

	h2_put32(bytes, n);
	frame(f, type, 0, stream, bytes, sizeof(bytes));
}

/* Takes the channel's connection in, with these settings. */
static void take_in(struct fixture *f, const void *settings, size_t n)
{
	struct pollfd w = {.fd = f->listener, .events = POLLIN};
	char preface[H2_PREFACE_LEN];

	assert_int_equal(poll(&w, 1, 10000), 1);
	if (f->fd >= 0)
		close(f->fd);
	f->fd = accept(f->listener, NULL, NULL);
	get(f, preface, sizeof(preface));
	assert_memory_equal(preface, H2_PREFACE, sizeof(preface));
	frame(f, H2_SETTINGS, 0, 0, settings, n);
}

/* Frames until a request's end: its stream; 0 when nothing comes for a while. */
static uint32_t request(struct fixture *f, int wait_ms)
{
	char head[H2_HEADER], p[4096];

	for (;;) {
		struct pollfd w = {.fd = f->fd, .events = POLLIN};
		struct h2_frame h;

		if (poll(&w, 1, wait_ms) == 0)
			return 0;
		get(f, head, sizeof(head));
		h = h2_frame_get(head);
		assert_true(h.len <= sizeof(p));
		get(f, p, h.len);
		if (h.type == H2_DATA && h.flags & H2_END_STREAM)
			return h.stream;
	}
}

static void reply(struct fixture *f, uint32_t stream, const char *text)
{
	char data[64] = {0};
	size_t n = strlen(text);

	h2_put32(data + 1, (uint32_t)n);
	memcpy(data + 5, text, n);
	frame(f, H2_HEADERS, H2_END_HEADERS, stream, HEAD, 1);
	frame(f, H2_DATA, 0, stream, data, n + 5);
	frame(f, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, stream, OK, sizeof(OK) - 1);
}

/* ---- the client ---- */

static void ended(void *arg, const struct mu_err *err, struct rpc_bytes *got)
{
	struct outcome *o = arg;

	if (err)
		o->err = *err;
	else
		snprintf(o->reply, sizeof(o->reply), "%.*s", (int)rpc_bytes_flat(got).len,
			 rpc_bytes_flat(got).data);
	atomic_fetch_add(&o->ended, 1);
}

static void call(struct fixture *f, struct outcome *o)
{
	struct rpc_message m = {.head = MU_SPAN("ask")};
	struct mu_err err;

	*o = (struct outcome){0};
	assert_true(rpc_start(f->ch, "/t.T/Call", &m, 20000, 0, ended, o, &err) != 0);
}

static void await(struct outcome *o)
{
	UNTIL(atomic_load(&o->ended));
	assert_int_equal(atomic_load(&o->ended), 1);
}

static int start(void **state)
{
	struct fixture *f = MU_NEW(struct fixture);
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t len = sizeof(a);
	char target[32];
	struct mu_err err;

	f->fd = -1;
	f->listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(f->listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(f->listener, 8), 0);
	assert_int_equal(getsockname(f->listener, (struct sockaddr *)&a, &len), 0);
	snprintf(target, sizeof(target), "127.0.0.1:%d", ntohs(a.sin_port));
	assert_ok(rpc_channel_open(target, &f->ch, &err), &err);
	*state = f;
	return 0;
}

static int stop(void **state)
{
	struct fixture *f = *state;

	rpc_channel_close(f->ch);
	if (f->fd >= 0)
		close(f->fd);
	close(f->listener);
	free(f);
	return 0;
}

static void a_message_in_pieces_is_one(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "", 0);
	assert_int_equal(request(f, 10000), 1);
	frame(f, H2_HEADERS, H2_END_HEADERS, 1,
	      "\x08\x03"
	      "103",
	      5); /* more is to come */
	frame(f, H2_HEADERS, H2_END_HEADERS, 1, HEAD, 1);
	frame(f, H2_DATA, H2_PADDED, 1, "\x02\0\0\0\0\x03y\0\0", 9);
	frame(f, H2_DATA, 0, 1, "", 0);
	frame(f, H2_DATA, 0, 1, "es", 2);
	frame(f, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 1, OK, sizeof(OK) - 1);
	await(&o);
	assert_string_equal(o.reply, "yes");
}

static void a_text_is_decoded(void **state)
{
	static const char block[] = HEAD "\x00\x0bgrpc-status\x01"
					 "5"
					 "\x00\x0cgrpc-message\x12"
					 "100%25 %C3%A4 %zz%";
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "", 0);
	frame(f, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, request(f, 10000), block,
	      sizeof(block) - 1);
	await(&o);
	assert_int_equal(o.err.code, MU_NOT_FOUND);
	assert_string_equal(o.err.msg, "100% ä %zz%");
}

static void answers_that_are_none_are_errors(void **state)
{
	static const struct {
		const char *block;
		size_t len;
		enum mu_code code;
	} wrong[] = {
	    {HEAD, 1, MU_INTERNAL},                      /* no status */
	    {HEAD OK, sizeof(HEAD OK) - 1, MU_INTERNAL}, /* no message */
	    {"\x08\x03"
	     "503",
	     5, MU_UNAVAILABLE}, /* a proxy's */
	    {"\x08\x03"
	     "404",
	     5, MU_UNIMPLEMENTED},
	    {OK, sizeof(OK) - 1, MU_INTERNAL}, /* not even HTTP's status */
	};
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "", 0);
	for (unsigned i = 0; i < MU_COUNT(wrong); i++) {
		if (i)
			call(f, &o);
		frame(f, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, request(f, 10000),
		      wrong[i].block, wrong[i].len);
		await(&o);
		assert_int_equal(o.err.code, wrong[i].code);
	}
}

static void a_refused_call_is_made_once_more(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "", 0);
	number(f, H2_RST_STREAM, request(f, 10000), H2_REFUSED_STREAM);
	assert_int_equal(request(f, 10000), 3);
	reply(f, 3, "then");
	await(&o);
	assert_string_equal(o.reply, "then");
	call(f, &o);
	number(f, H2_RST_STREAM, request(f, 10000), H2_REFUSED_STREAM);
	number(f, H2_RST_STREAM, request(f, 10000), H2_REFUSED_STREAM);
	await(&o);
	assert_int_equal(o.err.code, MU_UNAVAILABLE);
}

/* The stream of the next HEADERS. */
static uint32_t opened(struct fixture *f)
{
	char head[H2_HEADER], p[4096];
	struct h2_frame h;

	do {
		get(f, head, sizeof(head));
		h = h2_frame_get(head);
		assert_true(h.len <= sizeof(p));
		get(f, p, h.len);
	} while (h.type != H2_HEADERS);
	return h.stream;
}

/* Most of it still waits for the window of its stream, which goes with the stream. */
static void a_call_that_is_refused_half_sent_is_made_once_more_whole(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "\0\4\0\0\0\1", 6);
	assert_int_equal(opened(f), 1);
	number(f, H2_RST_STREAM, 1, H2_REFUSED_STREAM);
	assert_int_equal(opened(f), 3);
	frame(f, H2_SETTINGS, 0, 0, "\0\4\0\0\xff\xff", 6);
	assert_int_equal(request(f, 10000), 3);
	reply(f, 3, "then");
	await(&o);
	assert_string_equal(o.reply, "then");
}

static void a_server_that_goes_away__ends_what_it_has_and_the_rest_goes_elsewhere(void **state)
{
	struct fixture *f = *state;
	struct outcome kept, other;

	call(f, &kept);
	take_in(f, "", 0);
	assert_int_equal(request(f, 10000), 1);
	call(f, &other);
	assert_int_equal(request(f, 10000), 3);
	frame(f, H2_GOAWAY, 0, 0, "\0\0\0\1\0\0\0\0", 8); /* it has looked at the first alone */
	reply(f, 1, "kept");
	await(&kept);
	assert_string_equal(kept.reply, "kept");
	take_in(f, "", 0);
	assert_int_equal(request(f, 10000), 1);
	reply(f, 1, "other");
	await(&other);
	assert_string_equal(other.reply, "other");
}

static void no_more_calls_are_open_than_the_server_takes(void **state)
{
	struct fixture *f = *state;
	struct outcome first, second;

	call(f, &first);
	take_in(f, "\0\3\0\0\0\1", 6);
	assert_int_equal(request(f, 10000), 1);
	call(f, &second);
	assert_int_equal(request(f, 100), 0);
	reply(f, 1, "first");
	assert_int_equal(request(f, 10000), 3);
	reply(f, 3, "second");
	await(&first);
	await(&second);
	assert_string_equal(second.reply, "second");
}

static void a_server_without_a_table_gets_whole_fields(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "\0\1\0\0\0\0", 6);
	for (uint32_t id = 1; id < 7; id += 2) {
		if (id > 1)
			call(f, &o);
		assert_int_equal(request(f, 10000), id);
		reply(f, id, "plain");
		await(&o);
		assert_string_equal(o.reply, "plain");
	}
}

static void a_connection_that_breaks__fails_the_call_and_the_next_has_another(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "", 0);
	assert_int_equal(request(f, 10000), 1);
	shutdown(f->fd, SHUT_RDWR);
	await(&o);
	assert_int_equal(o.err.code, MU_UNAVAILABLE);
	assert_non_null(strstr(o.err.msg, "was lost"));
	call(f, &o);
	take_in(f, "", 0);
	reply(f, request(f, 10000), "again");
	await(&o);
	assert_string_equal(o.reply, "again");
}

static void who_speaks_something_else_is_unavailable(void **state)
{
	struct fixture *f = *state;
	struct outcome o;

	call(f, &o);
	take_in(f, "", 0);
	frame(f, H2_DATA, 0, 77, "?", 1);
	await(&o);
	assert_int_equal(o.err.code, MU_UNAVAILABLE);
	call(f, &o);
	{
		struct pollfd w = {.fd = f->listener, .events = POLLIN};

		assert_int_equal(poll(&w, 1, 10000), 1);
		close(f->fd);
		f->fd = accept(f->listener, NULL, NULL);
	}
	assert_int_equal(send(f->fd, "HTTP/1.1 400 no\r\n\r\n", 19, MSG_NOSIGNAL), 19);
	await(&o);
	assert_int_equal(o.err.code, MU_UNAVAILABLE);
	assert_non_null(strstr(o.err.msg, "cannot connect"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_message_in_pieces_is_one, start, stop),
	    cmocka_unit_test_setup_teardown(a_text_is_decoded, start, stop),
	    cmocka_unit_test_setup_teardown(answers_that_are_none_are_errors, start, stop),
	    cmocka_unit_test_setup_teardown(a_refused_call_is_made_once_more, start, stop),
	    cmocka_unit_test_setup_teardown(
		a_call_that_is_refused_half_sent_is_made_once_more_whole, start, stop),
	    cmocka_unit_test_setup_teardown(
		a_server_that_goes_away__ends_what_it_has_and_the_rest_goes_elsewhere, start, stop),
	    cmocka_unit_test_setup_teardown(no_more_calls_are_open_than_the_server_takes, start,
					    stop),
	    cmocka_unit_test_setup_teardown(a_server_without_a_table_gets_whole_fields, start,
					    stop),
	    cmocka_unit_test_setup_teardown(
		a_connection_that_breaks__fails_the_call_and_the_next_has_another, start, stop),
	    cmocka_unit_test_setup_teardown(who_speaks_something_else_is_unavailable, start, stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
