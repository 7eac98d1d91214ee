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

	run_step_encode(&r, "h", &run, 250, 7);
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

static void fetch_that_is_not_of_the_graph__fails(void **state)
{
	struct mu_builder *other = mu_builder_new();
	const struct {
		struct mu_out at;
		const char *message;
	} cases[] = {
	    {MU_NO_OUT, "fetch 0: there is no node"},
	    {mu_const_float(other, 2), "fetch 0: node 'Const' is in another graph"},
	    {mu_port(x, 5), "fetch 0: Const node 'Const' has no output 5"},
	    {mu_port(x, MU_CONTROL), "fetch 0: Const node 'Const' has no output -1"},
	};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct mu_run run = {.fetches = &cases[i].at, .n_fetches = 1};

		assert_fails(run_step_check(b, &run, true, &err), &err, MU_INVALID_ARGUMENT,
			     cases[i].message);
	}
	struct mu_run run = {.targets = &cases[1].at, .n_targets = 1};
	assert_fails(run_step_check(b, &run, true, &err), &err, MU_INVALID_ARGUMENT,
		     "target 0: node 'Const' is in another graph");
	mu_builder_free(other);
}

static void fed_value_of_another_type_or_shape__fails(void **state)
{
	struct mu_out in = mu_placeholder(b, "in", MU_FLOAT, MU_SHAPE(-1, 3));
	struct mu_shape flat = mu_shape_vec(3), rows;
	MU_AUTO_TENSOR vector = {0};
	MU_AUTO_TENSOR ints = {0};
	MU_AUTO_TENSOR good = {0};

	assert_ok(mu_shape_set(&rows, 2, (int64_t[]){5, 3}, &err), &err);
	assert_ok(mu_tensor_new(&vector, MU_FLOAT, &flat, &err), &err);
	assert_ok(mu_tensor_new(&ints, MU_INT32, &rows, &err), &err);
	assert_ok(mu_tensor_new(&good, MU_FLOAT, &rows, &err), &err);
	struct mu_feed feed = {in, &vector};
	struct mu_run run = {.feeds = &feed, .n_feeds = 1};
	assert_fails(run_step_check(b, &run, true, &err), &err, MU_INVALID_ARGUMENT,
		     "feed 0: 'in' is float of [?,3], but the value is float of [3]");
	feed.value = &ints;
	assert_fails(run_step_check(b, &run, true, &err), &err, MU_INVALID_ARGUMENT,
		     "but the value is int32 of [5,3]");
	feed.value = NULL;
	assert_fails(run_step_check(b, &run, true, &err), &err, MU_INVALID_ARGUMENT,
		     "'in' gets no value");
	assert_ok(run_step_check(b, &run, false, &err), &err);
	feed.value = &good;
	assert_ok(run_step_check(b, &run, true, &err), &err);
}

static void name_of_any_length__is_fetched(void **state)
{
	char name[3000];
	struct run_step r = {0};

	memset(name, 'n', sizeof name - 1);
	name[sizeof name - 1] = '\0';
	struct mu_out out =
	    mu_op_add(b, &(struct mu_op_args){.op = "Identity", .name = name, .in = &x, .n_in = 1});
	struct mu_run run = {.fetches = &out, .n_fetches = 1};
	assert_ok(mu_builder_check(b, &err), &err);
	run_step_encode(&r, "h", &run, 0, 1);
	assert_int_equal(field(mu_buf_span(&r.head), 3, 0).len, strlen(out.node->name) + 2);
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
	    T(fetch_that_is_not_of_the_graph__fails),
	    T(fed_value_of_another_type_or_shape__fails),
	    T(name_of_any_length__is_fetched),
	    T(error_in_the_reply__is_the_error_of_the_step),
	    T(reply_without_a_value__fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
