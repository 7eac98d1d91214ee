/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP/2 server by a client that writes its bytes by hand: what gRPC's own clients never do, or
 * never twice the same way. */
#include "tests/task/h2_raw.h"

#include <pthread.h>
#include <zlib.h>

/* ---- the server ---- */

static void echo(struct rpc_call *call, void *ctx)
{
	struct rpc_message m = {.head = rpc_bytes_flat(rpc_request(call))};

	rpc_reply(call, &m);
}

static void left(struct rpc_call *call, void *ctx)
{
	MU_AUTO_FREE char *text = mu_xasprintf("%ld", rpc_time_left_ms(call));
	struct rpc_message m = {.head = mu_span_of(text)};

	rpc_reply(call, &m);
}

/* A MiB of zeros that is borrowed. */
static void big(struct rpc_call *call, void *ctx)
{
	struct mu_shape shape = mu_shape_vec(1 << 18);
	struct rpc_message m = {.payload_len = 1 << 20};
	struct mu_tensor t;

	assert_int_equal(mu_tensor_new(&t, MU_FLOAT, &shape, NULL), 0);
	memset(t.data, 0, m.payload_len);
	m.payload = &t;
	rpc_reply(call, &m);
	mu_tensor_unref(&t);
}

static void refuse(struct rpc_call *call, void *ctx)
{
	struct mu_err err;

	mu_fail(&err, MU_NOT_FOUND, "%s", "100% of 'ä' are missing\n");
	rpc_reply_error(call, &err);
}

static const struct rpc_method methods[] = {
    {"/t/Echo", echo}, {"/t/Left", left}, {"/t/Big", big}, {"/t/Fail", refuse}};

static int start(void **state)
{
	*state = server_with(methods, MU_COUNT(methods));
	return 0;
}

/* ---- what has to work ---- */

static void a_call_is_answered_again_and_again(void **state)
{
	struct fixture *f = *state;

	for (uint32_t i = 0; i < 50; i++) {
		call(f, 2 * i + 1, "/t/Echo", "hello");
		flush(f);
		assert_echoed(f, 2 * i + 1, "hello");
	}
}

static void bytes_that_come_one_by_one_make_a_call(void **state)
{
	struct fixture *f = *state;

	call(f, 1, "/t/Echo", "drip");
	for (size_t i = 0; i < f->out.len; i++)
		assert_int_equal(send(f->fd, f->out.data + i, 1, MSG_NOSIGNAL), 1);
	assert_echoed(f, 1, "drip");
}

static void padding_priority_and_continuation_are_no_part_of_a_call(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, "\x03\0\0\0\0\x10", 6); /* three bytes of padding; a priority */
	request_fields(&b, "/t/Echo");
	mu_buf_put(&b, "\0\0\0", 3);
	frame(f, H2_HEADERS, H2_PADDED | H2_HAS_PRIORITY, 1, b.data, b.len);
	mu_buf_clear(&b);
	field(&b, "x", "y");
	frame(f, H2_CONTINUATION, H2_END_HEADERS, 1, b.data, b.len);
	frame(f, H2_DATA, H2_PADDED, 1, "\x02\0\0\0\0\x03y\0\0", 9);
	frame(f, 77, 0, 0, "unheard of", 10);
	frame(f, H2_DATA, 0, 1, NULL, 0);
	frame(f, H2_DATA, 0, 1, "es", 2);
	frame(f, H2_HEADERS, H2_END_HEADERS | H2_END_STREAM, 1, NULL, 0);
	flush(f);
	assert_echoed(f, 1, "yes");
}

static void a_recent_field_is_known_by_its_index(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, "\x83\x86\x44\x07/t/Echo", 11); /* with :path into the table */
	frame(f, H2_HEADERS, H2_END_HEADERS, 1, b.data, b.len);
	message(f, 1, "first");
	frame(f, H2_HEADERS, H2_END_HEADERS, 3, "\x83\x86\xbe", 3);
	message(f, 3, "second");
	flush(f);
	assert_echoed(f, 1, "first");
	assert_echoed(f, 3, "second");
}

static void the_clients_deadline_is_known(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};

	request_fields(&b, "/t/Left");
	field(&b, "grpc-timeout", "300S");
	frame(f, H2_HEADERS, H2_END_HEADERS, 1, b.data, b.len);
	message(f, 1, "");
	flush(f);
	answer(f, 1);
	assert_in_range(atoi(f->body.data + 5), 200000, 300000);
}

static void compressed(struct fixture *f, uint32_t stream, const char *message, size_t n)
{
	MU_AUTO_BUF b = {0};

	request_fields(&b, "/t/Echo");
	field(&b, "grpc-encoding", "deflate");
	frame(f, H2_HEADERS, H2_END_HEADERS, stream, b.data, b.len);
	frame(f, H2_DATA, H2_END_STREAM, stream, message, n);
	flush(f);
}

static void a_compressed_message_is_unpacked_up_to_the_limit(void **state)
{
	static char zeros[2 << 20], packed[64 << 10];
	struct fixture *f = *state;
	uLongf n = sizeof(packed) - 5;

	packed[0] = 1;
	assert_int_equal(compress((Bytef *)packed + 5, &n, (const Bytef *)"squeezed", 8), Z_OK);
	h2_put32(packed + 1, (uint32_t)n);
	compressed(f, 1, packed, n + 5);
	assert_echoed(f, 1, "squeezed");
	packed[7] ^= 0x55;
	compressed(f, 3, packed, n + 5);
	answer(f, 3);
	assert_string_equal(f->status, "3");
	n = sizeof(packed) - 5;
	assert_int_equal(compress((Bytef *)packed + 5, &n, (const Bytef *)zeros, sizeof(zeros)),
			 Z_OK);
	h2_put32(packed + 1, (uint32_t)n);
	compressed(f, 5, packed, n + 5);
	answer(f, 5);
	assert_string_equal(f->status, "8");
}

static void an_error_has_its_code_and_a_text_that_http_can_carry(void **state)
{
	struct fixture *f = *state;

	call(f, 1, "/t/Fail", "");
	flush(f);
	answer(f, 1);
	assert_string_equal(f->status, "5");
	assert_string_equal(f->text, "100%25 of '%C3%A4' are missing%0A");
}

static void an_answer_waits_for_the_clients_windows(void **state)
{
	static const char narrow[] = "\0\4\0\0\0\x0a"; /* ten bytes for a stream */
	struct fixture *f = *state;
	char more[4];

	frame(f, H2_SETTINGS, 0, 0, narrow, 6);
	call(f, 1, "/t/Echo", "longer than its window");
	call(f, 3, "/t/Echo", "fits");
	flush(f);
	assert_echoed(f, 3, "fits");
	h2_put32(more, 1000);
	frame(f, H2_WINDOW_UPDATE, 0, 1, more, 4);
	flush(f);
	answer(f, 1);
	assert_string_equal(f->status, "0");
	/* the first ten bytes came before the other answer */
	assert_int_equal(f->body.len, 5 + strlen("longer than its window") - 10);
}

static void a_large_answer_comes_in_frames_that_the_client_takes(void **state)
{
	struct fixture *f = *state;
	char more[4];

	h2_put32(more, 1 << 24);
	frame(f, H2_WINDOW_UPDATE, 0, 0, more, 4);
	call(f, 1, "/t/Big", "");
	frame(f, H2_WINDOW_UPDATE, 0, 1, more, 4);
	flush(f);
	answer(f, 1);
	assert_int_equal(f->body.len, 5 + (1 << 20));
	assert_true(f->data_frames >= (1 << 20) / H2_DEFAULT_FRAME);
}

static void a_client_without_a_table_gets_whole_fields(void **state)
{
	struct fixture *f = *state;

	frame(f, H2_SETTINGS, 0, 0, "\0\1\0\0\0\0", 6);
	for (uint32_t id = 1; id < 7; id += 2)
		call(f, id, "/t/Echo", "plain");
	flush(f);
	for (uint32_t id = 1; id < 7; id += 2) {
		f->type[0] = 0;
		assert_echoed(f, id, "plain");
	}
	assert_int_equal(f->hpack.n, 0);
}

static void a_ping_comes_back(void **state)
{
	struct fixture *f = *state;

	frame(f, H2_PING, 0, 0, "12345678", 8);
	flush(f);
	assert_true(await(f, H2_PING, H2_ACK, 0));
}

/* ---- what is refused, while the connection goes on ---- */

static void refused_calls_say_why(void **state)
{
	static const struct {
		const char *path, *data;
		size_t len;
		const char *status, *text;
	} rows[] = {
	    {"/t/Nothing", "\0\0\0\0\0", 5, "12", "/t/Nothing"},
	    {"/t/Echo", "", 0, "3", "without a request"},
	    {"/t/Echo", "\0\0\0", 3, "3", "cut short"},
	    {"/t/Echo", "\0\0\0\0\5abc", 8, "3", "cut short"},
	    {"/t/Echo", "\0\0\0\0\1abc", 8, "3", "one message"},
	    {"/t/Echo", "\0\0\x20\0\0abc", 8, "8", "longer than"},
	    {"/t/Echo", "\1\0\0\0\1a", 6, "12", "compress"},
	};
	struct fixture *f = *state;
	uint32_t id = 1;

	for (unsigned i = 0; i < MU_COUNT(rows); i++, id += 2) {
		headers(f, id, rows[i].path);
		frame(f, H2_DATA, H2_END_STREAM, id, rows[i].data, rows[i].len);
		flush(f);
		answer(f, id);
		assert_string_equal(f->status, rows[i].status);
		assert_non_null(strstr(f->text, rows[i].text));
	}
	call(f, id, "/t/Echo", "still here");
	flush(f);
	assert_echoed(f, id, "still here");
}

static void a_malformed_request_ends_its_stream_only(void **state)
{
	struct fixture *f = *state;
	MU_AUTO_BUF b = {0};

	request_fields(&b, "/t/Echo");
	field(&b, "Upper", "case");
	frame(f, H2_HEADERS, H2_END_HEADERS, 1, b.data, b.len);
	call(f, 3, "/t/Echo", "next");
	flush(f);
	assert_echoed(f, 3, "next");
	assert_int_equal(f->resets, H2_PROTOCOL_ERROR + 1);
}

/* ---- what ends the connection ---- */

static void broken_rules_end_the_connection_with_a_reason(void **state)
{
	static const struct {
		uint8_t type, flags;
		uint32_t stream;
		const char *payload;
		size_t len;
		enum h2_code code;
	} rows[] = {
	    {H2_PING, 0, 0, "short", 5, H2_FRAME_SIZE_ERROR},
	    {H2_PING, 0, 1, "12345678", 8, H2_PROTOCOL_ERROR},
	    {H2_DATA, 0, 1, "x", 1, H2_PROTOCOL_ERROR},
	    {H2_DATA, H2_PADDED, 1, "", 0, H2_PROTOCOL_ERROR},
	    {H2_HEADERS, H2_END_HEADERS, 2, "\x83", 1, H2_PROTOCOL_ERROR},
	    {H2_HEADERS, H2_END_HEADERS, 1, "\xff\xff\xff\xff\xff\xff", 6, H2_COMPRESSION_ERROR},
	    {H2_HEADERS, H2_END_HEADERS | H2_PADDED, 1, "\x09", 1, H2_PROTOCOL_ERROR},
	    {H2_CONTINUATION, H2_END_HEADERS, 1, "\x83", 1, H2_PROTOCOL_ERROR},
	    {H2_SETTINGS, 0, 0, "\0\4\xff\xff\xff\xff", 6, H2_FLOW_CONTROL_ERROR},
	    {H2_SETTINGS, 0, 0, "\0\5\0\0\0\1", 6, H2_PROTOCOL_ERROR},
	    {H2_SETTINGS, 0, 0, "abc", 3, H2_FRAME_SIZE_ERROR},
	    {H2_WINDOW_UPDATE, 0, 0, "\0\0\0\0", 4, H2_PROTOCOL_ERROR},
	    {H2_WINDOW_UPDATE, 0, 0, "\x7f\xff\xff\xff", 4, H2_FLOW_CONTROL_ERROR},
	    {H2_RST_STREAM, 0, 1, "\0\0\0\0", 4, H2_PROTOCOL_ERROR},
	    {H2_PUSH_PROMISE, 0, 1, "\0\0\0\2", 4, H2_PROTOCOL_ERROR},
	};

	stop(state);
	for (unsigned i = 0; i < MU_COUNT(rows); i++) {
		struct fixture *f;

		start(state);
		f = *state;
		frame(f, rows[i].type, rows[i].flags, rows[i].stream, rows[i].payload, rows[i].len);
		flush(f);
		assert_false(await(f, 255, 0, 0));
		assert_int_equal(f->went_away, rows[i].code + 1);
		if (i + 1 < MU_COUNT(rows))
			stop(state);
	}
}

static void who_speaks_something_else_is_hung_up_on(void **state)
{
	struct fixture *f = *state;

	mu_buf_clear(&f->out);
	mu_buf_puts(&f->out, "GET / HTTP/1.1\r\n\r\n");
	flush(f);
	assert_false(await(f, 255, 0, 0));
}

#define WITH_SERVER(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_SERVER(a_call_is_answered_again_and_again),
	    WITH_SERVER(bytes_that_come_one_by_one_make_a_call),
	    WITH_SERVER(padding_priority_and_continuation_are_no_part_of_a_call),
	    WITH_SERVER(a_recent_field_is_known_by_its_index),
	    WITH_SERVER(the_clients_deadline_is_known),
	    WITH_SERVER(a_compressed_message_is_unpacked_up_to_the_limit),
	    WITH_SERVER(an_error_has_its_code_and_a_text_that_http_can_carry),
	    WITH_SERVER(an_answer_waits_for_the_clients_windows),
	    WITH_SERVER(a_large_answer_comes_in_frames_that_the_client_takes),
	    WITH_SERVER(a_client_without_a_table_gets_whole_fields),
	    WITH_SERVER(a_ping_comes_back),
	    WITH_SERVER(refused_calls_say_why),
	    WITH_SERVER(a_malformed_request_ends_its_stream_only),
	    WITH_SERVER(broken_rules_end_the_connection_with_a_reason),
	    WITH_SERVER(who_speaks_something_else_is_hung_up_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
