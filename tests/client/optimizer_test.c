/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers, learning rates, clipping and regularisation, on a real server. */
#include "tests/test.h"

#include <math.h>

#include "muster/grad.h"
#include "muster/session.h"
#include "tests/client/server.h"

static struct mu_err err;

/* Every optimizer reduces x² from 1. */
static void optimizers__reduce_the_loss(void **state)
{
	static const char *const kinds[] = {"sgd",  "momentum", "nesterov", "adagrad",
					    "adam", "rmsprop",  "ftrl"};

	for (size_t k = 0; k < MU_COUNT(kinds); k++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		MU_AUTO(mu_session_close) struct mu_session *s = NULL;
		struct mu_session_options options = {.isolate_state = true};
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
		assert_ok(mu_session_open(&s, test_server(), b, &options, &err), &err);
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

/* The powers of beta have the type of one of the variables. */
static void adam__updates_variables_of_several_types(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options options = {.isolate_state = true};
	struct mu_init one = {.kind = MU_INIT_VALUE, .value = 1};
	struct mu_var *x = mu_variable(b, "x", MU_FLOAT, MU_SCALAR, one, true);
	struct mu_var *y = mu_variable(b, "y", MU_DOUBLE, MU_SCALAR, one, true);
	struct mu_optimizer adam = {.kind = MU_ADAM, .rate = 0.1};
	struct mu_out loss =
	    mu_add(b, mu_square(b, mu_read(x)), mu_cast(b, mu_square(b, mu_read(y)), MU_FLOAT));
	struct mu_out train = mu_minimize(b, &adam, loss, mu_global_step(b));
	struct mu_out init = mu_init_all(b);
	MU_AUTO_TENSOR a = {0};
	MU_AUTO_TENSOR c = {0};

	assert_ok(mu_session_open(&s, test_server(), b, &options, &err), &err);
	assert_ok(mu_session_do(s, init, &err), &err);
	assert_ok(mu_session_do(s, train, &err), &err);
	assert_ok(mu_session_get(s, mu_read(x), &a, &err), &err);
	assert_ok(mu_session_get(s, mu_read(y), &c, &err), &err);
	assert_float_equal(*MU_DATA(float, &a), 0.9, 1e-5);
	assert_float_equal(*MU_DATA(double, &c), 0.9, 1e-5);
}

/* x after three steps with a constant gradient, starting from 0. */
static float value_after_three_steps(const struct mu_optimizer *o, float slope)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options options = {.isolate_state = true};
	struct mu_var *x = mu_variable(b, "x", MU_FLOAT, MU_SHAPE(1), MU_ZEROS, true);
	struct mu_out loss = mu_mul(b, mu_const_float(b, slope), mu_sum(b, mu_read(x), NULL, 0));
	struct mu_out train = mu_minimize(b, o, loss, mu_global_step(b)), init = mu_init_all(b);
	MU_AUTO_TENSOR value = {0};

	assert_ok(mu_session_open(&s, test_server(), b, &options, &err), &err);
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
	assert_float_equal(value_after_three_steps(&o, 1), -(1 + 0.5 + 0.25), 1e-5);
	o.schedule = (struct mu_schedule){MU_RATE_STEPS, 0.5, 2};
	assert_float_equal(value_after_three_steps(&o, 1), -(1 + 1 + 0.5), 1e-5);
	o.schedule = (struct mu_schedule){MU_RATE_COSINE, 0.1, 2};
	assert_float_equal(value_after_three_steps(&o, 1), -(1 + 0.55 + 0.1), 1e-5);
}

static void adadelta__starts_slowly_and_reduces_the_loss(void **state)
{
	struct mu_optimizer o = {.kind = MU_ADADELTA, .rate = 1};
	float x = value_after_three_steps(&o, 1);

	assert_true(x < 0 && x > -0.01f);
}

static void gradients__are_clipped_and_regularized(void **state)
{
	struct mu_optimizer clip = {.kind = MU_SGD, .rate = 1, .clip_norm = 0.5};
	struct mu_optimizer l2 = {.kind = MU_SGD, .rate = 1, .l2 = 0.5};

	assert_float_equal(value_after_three_steps(&clip, 4), -1.5, 1e-5);
	assert_float_equal(value_after_three_steps(&clip, 0.25f), -0.75, 1e-5);
	/* x - (1 + x / 2): -1, -1.5, -1.75 */
	assert_float_equal(value_after_three_steps(&l2, 1), -1.75, 1e-5);
}

static void schedule_without_steps__fails(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_var *x = mu_variable(b, "x", MU_FLOAT, MU_SCALAR, MU_ZEROS, true);
	struct mu_optimizer o = {.rate = 1, .schedule = {.kind = MU_RATE_STEPS}};

	mu_minimize(b, &o, mu_square(b, mu_read(x)), mu_global_step(b));
	assert_fails(mu_builder_check(b, &err), &err, MU_INVALID_ARGUMENT,
		     "learning-rate schedule");
}

/* loss = (w v)², w = 0.5, v = 2. The gradient of w uses the old v, whichever variable is updated
 * first. */
static void gradients__use_the_weights_before_the_update(void **state)
{
	for (int first = 0; first < 2; first++) {
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
		MU_AUTO(mu_session_close) struct mu_session *s = NULL;
		struct mu_session_options options = {.isolate_state = true};
		struct mu_init half = {.kind = MU_INIT_VALUE, .value = 0.5};
		struct mu_init two = {.kind = MU_INIT_VALUE, .value = 2};
		struct mu_var *w = mu_variable(b, "w", MU_FLOAT, MU_SHAPE(1, 1), half, true);
		struct mu_var *v = mu_variable(b, "v", MU_FLOAT, MU_SHAPE(1, 1), two, true);
		struct mu_out y = first ? mu_matmul(b, mu_read(w), mu_read(v))
					: mu_matmul(b, mu_read(v), mu_read(w));
		struct mu_optimizer sgd = {.kind = MU_SGD, .rate = 0.1};
		struct mu_out train =
		    mu_minimize(b, &sgd, mu_sum(b, mu_square(b, y), NULL, 0), NULL);
		struct mu_out init = mu_init_all(b);
		MU_AUTO_TENSOR got_w = {0};
		MU_AUTO_TENSOR got_v = {0};

		assert_ok(mu_session_open(&s, test_server(), b, &options, &err), &err);
		assert_ok(mu_session_do(s, init, &err), &err);
		assert_ok(mu_session_do(s, train, &err), &err);
		assert_ok(mu_session_get(s, mu_read(w), &got_w, &err), &err);
		assert_ok(mu_session_get(s, mu_read(v), &got_v, &err), &err);
		assert_float_equal(*MU_DATA(float, &got_w), 0.5 - 0.1 * 2 * 1 * 2, 1e-6);
		assert_float_equal(*MU_DATA(float, &got_v), 2 - 0.1 * 2 * 1 * 0.5, 1e-6);
	}
}

/* ---- tables ---- */

enum { NAMES = 6, WIDTH = 2 };

/* Trains a table for `steps` steps on the squares of rows 4, 1 and 4, and of row 1 again with
 * `twice`. The rows are gathered, or with `whole` selected by a matrix product. */
static void train_table(const struct mu_optimizer *o, bool dense, bool twice, int steps,
			struct mu_tensor *out, bool *as_rows)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_session_options options = {.isolate_state = true};
	struct mu_init half = {.kind = MU_INIT_VALUE, .value = 0.5};
	struct mu_var *v = mu_variable(b, "table", MU_FLOAT, MU_SHAPE(NAMES, WIDTH), half, true);
	struct mu_out ids[2] = {mu_const_ints(b, (int32_t[]){4, 1, 4}, 3),
				mu_const_ints(b, (int32_t[]){1}, 1)};
	struct mu_out loss = mu_const_float(b, 0);

	for (int i = 0; i < (twice ? 2 : 1); i++) {
		struct mu_out rows;

		if (dense)
			rows = mu_matmul(b,
					 mu_op(b, "OneHot",
					       MU_IN(ids[i], mu_const_int(b, MU_INT32, NAMES),
						     mu_const_float(b, 1), mu_const_float(b, 0))),
					 mu_read(v));
		else
			rows = mu_op(b, "Gather", MU_IN(mu_read(v), ids[i]));
		loss = mu_add(b, loss, mu_sum(b, mu_square(b, rows), NULL, 0));
	}
	struct mu_out train = mu_minimize(b, o, loss, mu_global_step(b)), init = mu_init_all(b);

	*as_rows = false;
	for (unsigned i = 0; i < mu_builder_graph(b)->n_nodes; i++) {
		const char *op = mu_builder_graph(b)->nodes[i]->op;

		if (strncmp(op, "SparseApply", 11) == 0 || strcmp(op, "ScatterSub") == 0)
			*as_rows = true;
	}
	assert_ok(mu_builder_check(b, &err), &err);
	assert_ok(mu_session_open(&s, test_server(), b, &options, &err), &err);
	assert_ok(mu_session_do(s, init, &err), &err);
	for (int i = 0; i < steps; i++)
		assert_ok(mu_session_do(s, train, &err), &err);
	assert_ok(mu_session_get(s, mu_read(v), out, &err), &err);
}

/* Optimizers that do not change a row without a gradient give the same result both ways after any
 * number of steps. Others do so only after the first step. */
static void gathered_rows__are_updated_as_in_the_dense_update(void **state)
{
	static const struct {
		const char *name;
		int steps;
		bool rows;
		double clip, l2;
	} kinds[] = {
	    {"sgd", 3, true, 0, 0},      {"sgd", 3, true, 1.5, 0},    {"sgd", 3, false, 0, 0.1},
	    {"momentum", 1, true, 0, 0}, {"nesterov", 1, true, 0, 0}, {"adagrad", 3, true, 0, 0},
	    {"rmsprop", 1, true, 0, 0},  {"adadelta", 1, true, 0, 0}, {"ftrl", 3, true, 0, 0},
	    {"adam", 3, false, 0, 0},
	};

	for (size_t k = 0; k < 2 * MU_COUNT(kinds); k++) {
		struct mu_optimizer o;
		MU_AUTO_TENSOR rows = {0};
		MU_AUTO_TENSOR all = {0};
		const char *name = kinds[k / 2].name;
		bool alone, dense;

		assert_ok(mu_optimizer_named(name, 0.1, &o, &err), &err);
		o.clip_norm = kinds[k / 2].clip;
		o.l2 = kinds[k / 2].l2;
		train_table(&o, false, k % 2, kinds[k / 2].steps, &rows, &alone);
		train_table(&o, true, k % 2, kinds[k / 2].steps, &all, &dense);
		if (alone != kinds[k / 2].rows || dense)
			fail_msg("%s: rows are updated alone: %d, whole tables as rows: %d", name,
				 alone, dense);
		for (int i = 0; i < NAMES * WIDTH; i++) {
			float got = MU_DATA(float, &rows)[i], want = MU_DATA(float, &all)[i];
			/* ftrl recomputes its slots for every row of the gradient */
			bool kept = strcmp(name, "ftrl") != 0 || i / WIDTH == 1 || i / WIDTH == 4;

			if (kept && !(fabsf(got - want) < 1e-5f))
				fail_msg("%s: value %d is %g, expected %g", name, i, (double)got,
					 (double)want);
			if (i / WIDTH == 4 && !(got < 0.5f))
				fail_msg("%s: row 4 has not moved", name);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(optimizers__reduce_the_loss),
	    cmocka_unit_test(adam__updates_variables_of_several_types),
	    cmocka_unit_test(learning_rates__follow_their_schedule),
	    cmocka_unit_test(adadelta__starts_slowly_and_reduces_the_loss),
	    cmocka_unit_test(gradients__are_clipped_and_regularized),
	    cmocka_unit_test(schedule_without_steps__fails),
	    cmocka_unit_test(gradients__use_the_weights_before_the_update),
	    cmocka_unit_test(gathered_rows__are_updated_as_in_the_dense_update),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
