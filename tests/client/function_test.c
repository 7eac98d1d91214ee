/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of the client: results of calls, branches and loops, and invalid functions. */
#include "tests/test.h"

#include "muster/function.h"
#include "muster/grad.h"
#include "muster/session.h"
#include "tests/client/server.h"

static struct mu_err err;

static float value_of(struct mu_builder *b, struct mu_out o)
{
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	MU_AUTO_TENSOR t = {0};

	assert_ok(mu_builder_check(b, &err), &err);
	assert_ok(mu_session_open(&s, test_server(), b, NULL, &err), &err);
	assert_ok(mu_session_get(s, o, &t, &err), &err);
	return *MU_DATA(float, &t);
}

#define FN(name, body)                                                                             \
	static void name(struct mu_builder *b, void *arg, const struct mu_out *in,                 \
			 struct mu_out *out)                                                       \
	{                                                                                          \
		body;                                                                              \
	}
FN(below_100, out[0] = mu_op(b, "Less", MU_IN(in[0], mu_const_float(b, 100))))
FN(times, (out[0] = mu_mul(b, in[0], in[1]), out[1] = in[1]))
FN(minus, (out[0] = mu_sub(b, in[0], in[1]), out[1] = in[1]))
FN(given, out[0] = mu_const_float(b, *(float *)arg))

static void loop__runs_until_its_condition_is_false(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out in[] = {mu_const_float(b, 7), mu_const_float(b, 3)};
	const struct mu_fn *cond = mu_function_new(b, "below_100", below_100, NULL, in, 2, 1);
	const struct mu_fn *body = mu_function_new(b, "times", times, NULL, in, 2, 2);
	struct mu_out end = mu_while(b, cond, body, in, 2);

	assert_int_equal(mu_out_shape(b, end)->rank, 0);
	assert_string_equal(end.node->op, "StatelessWhile");
	assert_float_equal(value_of(b, end), 189, 0);
}

static void branches_and_calls__return_their_results(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct mu_out in[] = {mu_const_float(b, 7), mu_const_float(b, 3)};
	float nine = 9;
	const struct mu_fn *f[] = {mu_function_new(b, "times", times, NULL, in, 2, 2),
				   mu_function_new(b, "minus", minus, NULL, in, 2, 2)};
	struct mu_out more = mu_op(b, "Greater", MU_IN(in[0], in[1]));
	struct mu_out none =
	    mu_call(b, mu_function_new(b, "given", given, &nine, NULL, 0, 1), NULL, 0);

	assert_float_equal(value_of(b, mu_call(b, f[1], in, 2)), 4, 0);
	assert_float_equal(value_of(b, none), 9, 0);
	assert_float_equal(value_of(b, mu_if(b, more, f[0], f[1], in, 2)), 21, 0);
	for (int i = 0; i < 4; i++) /* an index out of range selects the last branch */
		assert_float_equal(
		    value_of(b, mu_case(b, mu_const_int(b, MU_INT32, i), f, 2, in, 2)),
		    i == 0 ? 21 : 4, 0);
}

/* A running session gets functions that are added later. */
static void functions__added_after_a_run__are_sent(void **state)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	MU_AUTO(mu_session_close) struct mu_session *s = NULL;
	struct mu_out in[] = {mu_const_float(b, 7), mu_const_float(b, 3)};

	assert_ok(mu_session_open(&s, test_server(), b, NULL, &err), &err);
	for (int i = 0; i < 3; i++) {
		MU_AUTO_TENSOR t = {0};
		const struct mu_fn *f = mu_function_new(b, "minus", minus, NULL, in, 2, 2);

		assert_ok(mu_session_get(s, mu_call(b, f, in, 2), &t, &err), &err);
		assert_float_equal(*MU_DATA(float, &t), 4, 0);
	}
}

/* ---- errors ---- */

FN(two_args, (out[0] = in[0], out[1] = in[1]))
FN(to_int, (out[0] = mu_cast(b, in[0], MU_INT32), out[1] = in[1]))
FN(longer, (out[0] = mu_op(b, "Pack", MU_IN(in[0], in[0])), out[1] = in[1]))
FN(no_output, (void)out)
FN(from_outside, out[0] = *(struct mu_out *)arg)
FN(random_numbers, (out[0] = mu_mul(b, in[0],
				    mu_op(b, "RandomUniform", MU_IN(mu_const_ints(b, NULL, 0)),
					  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)))),
		    out[1] = in[1]))
FN(creates_variable, out[0] = mu_read(mu_variable(b, "v", MU_FLOAT, MU_SCALAR, MU_ZEROS, true)))
FN(unknown_op, out[0] = mu_op(b, "NoSuchOp"))

#define EXPECT_ERROR(code, what, ...)                                                              \
	do {                                                                                       \
		MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();                  \
		struct mu_out in[] = {mu_const_float(b, 7), mu_const_float(b, 3)}, g = MU_NO_OUT;  \
		const struct mu_fn *f = mu_function_new(b, "two_args", two_args, NULL, in, 2, 2);    \
		const struct mu_fn *cond = mu_function_new(b, "below", below_100, NULL, in, 2, 1); \
		(void)f, (void)cond, (void)g;                                                      \
		__VA_ARGS__;                                                                       \
		assert_fails(mu_builder_check(b, &err), &err, code, what);                         \
	} while (0)
#define NEW(make, n_out) mu_function_new(b, #make, make, NULL, in, 2, n_out)

static void invalid_function__fails(void **state)
{
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "function no_output: output 0 is not a tensor",
		     NEW(no_output, 1));
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "function from_outside: output 0 is not a tensor",
		     mu_function_new(b, "from_outside", from_outside, &in[0], in, 2, 1));
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "variable 'v' is created within a function",
		     NEW(creates_variable, 1));
	EXPECT_ERROR(MU_NOT_FOUND, "function unknown_op: node 'NoSuchOp'", NEW(unknown_op, 1));
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "argument 0 has a prototype from another builder",
		     mu_function_new(b, "f", two_args, NULL, (struct mu_out[]){MU_NO_OUT}, 1, 1));
}

static void mismatched_arguments__fail(void **state)
{
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "function two_args has 2 arguments, not 1",
		     mu_call(b, f, in, 1));
	EXPECT_ERROR(MU_INVALID_ARGUMENT,
		     "argument 1 of function two_args is float, string was given",
		     in[1] = mu_const_str(b, "x"), mu_call(b, f, in, 2));
	EXPECT_ERROR(MU_INVALID_ARGUMENT,
		     "functions two_args and to_int differ in the number or types",
		     mu_if(b, mu_equal(b, in[0], in[1]), f, NEW(to_int, 2), in, 2));
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "at least one branch is needed",
		     mu_case(b, mu_const_int(b, MU_INT32, 0), NULL, 0, in, 2));
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "the condition two_args returns 2 outputs",
		     mu_while(b, f, f, in, 2));
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "function below returns 1 outputs for 2 variables",
		     mu_while(b, cond, cond, in, 2));
	EXPECT_ERROR(MU_INVALID_ARGUMENT, "variable 0 is float, function to_int makes it int32",
		     mu_while(b, cond, NEW(to_int, 2), in, 2));
	EXPECT_ERROR(MU_INVALID_ARGUMENT,
		     "variable 0 is of shape [], which function longer changes",
		     mu_while(b, cond, NEW(longer, 2), in, 2));
}

static void function_with_random_numbers__has_no_gradient(void **state)
{
	EXPECT_ERROR(MU_UNIMPLEMENTED, "its function random_numbers draws random numbers",
		     mu_gradients(b, mu_call(b, NEW(random_numbers, 2), in, 2), in, 1, &g));
	EXPECT_ERROR(MU_UNIMPLEMENTED, "its function random_numbers draws random numbers",
		     mu_gradients(b, mu_while(b, cond, NEW(random_numbers, 2), in, 2), in, 1, &g));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(loop__runs_until_its_condition_is_false),
	    cmocka_unit_test(branches_and_calls__return_their_results),
	    cmocka_unit_test(functions__added_after_a_run__are_sent),
	    cmocka_unit_test(invalid_function__fails),
	    cmocka_unit_test(mismatched_arguments__fail),
	    cmocka_unit_test(function_with_random_numbers__has_no_gradient),
	};

	return cmocka_run_group_tests(tests, NULL, test_server_stop);
}
