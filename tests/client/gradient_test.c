// SPDX-License-Identifier: Apache-2.0
/* Every op's gradient against central differences, on a real server.
 *
 * Each case builds y from x; the loss is the sum of y weighted by fixed odd numbers, so that no
 * symmetry hides a wrong gradient.
 */
#include "tests/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "muster/grad.h"
#include "muster/session.h"
#include "tests/client/server.h"

enum { MAX_VALUES = 24 };
#define STEP      1e-2f
#define TOLERANCE 2e-2

static struct mu_err err;

struct gradient_case {
	const char *name;
	struct mu_pshape shape; /* of x; a -1 is fed as 3 */
	struct mu_out (*y)(struct mu_builder *b, struct mu_out x);
	float lowest, highest; /* of the values of x */
};

static struct mu_out values(struct mu_builder *b, int rows, int columns, float phase)
{
	struct mu_shape s;
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_shape_set(&s, 2, (int64_t[]){rows, columns}, &err), &err);
	assert_ok(mu_tensor_new(&t, MU_FLOAT, &s, &err), &err);
	for (int i = 0; i < rows * columns; i++)
		MU_DATA(float, &t)[i] = sinf((float)i + phase) + 1.5f;
	return mu_const(b, NULL, &t);
}

static struct mu_out row(struct mu_builder *b, int n)
{
	return mu_reshape(b, values(b, 1, n, 2), mu_const_ints(b, (int32_t[]){n}, 1));
}

#define CASE(fn, expression)                                                                       \
	static struct mu_out fn(struct mu_builder *b, struct mu_out x)                             \
	{                                                                                          \
		return expression;                                                                 \
	}
CASE(y_matmul, mu_matmul(b, x, values(b, 4, 2, 0)))
CASE(y_matmul_right, mu_matmul(b, values(b, 2, 3, 0), x))
CASE(y_matmul_ta, mu_matmul_t(b, x, true, values(b, 3, 2, 0), false))
CASE(y_matmul_tb, mu_matmul_t(b, x, false, values(b, 2, 4, 0), true))
CASE(y_matmul_tab, mu_matmul_t(b, x, true, values(b, 2, 3, 0), true))
CASE(y_matmul_tab_right, mu_matmul_t(b, values(b, 4, 2, 0), true, x, true))
CASE(y_bias_add, mu_bias_add(b, x, row(b, 4)))
CASE(y_bias, mu_bias_add(b, values(b, 3, 4, 1), x))
CASE(y_add, mu_add(b, x, values(b, 3, 4, 1)))
CASE(y_add_row, mu_add(b, x, row(b, 4)))
CASE(y_row_add, mu_add(b, values(b, 3, 4, 1), x))
CASE(y_add_v1, mu_op(b, "Add", MU_IN(x, row(b, 4))))
CASE(y_add_n, mu_op(b, "AddN", MU_IN(x, mu_square(b, x), x)))
CASE(y_sub_row, mu_sub(b, row(b, 4), x))
CASE(y_sub_scalar, mu_sub(b, x, mu_const_float(b, 3)))
CASE(y_mul, mu_mul(b, x, x))
CASE(y_mul_row, mu_mul(b, values(b, 3, 4, 1), x))
CASE(y_div, mu_div(b, x, values(b, 3, 4, 1)))
CASE(y_div_by, mu_div(b, values(b, 3, 4, 1), x))
CASE(y_neg, mu_neg(b, x))
CASE(y_square, mu_square(b, x))
CASE(y_exp, mu_exp(b, x))
CASE(y_log, mu_ln(b, x))
CASE(y_relu, mu_relu(b, x))
CASE(y_tanh, mu_tanh(b, x))
CASE(y_sigmoid, mu_sigmoid(b, x))
CASE(y_softmax, mu_softmax(b, x))
CASE(y_identity, mu_identity(b, x))
CASE(y_reshape, mu_reshape(b, x, mu_const_ints(b, (int32_t[]){6, 2}, 2)))
CASE(y_sum, mu_sum(b, x, NULL, 0))
CASE(y_sum_rows, mu_sum(b, x, (int32_t[]){0}, 1))
CASE(y_sum_last, mu_sum(b, x, (int32_t[]){-1}, 1))
CASE(y_mean, mu_mean(b, x, NULL, 0))
CASE(y_mean_last, mu_mean(b, x, (int32_t[]){1}, 1))
CASE(y_cast, mu_cast(b, mu_square(b, mu_cast(b, x, MU_DOUBLE)), MU_FLOAT))
CASE(y_xent, mu_softmax_xent(b, x, mu_softmax(b, values(b, 3, 4, 1))))
CASE(y_sparse_xent, mu_sparse_softmax_xent(b, x, mu_const_ints(b, (int32_t[]){2, 0, 3}, 3)))

static const struct gradient_case cases[] = {
    {"MatMul", {2, {3, 4}}, y_matmul, -1, 1},
    {"MatMul, right", {2, {3, 4}}, y_matmul_right, -1, 1},
    {"MatMul, transpose_a", {2, {3, 4}}, y_matmul_ta, -1, 1},
    {"MatMul, transpose_b", {2, {3, 4}}, y_matmul_tb, -1, 1},
    {"MatMul, both transposed", {2, {3, 4}}, y_matmul_tab, -1, 1},
    {"MatMul, both transposed, right", {2, {3, 4}}, y_matmul_tab_right, -1, 1},
    {"BiasAdd", {2, {-1, 4}}, y_bias_add, -1, 1},
    {"BiasAdd, bias", {1, {4}}, y_bias, -1, 1},
    {"AddV2", {2, {3, 4}}, y_add, -1, 1},
    {"AddV2, broadcasts the other", {2, {-1, 4}}, y_add_row, -1, 1},
    {"AddV2, broadcast", {1, {4}}, y_row_add, -1, 1},
    {"Add", {2, {-1, 4}}, y_add_v1, -1, 1},
    {"AddN", {2, {3, 4}}, y_add_n, -1, 1},
    {"Sub", {2, {-1, 4}}, y_sub_row, -1, 1},
    {"Sub, scalar", {2, {3, 4}}, y_sub_scalar, -1, 1},
    {"Mul, twice the same", {2, {3, 4}}, y_mul, -1, 1},
    {"Mul, broadcast", {1, {4}}, y_mul_row, -1, 1},
    {"RealDiv", {2, {3, 4}}, y_div, -1, 1},
    {"RealDiv, divisor", {1, {4}}, y_div_by, 1, 2},
    {"Neg", {2, {3, 4}}, y_neg, -1, 1},
    {"Square", {2, {3, 4}}, y_square, -1, 1},
    {"Exp", {2, {3, 4}}, y_exp, -1, 1},
    {"Log", {2, {3, 4}}, y_log, 1, 2},
    {"Relu", {2, {3, 4}}, y_relu, -1, 1},
    {"Tanh", {2, {3, 4}}, y_tanh, -1, 1},
    {"Sigmoid", {2, {3, 4}}, y_sigmoid, -1, 1},
    {"Softmax", {2, {3, 4}}, y_softmax, -1, 1},
    {"Identity", {2, {3, 4}}, y_identity, -1, 1},
    {"Reshape", {2, {3, 4}}, y_reshape, -1, 1},
    {"Sum", {2, {-1, 4}}, y_sum, -1, 1},
    {"Sum, rows", {2, {-1, 4}}, y_sum_rows, -1, 1},
    {"Sum, last", {2, {-1, 4}}, y_sum_last, -1, 1},
    {"Mean", {2, {-1, 4}}, y_mean, -1, 1},
    {"Mean, last", {2, {-1, 4}}, y_mean_last, -1, 1},
    {"Cast", {2, {3, 4}}, y_cast, -1, 1},
    {"SoftmaxCrossEntropyWithLogits", {2, {3, 4}}, y_xent, -1, 1},
    {"SparseSoftmaxCrossEntropyWithLogits", {2, {-1, 4}}, y_sparse_xent, -1, 1},
};

/* Sum of y, element i times an odd-looking weight. */
static struct mu_out weighed(struct mu_builder *b, struct mu_out y)
{
	struct mu_out flat = mu_reshape(b, y, mu_const_ints(b, (int32_t[]){-1}, 1));
	struct mu_out i = mu_op(b, "Range",
				MU_IN(mu_const_int(b, MU_INT32, 0), mu_op(b, "Size", MU_IN(flat)),
				      mu_const_int(b, MU_INT32, 1)));
	struct mu_out w = mu_add(b, mu_mul(b, mu_cast(b, i, MU_FLOAT), mu_const_float(b, 0.37f)),
				 mu_const_float(b, -1.3f));

	return mu_sum(b, mu_mul(b, flat, w), NULL, 0);
}

static float loss_at(struct mu_session *s, struct mu_out x, struct mu_out loss,
		     const struct mu_tensor *value)
{
	struct mu_feed feed = {x, value};
	struct mu_run run = {.feeds = &feed, .n_feeds = 1, .fetches = &loss, .n_fetches = 1};
	MU_AUTO_TENSOR out = {0};

	assert_ok(mu_session_run(s, &run, &out, &err), &err);
	return *MU_DATA(float, &out);
}

static void check(const struct gradient_case *c)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, c->shape), loss = weighed(b, c->y(b, x));
	struct mu_out g;
	MU_AUTO_TENSOR value = {0};
	MU_AUTO_TENSOR found = {0};
	int64_t dims[MU_MAX_RANK];
	struct mu_shape shape;

	mu_gradients(b, loss, &x, 1, &g);
	assert_ok(mu_builder_check(b, &err), &err);
	assert_non_null(g.node);
	for (int i = 0; i < c->shape.rank; i++)
		dims[i] = c->shape.dim[i] < 0 ? 3 : c->shape.dim[i];
	assert_ok(mu_shape_set(&shape, c->shape.rank, dims, &err), &err);
	assert_ok(mu_tensor_new(&value, MU_FLOAT, &shape, &err), &err);
	for (int64_t i = 0; i < shape.count; i++)
		MU_DATA(float, &value)
	[i] = c->lowest + (c->highest - c->lowest) * (float)((i * 7 + 3) % 13) / 12.6f;

	assert_ok(mu_session_open(&s, test_server(), b, NULL, &err), &err);
	struct mu_feed feed = {x, &value};
	struct mu_run run = {.feeds = &feed, .n_feeds = 1, .fetches = &g, .n_fetches = 1};
	assert_ok(mu_session_run(s, &run, &found, &err), &err);
	assert_true(mu_shape_eq(&found.shape, &shape));
	for (int64_t i = 0; i < shape.count; i++) {
		float was = MU_DATA(float, &value)[i], up, down;

		MU_DATA(float, &value)[i] = was + STEP;
		up = loss_at(s, x, loss, &value);
		MU_DATA(float, &value)[i] = was - STEP;
		down = loss_at(s, x, loss, &value);
		MU_DATA(float, &value)[i] = was;
		double numeric = (double)(up - down) / (2 * (double)STEP);
		double analytic = (double)MU_DATA(float, &found)[i];
		if (fabs(numeric - analytic) > TOLERANCE * fmax(1, fabs(numeric)))
			fail_msg("%s: d/dx[%d] is %g, differences say %g", c->name, (int)i,
				 analytic, numeric);
	}
}

static void gradients__agree_with_differences(void **state)
{
	for (size_t i = 0; i < MU_COUNT(cases); i++)
		check(&cases[i]);
}

/* Every optimizer brings x² down from 1. */
static void optimizers__go_downhill(void **state)
{
	static const char *const kinds[] = {"sgd",  "momentum", "nesterov", "adagrad",
					    "adam", "rmsprop",  "ftrl"};

	for (size_t k = 0; k < MU_COUNT(kinds); k++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		MU_AUTO(mu_session_close) struct mu_session *s = NULL;
		struct mu_session_options own = {.isolate_state = true};
		struct mu_init one = {.kind = MU_INIT_VALUE, .value = 1};
		struct mu_var *x = mu_variable(b, "x", MU_FLOAT, MU_SHAPE(3), one, true);
		struct mu_optimizer o;
		MU_AUTO_TENSOR step = {0};
		MU_AUTO_TENSOR value = {0};

		assert_ok(mu_optimizer_named(kinds[k], 0.1, &o, &err), &err);
		struct mu_out loss = mu_sum(b, mu_square(b, mu_read(x)), NULL, 0);
		struct mu_out train = mu_minimize(b, &o, loss, mu_global_step(b));
		struct mu_out init = mu_init_all(b);
		assert_ok(mu_builder_check(b, &err), &err);
		assert_ok(mu_session_open(&s, test_server(), b, &own, &err), &err);
		assert_ok(mu_session_do(s, init, &err), &err);
		for (int i = 0; i < 20; i++)
			assert_ok(mu_session_do(s, train, &err), &err);
		assert_ok(mu_session_get(s, mu_read(mu_global_step(b)), &step, &err), &err);
		assert_int_equal(mu_tensor_int(&step, 0), 20);
		assert_ok(mu_session_get(s, mu_read(x), &value, &err), &err);
		if (!(fabsf(MU_DATA(float, &value)[2]) < 0.7f))
			fail_msg("%s: x is %g after 20 steps", kinds[k],
				 (double)MU_DATA(float, &value)[2]);
	}
}

/* x after three steps down a slope of 1, from 0. */
static float after_three(const struct mu_optimizer *o, float slope)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options own = {.isolate_state = true};
	struct mu_var *x = mu_variable(b, "x", MU_FLOAT, MU_SHAPE(1), MU_ZEROS, true);
	struct mu_out loss = mu_mul(b, mu_const_float(b, slope), mu_sum(b, mu_read(x), NULL, 0));
	struct mu_out train = mu_minimize(b, o, loss, mu_global_step(b)), init = mu_init_all(b);
	MU_AUTO_TENSOR value = {0};

	assert_ok(mu_session_open(&s, test_server(), b, &own, &err), &err);
	assert_ok(mu_session_do(s, init, &err), &err);
	for (int i = 0; i < 3; i++)
		assert_ok(mu_session_do(s, train, &err), &err);
	assert_ok(mu_session_get(s, mu_read(x), &value, &err), &err);
	return *MU_DATA(float, &value);
}

static void learning_rates__follow_their_schedule(void **state)
{
	struct mu_optimizer o = {.kind = MU_SGD, .rate = 1};

	o.schedule = (struct mu_schedule){MU_RATE_EXPONENTIAL, 0.25, 2};
	assert_float_equal(after_three(&o, 1), -(1 + 0.5 + 0.25), 1e-5);
	o.schedule = (struct mu_schedule){MU_RATE_STEPS, 0.5, 2};
	assert_float_equal(after_three(&o, 1), -(1 + 1 + 0.5), 1e-5);
	o.schedule = (struct mu_schedule){MU_RATE_COSINE, 0.1, 2};
	assert_float_equal(after_three(&o, 1), -(1 + 0.55 + 0.1), 1e-5);
}

static void adadelta__starts_slowly_but_goes_down(void **state)
{
	struct mu_optimizer o = {.kind = MU_ADADELTA, .rate = 1};
	float x = after_three(&o, 1);

	assert_true(x < 0 && x > -0.01f);
}

static void gradients__are_clipped_and_regularized(void **state)
{
	struct mu_optimizer clip = {.kind = MU_SGD, .rate = 1, .clip_norm = 0.5};
	struct mu_optimizer l2 = {.kind = MU_SGD, .rate = 1, .l2 = 0.5};

	assert_float_equal(after_three(&clip, 4), -1.5, 1e-5);
	assert_float_equal(after_three(&clip, 0.25f), -0.75, 1e-5);
	/* x - (1 + x / 2): -1, -1.5, -1.75 */
	assert_float_equal(after_three(&l2, 1), -1.75, 1e-5);
}

static void a_schedule_without_steps__is_refused(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_var *x = mu_variable(b, "x", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	struct mu_optimizer o = {.rate = 1, .schedule = {.kind = MU_RATE_STEPS}};

	mu_minimize(b, &o, mu_square(b, mu_read(x)), mu_global_step(b));
	assert_fails(mu_builder_check(b, &err), &err, MU_INVALID_ARGUMENT, "learning rate");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(gradients__agree_with_differences),
	    cmocka_unit_test(optimizers__go_downhill),
	    cmocka_unit_test(learning_rates__follow_their_schedule),
	    cmocka_unit_test(adadelta__starts_slowly_but_goes_down),
	    cmocka_unit_test(gradients__are_clipped_and_regularized),
	    cmocka_unit_test(a_schedule_without_steps__is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
