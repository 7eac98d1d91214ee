/* SPDX-License-Identifier: Apache-2.0 */
/* The frames of a stream: written and parsed again; malformed frames are rejected. */
#include "task/peer/stream_wire.h"
#include "tests/test.h"

#define LLVMFuzzerTestOneInput stream_fuzz_one
#include "tests/fuzz/stream_fuzz.c"
#undef LLVMFuzzerTestOneInput
#include "tests/fuzz/mutate.h"

static struct mu_span head_of(const struct mu_buf *b, struct stream_header *h)
{
	struct mu_err err;

	assert_true(b->len >= STREAM_HEADER);
	assert_ok(stream_header_parse(h, b->data, &err), &err);
	assert_true(b->len >= STREAM_HEADER + h->head_len);
	return (struct mu_span){b->data + STREAM_HEADER, h->head_len};
}

static void control_frames__written_and_parsed__are_equal(void **state)
{
	struct stream_hello hello = {.key = "0123456789abcde",
				     .sender_incarnation = 3,
				     .receiver_incarnation = 4,
				     .task = "t"};
	struct stream_run run = {-5, "session", "graph"};
	struct mu_err status = {MU_ABORTED, "why"}, err;
	MU_AUTO_BUF a = {0};
	MU_AUTO_BUF b = {0};
	MU_AUTO_BUF c = {0};
	struct stream_header h;
	struct stream_hello hello2;
	struct stream_run run2;

	stream_hello_write(&a, STREAM_HELLO, 0, &hello);
	assert_ok(stream_hello_parse(&hello2, head_of(&a, &h), &err), &err);
	assert_memory_equal(hello.key, hello2.key, STREAM_KEY);
	assert_int_equal(hello2.sender_incarnation, 3);
	assert_int_equal(hello2.receiver_incarnation, 4);
	assert_string_equal(hello2.task, "t");
	assert_ok(stream_run_write(&b, -9, &run, &err), &err);
	assert_ok(stream_run_parse(&run2, head_of(&b, &h), &err), &err);
	assert_int_equal(h.step_id, -9);
	assert_int_equal(run2.request_id, -5);
	assert_string_equal(run2.session, "session");
	assert_string_equal(run2.graph, "graph");
	stream_run_done_write(&c, 8, &status);
	memset(&status, 0, sizeof(status));
	assert_ok(stream_run_done_parse(&status, head_of(&c, &h), &err), &err);
	assert_int_equal(status.code, MU_ABORTED);
	assert_string_equal(status.msg, "why");
}

static void tensors__written_and_parsed__are_equal(void **state)
{
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_BUF b = {0};
	struct mu_shape shape;
	struct stream_tensor got;
	struct mu_span head;
	struct stream_header h;
	struct mu_err err;
	size_t payload;

	assert_ok(mu_shape_set(&shape, 2, (int64_t[]){100, 50}, &err), &err);
	assert_ok(mu_tensor_new(&t, MU_INT64, &shape, &err), &err);
	assert_ok(stream_tensor_write(&b, 6, "key", &t, false, &payload, &err), &err);
	assert_int_equal(payload, 40000);
	head = head_of(&b, &h);
	assert_ok(stream_tensor_parse(&got, &h, head, &err), &err);
	assert_int_equal(h.payload_len, payload);
	assert_true(got.raw && got.dtype == MU_INT64 && mu_shape_eq(&got.shape, &shape));
	h.payload_len--;
	assert_int_equal(stream_tensor_parse(
			     &got, &h, (struct mu_span){b.data + STREAM_HEADER, h.head_len}, &err),
			 -MU_INVALID_ARGUMENT);
}

static void shared_tensors__written_and_parsed__are_equal(void **state)
{
	struct shm_handle handle = {7, 4096};
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_BUF b = {0};
	struct mu_shape shape;
	struct stream_tensor got;
	struct stream_header h;
	struct mu_span head;
	struct mu_err err;

	assert_ok(mu_shape_set(&shape, 2, (int64_t[]){3, 50}, &err), &err);
	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	assert_ok(stream_shared_write(&b, 6, "key", &t, &handle, &err), &err);
	head = head_of(&b, &h);
	assert_int_equal(h.payload_len, 0);
	assert_ok(stream_tensor_parse(&got, &h, head, &err), &err);
	assert_true(got.shared && !got.raw && mu_shape_eq(&got.shape, &shape));
	assert_int_equal(got.handle.id, 7);
	assert_int_equal(got.handle.offset, 4096);
	head.len--;
	assert_int_equal(stream_tensor_parse(&got, &h, head, &err), -MU_INVALID_ARGUMENT);
	h.flags |= STREAM_DEAD;
	head.len++;
	assert_int_equal(stream_tensor_parse(&got, &h, head, &err), -MU_INVALID_ARGUMENT);
}

static void offer__is_a_field_of_a_valid_get_status_reply(void **state)
{
	struct stream_offer o = {.version = STREAM_VERSION,
				 .port = 99,
				 .local = "name",
				 .key = "secret",
				 .incarnation = 12},
			    got;
	MU_AUTO_BUF b = {0};

	assert_false(stream_offer_parse(&got, MU_SPAN("\x0a\x02\x0a\x00")));
	mu_buf_put(&b, "\x0a\x02\x0a\x00", 4);
	stream_offer_write(&b, &o);
	assert_true(stream_offer_parse(&got, mu_buf_span(&b)));
	assert_int_equal(got.port, 99);
	assert_string_equal(got.local, "name");
	assert_memory_equal(got.key, o.key, STREAM_KEY);
}

static void malformed_frames__are_rejected(void **state)
{
	struct stream_hello hello = {.task = "/job:ps/replica:0/task:0"};
	struct stream_run run = {1, "s", "g"};
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_BUF b = {0};
	size_t limit = mu_tensor_limit, payload;
	float v = 1;

	stream_hello_write(&b, STREAM_HELLO, 0, &hello);
	stream_run_write(&b, 1, &run, NULL);
	assert_int_equal(mu_tensor_scalar(&t, MU_FLOAT, &v, NULL), 0);
	stream_tensor_write(&b, 1, "a;1;b;c;0:0", &t, false, &payload, NULL);
	stream_shared_write(&b, 1, "a;1;b;c;0:0", &t, &(struct shm_handle){1, 64}, NULL);
	stream_return_write(&b, MU_SPAN("12345678"));
	stream_run_done_write(&b, 1, NULL);
	mutate_run(stream_fuzz_one, b.data, b.len, 20000);
	mu_tensor_limit = limit;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(control_frames__written_and_parsed__are_equal),
	    cmocka_unit_test(tensors__written_and_parsed__are_equal),
	    cmocka_unit_test(shared_tensors__written_and_parsed__are_equal),
	    cmocka_unit_test(offer__is_a_field_of_a_valid_get_status_reply),
	    cmocka_unit_test(malformed_frames__are_rejected),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
