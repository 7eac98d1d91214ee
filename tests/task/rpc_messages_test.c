/* SPDX-License-Identifier: Apache-2.0 */
/* Hand-written encodings compared with generated ones, and truncated or corrupted messages. */
#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"
#include "proto/worker.pb-c.h"
#include "task/messages/control.h"
#include "task/messages/step_messages.h"
#include "task/messages/tensor_writer.h"
#include "task/rpc/bytes.h"
#include "tests/test.h"

static struct mu_tensor floats(int64_t n)
{
	struct mu_shape shape = mu_shape_vec(n);
	struct mu_tensor t;

	assert_int_equal(mu_tensor_new(&t, MU_FLOAT, &shape, NULL), 0);
	for (int64_t i = 0; i < n; i++)
		MU_DATA(float, &t)[i] = (float)i;
	return t;
}

static void control_message__packed_and_unpacked__is_equal(void **state)
{
	Muster__CleanupAllRequest m = MUSTER__CLEANUP_ALL_REQUEST__INIT, *got;
	char *names[] = {"a", "", "c"};
	MU_AUTO_BUF b = {0};
	struct mu_arena a;
	struct mu_err err;

	mu_arena_init(&a);
	m.n_container = 3;
	m.container = names;
	control_pack(&b, &m);
	got = control_unpack(&a, &muster__cleanup_all_request__descriptor, mu_buf_span(&b), &err);
	assert_non_null(got);
	assert_int_equal(got->n_container, 3);
	assert_string_equal(got->container[2], "c");
	mu_arena_fini(&a);
}

static void hand_written_encoding__equals_the_generated_one(void **state)
{
	struct mu_arena a;
	MU_AUTO_BUF hand = {0};
	MU_AUTO_BUF generated = {0};
	Muster__CleanupGraphRequest m = MUSTER__CLEANUP_GRAPH_REQUEST__INIT;
	Muster__DeregisterGraphRequest d = MUSTER__DEREGISTER_GRAPH_REQUEST__INIT;
	struct run_graph_request run;
	struct mu_err err;

	m.step_id = 0x1ffffffffffffff;
	control_pack(&generated, &m);
	mu_pb_put_int(&hand, 1, m.step_id);
	assert_true(mu_span_eq(mu_buf_span(&hand), mu_buf_span(&generated)));
	/* field 1 of both messages is the graph handle */
	mu_arena_init(&a);
	d.graph_handle = "0001";
	mu_buf_clear(&generated);
	control_pack(&generated, &d);
	assert_ok(run_graph_request_parse(&run, mu_buf_span(&generated), &a, &err), &err);
	assert_string_equal(run.graph, "0001");
	mu_arena_fini(&a);
}

static void control_message__of_too_many_elements__is_invalid(void **state)
{
	/* 60 MB of empty strings: two bytes each on the wire, many in memory */
	size_t n = 60u << 20;
	MU_AUTO_FREE char *bytes = malloc(n);
	struct mu_arena a;
	struct mu_err err = {0};

	assert_non_null(bytes);
	for (size_t i = 0; i < n; i += 2) {
		bytes[i] = 0x0a;
		bytes[i + 1] = 0;
	}
	mu_arena_init(&a);
	assert_null(control_unpack(&a, &muster__cleanup_all_request__descriptor,
				   (struct mu_span){bytes, n}, &err));
	assert_int_equal(err.code, MU_INVALID_ARGUMENT);
	mu_arena_fini(&a);
}

static void run_graph_request__written_and_parsed__is_equal(void **state)
{
	struct run_graph_request m = {.graph = "g1",
				      .session = "s1",
				      .step_id = -5,
				      .request_id = 77},
				 got;
	MU_AUTO_BUF b = {0};
	struct mu_arena a;
	struct mu_err err;

	m.store_errors = m.session_called = true;
	run_graph_request_write(&b, &m);
	mu_arena_init(&a);
	assert_ok(run_graph_request_parse(&got, mu_buf_span(&b), &a, &err), &err);
	assert_string_equal(got.graph, "g1");
	assert_string_equal(got.session, "s1");
	assert_int_equal(got.step_id, -5);
	assert_int_equal(got.request_id, 77);
	assert_true(got.store_errors && got.session_called && !got.partial);
	mu_arena_fini(&a);
}

static void truncated_request__is_invalid_or_has_fewer_fields(void **state)
{
	MU_AUTO_BUF b = {0};
	struct run_step_request step;
	struct run_graph_request run;
	struct recv_tensor_request recv;
	struct mu_tensor t = floats(3);
	struct tensor_writer w = {0};
	struct mu_err err;

	mu_pb_put_str(&b, 1, "0123456789abcdef");
	tensor_writer_put_named(&w, 2, "x:0", &t);
	mu_buf_put(&b, w.buf.data, w.buf.len);
	mu_pb_put_str(&b, 3, "y:0");
	mu_pb_put_str(&b, 4, "train");
	mu_pb_put_int(&b, 8, 1234567);
	for (size_t n = 0; n <= b.len; n++) {
		/* a copy of exact size, so that a sanitizer detects a read past the end */
		MU_AUTO_FREE char *copy = malloc(n ? n : 1);
		struct mu_span cut = {copy, n};
		struct mu_arena a;

		memcpy(copy, b.data, n);
		mu_arena_init(&a);
		if (run_step_request_parse(&step, cut, &a, &err) == 0 && n == b.len) {
			assert_int_equal(step.feeds.n, 1);
			assert_string_equal(step.feeds.list[0], "x:0");
			assert_string_equal(step.fetches.list[0], "y:0");
			assert_string_equal(step.targets.list[0], "train");
			assert_int_equal(step.request_id, 1234567);
		}
		run_callable_request_parse(&step, cut, &a, &err);
		run_graph_request_parse(&run, cut, &a, &err);
		recv_tensor_request_parse(&recv, cut, &a, &err);
		response_status_parse(cut, 3, 4, &err);
		mu_arena_fini(&a);
	}
	tensor_writer_fini(&w);
	mu_tensor_unref(&t);
}

static void tensor__written_and_parsed__is_equal(void **state)
{
	static const int64_t sizes[] = {0, 1, 200, 300, 1100, 5000, 100000};

	for (unsigned i = 0; i < MU_COUNT(sizes); i++) {
		struct tensor_writer w = {0};
		struct mu_tensor t = floats(sizes[i]), got;
		MU_AUTO_BUF flat = {0};
		struct mu_err err;
		bool dead = true;

		mu_pb_put_int(&w.buf, 3, 123456789);
		tensor_writer_put(&w, 1, &t);
		message_flatten(tensor_writer_message(&w), &flat);
		assert_ok(recv_tensor_response_parse(mu_buf_span(&flat), &got, &dead, &err), &err);
		assert_false(dead);
		assert_true(mu_shape_eq(&t.shape, &got.shape));
		if (sizes[i])
			assert_memory_equal(t.data, got.data, mu_tensor_bytes(&t));
		mu_tensor_unref(&got);
		tensor_writer_fini(&w);
		mu_tensor_unref(&t);
	}
}

/* Flips each bit of the first 20 bytes of a reply, which hold lengths. */
static void reply__with_a_flipped_bit__never_crashes_the_parser(void **state)
{
	struct tensor_writer w = {0};
	struct mu_tensor t = floats(2000), got;
	MU_AUTO_BUF flat = {0};
	struct mu_err err;
	bool dead;

	tensor_writer_put(&w, 1, &t);
	message_flatten(tensor_writer_message(&w), &flat);
	for (size_t at = 0; at < 20; at++)
		for (int bit = 0; bit < 8; bit++) {
			MU_AUTO_FREE char *copy = malloc(flat.len);

			memcpy(copy, flat.data, flat.len);
			copy[at] ^= (char)(1 << bit);
			if (!recv_tensor_response_parse((struct mu_span){copy, flat.len}, &got,
							&dead, &err))
				mu_tensor_unref(&got);
		}
	tensor_writer_fini(&w);
	mu_tensor_unref(&t);
}

/* The parsers need one contiguous message; gRPC delivers slices. */
static void message__in_slices__is_joined(void **state)
{
	struct rpc_message parts[3] = {{.head = MU_SPAN("one "), .next = &parts[1]},
				       {.head = MU_SPAN("two "), .next = &parts[2]},
				       {.head = MU_SPAN("three")}};
	struct rpc_bytes bytes;

	bytes_receive(&bytes, message_to_buffer(parts));
	assert_true(mu_span_is(rpc_bytes_flat(&bytes), "one two three"));
	assert_true(mu_span_is(rpc_bytes_flat(&bytes), "one two three"));
	bytes_fini(&bytes);
	bytes_receive(&bytes, message_to_buffer(&parts[2]));
	assert_true(mu_span_is(rpc_bytes_flat(&bytes), "three"));
	bytes_fini(&bytes);
	bytes_receive(&bytes, NULL);
	assert_true(mu_span_is(rpc_bytes_flat(&bytes), ""));
	bytes_fini(&bytes);
}

static void dead_tensor__written_and_parsed__is_dead(void **state)
{
	struct mu_tensor got;
	struct mu_err err;
	bool dead = false;

	assert_ok(recv_tensor_response_parse(MU_SPAN("\x10\x01"), &got, &dead, &err), &err);
	assert_true(dead);
	assert_int_equal(got.shape.count, 0);
	mu_tensor_unref(&got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(control_message__packed_and_unpacked__is_equal),
	    cmocka_unit_test(hand_written_encoding__equals_the_generated_one),
	    cmocka_unit_test(control_message__of_too_many_elements__is_invalid),
	    cmocka_unit_test(run_graph_request__written_and_parsed__is_equal),
	    cmocka_unit_test(truncated_request__is_invalid_or_has_fewer_fields),
	    cmocka_unit_test(tensor__written_and_parsed__is_equal),
	    cmocka_unit_test(reply__with_a_flipped_bit__never_crashes_the_parser),
	    cmocka_unit_test(message__in_slices__is_joined),
	    cmocka_unit_test(dead_tensor__written_and_parsed__is_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
