/* SPDX-License-Identifier: Apache-2.0 */
/* Callables: steps that run by handle, over a connection and in the same process. */
#include "tests/test.h"

#include "muster/session.h"
#include "task/rpc/channel.h"
#include "tests/client/server.h"

enum { LARGE = 100000, CALLS = 20 };

static struct mu_err err;

static void fill_sequence(struct mu_tensor *t, int64_t n, float first)
{
	struct mu_shape shape;

	assert_ok(mu_shape_set(&shape, 1, &n, &err), &err);
	assert_ok(mu_tensor_new(t, MU_FLOAT, &shape, &err), &err);
	for (int64_t k = 0; k < n; k++)
		MU_DATA(float, t)[k] = first + (float)k;
}

/* Fetches x - y twice; x and y are alternately large. */
static void run_callable(struct mu_callable *c, int round)
{
	MU_AUTO_TENSOR large = {0};
	MU_AUTO_TENSOR one = {0};
	bool first = round % 2;
	const struct mu_tensor *in[] = {first ? &large : &one, first ? &one : &large};
	struct mu_tensor out[2] = {{0}};

	fill_sequence(&large, LARGE, (float)round);
	fill_sequence(&one, 1, 7);
	assert_ok(mu_callable_run(c, in, out, &err), &err);
	for (int k = 0; k < 2; k++) {
		float last = MU_DATA(float, &out[k])[LARGE - 1];

		assert_int_equal(out[k].shape.count, LARGE);
		assert_float_equal(first ? last : -last, round + LARGE - 1 - 7, 0);
		mu_tensor_unref(&out[k]);
	}
}

/* The step also increments a counter. */
static void test_callable(const struct mu_session_options *options)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO(mu_callable_free) struct mu_callable *c = NULL;
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1));
	struct mu_out y = mu_placeholder(b, "y", MU_FLOAT, MU_SHAPE(-1));
	struct mu_var *v = mu_variable(b, "v", MU_FLOAT, MU_SCALAR, MU_ZEROS, false);
	struct mu_out more = mu_op(b, "AssignAdd", MU_IN(v->ref, mu_const_float(b, 1)));
	struct mu_out difference = mu_sub(b, x, y), fetches[] = {difference, difference};
	struct mu_feed feeds[] = {{x, NULL}, {y, NULL}};
	struct mu_run run = {.feeds = feeds,
			     .n_feeds = 2,
			     .fetches = fetches,
			     .n_fetches = 2,
			     .targets = &more,
			     .n_targets = 1};
	MU_AUTO_TENSOR count = {0};

	assert_ok(mu_session_open(&s, test_server(), b, options, &err), &err);
	assert_ok(mu_session_do(s, v->init, &err), &err);
	assert_ok(mu_session_callable(&c, s, &run, &err), &err);
	for (int round = 0; round < CALLS; round++)
		run_callable(c, round);
	assert_ok(mu_session_get(s, v->read, &count, &err), &err);
	assert_float_equal(*MU_DATA(float, &count), CALLS, 0);
}

static void callable__over_a_connection__runs_its_step(void **state)
{
	test_callable(&(struct mu_session_options){.isolate_state = true});
}

static void callable__with_a_server_in_the_process__runs_its_step(void **state)
{
	test_server();
	if (test_server_running)
		test_callable(&(struct mu_session_options){
		    .isolate_state = true,
		    .transport = {.call = task_server_call, .ctx = test_server_running}});
}

static void invalid_callable__reports_the_reason(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO(mu_callable_free) struct mu_callable *c = NULL;
	MU_AUTO(mu_callable_free) struct mu_callable *none = NULL;
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1)), nothing = MU_NO_OUT;
	struct mu_out y = mu_neg(b, x);
	struct mu_feed feed = {x, NULL};
	struct mu_run run = {.feeds = &feed, .n_feeds = 1, .fetches = &y, .n_fetches = 1};
	const struct mu_tensor *in[] = {NULL};
	MU_AUTO_TENSOR text = {0};
	struct mu_tensor out = {0};

	assert_ok(mu_session_open(&s, test_server(), b, NULL, &err), &err);
	assert_ok(mu_session_callable(&c, s, &run, &err), &err);
	assert_fails(mu_callable_run(c, in, &out, &err), &err, MU_INVALID_ARGUMENT, "feed 0");
	assert_ok(mu_tensor_string(&text, "no number", 9, &err), &err);
	in[0] = &text;
	assert_true(mu_callable_run(c, in, &out, &err) < 0);
	assert_false(mu_tensor_is_set(&out));
	run.fetches = &nothing;
	assert_fails(mu_session_callable(&none, s, &run, &err), &err, MU_INVALID_ARGUMENT,
		     "fetch 0");
	assert_null(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(callable__over_a_connection__runs_its_step),
	    cmocka_unit_test(callable__with_a_server_in_the_process__runs_its_step),
	    cmocka_unit_test(invalid_callable__reports_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
