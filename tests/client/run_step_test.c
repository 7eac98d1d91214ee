/* SPDX-License-Identifier: Apache-2.0 */
/* RunStep messages: encoded requests, and valid and invalid replies. */
#include "tests/test.h"

#include "client/session/run_step.h"
#include "lib/base/pb.h"
#include "lib/tensor/tensor_proto.h"

static struct mu_err err;
static struct mu_builder *b;
static struct mu_out x;

static int setup(void **state)
{
	b = mu_builder_new();
	x = mu_const_float(b, 1);
	return 0;
}

static int teardown(void **state)
{
	mu_builder_free(b);
	return 0;
}

/* The body of field `number` of a message, the nth time it occurs. */
static struct mu_span field(struct mu_span message, uint32_t number, int nth)
{
	struct mu_pb m = mu_pb_of(message);
	struct mu_pb_field f;

	while (mu_pb_next(&m, &f))
		if (f.number == number && nth-- == 0)
			return f.bytes;
	assert_false(m.bad);
	return (struct mu_span){NULL, 0};
}

static void large_feed__is_sent_without_a_copy(void **state)
{
	struct mu_out fetch[2] = {x, x};
	struct mu_shape shape = mu_shape_vec(5000);
	struct run_step r = {0};
	MU_AUTO_TENSOR t = {0};
	MU_AUTO_TENSOR back = {0};
	MU_AUTO_BUF whole = {0};

	assert_ok(mu_tensor_new(&t, MU_FLOAT, &shape, &err), &err);
	for (int i = 0; i < 5000; i++)
		MU_DATA(float, &t)[i] = (float)i;
	struct mu_feed feed = {x, &t};
	struct mu_run run = {.feeds = &feed, .n_feeds = 1, .fetches = fetch, .n_fetches = 2};

	assert_ok(run_step_encode(&r, "h", &run, 250, 7, &err), &err);
	assert_ptr_equal(r.payload, &t);
	assert_int_equal(r.payload_len, 20000);
	mu_buf_put(&whole, r.head.data, r.head.len);
	mu_buf_put(&whole, t.data, r.payload_len);

	struct mu_span body = field(mu_buf_span(&whole), 2, 0);
	assert_true(mu_span_is(field(body, 1, 0), "Const:0"));
	assert_ok(mu_tensor_parse(&back, field(body, 2, 0), &err), &err);
	assert_float_equal(MU_DATA(float, &back)[4999], 4999, 0);
	assert_true(mu_span_is(field(mu_buf_span(&whole), 3, 0), "Const:0"));
	assert_null(field(mu_buf_span(&whole), 3, 1).data); /* a duplicate fetch is sent once */
	run_step_fini(&r);
}

static void feed_fetch_or_target_without_a_node__fails(void **state)
{
	struct run_step r = {0};
	struct mu_out none = MU_NO_OUT;
	struct mu_run run = {.fetches = &none, .n_fetches = 1};

	assert_fails(run_step_encode(&r, "h", &run, 0, 1, &err), &err, MU_INVALID_ARGUMENT,
		     "fetch 0");
	run_step_fini(&r);
}

static void error_in_the_reply__is_the_error_of_the_step(void **state)
{
	MU_AUTO_BUF reply = {0};
	struct mu_run run = {.fetches = &x, .n_fetches = 1};
	struct mu_tensor v;

	mu_pb_put_int(&reply, 3, MU_ABORTED);
	mu_pb_put_str(&reply, 4, "Session 12 is not found.");
	assert_fails(run_step_decode(mu_buf_span(&reply), &run, &v, &err), &err, MU_ABORTED,
		     "Session 12");
}

static void reply_without_a_value__fails(void **state)
{
	struct mu_run run = {.fetches = &x, .n_fetches = 1};
	struct mu_tensor v;

	assert_fails(run_step_decode(MU_SPAN(""), &run, &v, &err), &err, MU_INTERNAL, "Const:0");
	assert_fails(run_step_decode(MU_SPAN("\x0a\x7f"), &run, &v, &err), &err, MU_INTERNAL,
		     "truncated");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(large_feed__is_sent_without_a_copy),
	    T(feed_fetch_or_target_without_a_node__fails),
	    T(error_in_the_reply__is_the_error_of_the_step),
	    T(reply_without_a_value__fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
