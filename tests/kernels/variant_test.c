/* SPDX-License-Identifier: Apache-2.0 */
/* ZerosLike and AddN of optionals, which gradients of branches use, and of mismatched variants. */
#include "tests/test.h"

#include "task/kernels/control/tensor_list.h"
#include "task/kernels/engine/variant.h"
#include "tests/kernels/one_runtime.h"

static struct mu_tensor floats(int64_t n, const float *x)
{
	struct mu_shape shape = {.rank = 1, .dim = {n}, .count = n};
	struct mu_tensor t;

	assert_int_equal(mu_tensor_new(&t, MU_FLOAT, &shape, NULL), 0);
	memcpy(t.data, x, (size_t)n * sizeof *x);
	return t;
}

static const struct mu_attr one_type = {.kind = MU_ATTR_TYPE, .type = MU_VARIANT};

/* Runs the op once and returns output 0. Takes the references to the inputs. */
static int run(const char *op, int n, struct mu_tensor *in, struct mu_tensor *out,
	       struct mu_err *err)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_attr types = {
	    .kind = MU_ATTR_LIST + MU_ATTR_TYPE, .types = (enum mu_dtype[]){MU_VARIANT}, .n = 1};
	struct mu_attr count = {.kind = MU_ATTR_INT, .i = n};
	struct mu_node *node;
	struct harness h;

	assert_int_equal(mu_graph_add(g, "n", op, &node, err), 0);
	mu_node_set_attr(g, node, "T", &one_type);
	mu_node_set_attr(g, node, "N", &count);
	mu_node_set_attr(g, node, "output_types", &types);
	assert_int_equal(harness_prepare(&h, rt, node, err), 0);
	for (int i = 0; i < n; i++)
		harness_input(&h, in[i]);
	int rc = harness_run(&h, err);
	if (!rc)
		*out = mu_tensor_ref(&h.out[0].tensor);
	harness_fini(&h);
	return rc;
}

static struct mu_tensor optional_of(struct mu_tensor t)
{
	struct mu_tensor out;
	struct mu_err err;

	assert_int_equal(run("OptionalFromValue", 1, &t, &out, &err), 0);
	return out;
}

static struct mu_tensor empty_optional(void)
{
	struct mu_tensor out;
	struct mu_err err;

	assert_int_equal(run("OptionalNone", 0, NULL, &out, &err), 0);
	return out;
}

static bool has_value(const struct mu_tensor *optional)
{
	struct mu_tensor in = mu_tensor_ref(optional);
	MU_AUTO_TENSOR out = {0};
	struct mu_err err;

	assert_int_equal(run("OptionalHasValue", 1, &in, &out, &err), 0);
	return *MU_DATA(bool, &out);
}

static void assert_value(const struct mu_tensor *optional, int64_t n, const float *want)
{
	struct mu_tensor in = mu_tensor_ref(optional);
	MU_AUTO_TENSOR out = {0};
	struct mu_err err;

	assert_int_equal(run("OptionalGetValue", 1, &in, &out, &err), 0);
	assert_int_equal(out.shape.count, n);
	assert_memory_equal(out.data, want, (size_t)n * sizeof *want);
}

static void zeros_of_an_optional__are_an_optional_of_zeros(void **state)
{
	MU_AUTO_TENSOR inner = optional_of(floats(2, (float[]){3, -4}));
	struct mu_tensor optional = optional_of(mu_tensor_ref(&inner)), none = empty_optional();
	MU_AUTO_TENSOR plain = {0}, nested = {0}, empty = {0}, held = {0};
	struct mu_tensor again = mu_tensor_ref(&inner);
	struct mu_err err;

	assert_int_equal(run("ZerosLike", 1, &again, &plain, &err), 0);
	assert_value(&plain, 2, (float[]){0, 0});
	assert_value(&inner, 2, (float[]){3, -4});
	assert_int_equal(run("ZerosLike", 1, &optional, &nested, &err), 0);
	struct mu_tensor take = mu_tensor_ref(&nested);
	assert_int_equal(run("OptionalGetValue", 1, &take, &held, &err), 0);
	assert_value(&held, 2, (float[]){0, 0});
	assert_int_equal(run("ZerosLike", 1, &none, &empty, &err), 0);
	assert_false(has_value(&empty));
}

static void sum_of_optionals__of_equal_shapes__adds_their_values(void **state)
{
	MU_AUTO_TENSOR shared = optional_of(floats(2, (float[]){3, -4}));
	struct mu_tensor in[] = {mu_tensor_ref(&shared), optional_of(floats(2, (float[]){1, 1})),
				 mu_tensor_ref(&shared)};
	struct mu_tensor none[] = {empty_optional(), empty_optional()};
	MU_AUTO_TENSOR sum = {0}, empty = {0};
	struct mu_err err;

	assert_int_equal(run("AddN", 3, in, &sum, &err), 0);
	assert_value(&sum, 2, (float[]){7, -7});
	assert_value(&shared, 2, (float[]){3, -4});
	assert_int_equal(run("AddN", 2, none, &empty, &err), 0);
	assert_false(has_value(&empty));
}

static void sum_of_optionals__of_mismatched_types__is_invalid(void **state)
{
	MU_AUTO_TENSOR two = optional_of(floats(2, (float[]){3, -4}));
	struct mu_tensor others[] = {empty_optional(), optional_of(floats(1, (float[]){1})),
				     optional_of(mu_tensor_ref(&two))};

	for (unsigned i = 0; i < MU_COUNT(others); i++) {
		struct mu_tensor in[] = {mu_tensor_ref(&two), others[i]};
		MU_AUTO_TENSOR sum = {0};
		struct mu_err err;
		assert_int_equal(run("AddN", 2, in, &sum, &err), -MU_INVALID_ARGUMENT);
	}
}

/* The second list has fewer elements than the first. */
static void sum_of_variant_lists__of_mismatched_shapes__is_invalid(void **state)
{
	struct mu_tensor lists[2];
	struct mu_err err;

	for (int i = 0; i < 2; i++) {
		struct mu_shape shape = {.rank = 1, .dim = {64 - 63 * i}, .count = 64 - 63 * i};
		struct list *l = list_new(MU_VARIANT, &(struct mu_pshape){.rank = -1}, 1);
		assert_int_equal(mu_tensor_new(&l->items[0], MU_VARIANT, &shape, &err), 0);
		for (int64_t k = 0; k < shape.count; k++)
			MU_DATA(struct mu_object *, &l->items[0])
		[k] = &list_new(MU_FLOAT, &(struct mu_pshape){.rank = -1}, 0)->object;
		assert_int_equal(variant_tensor(&lists[i], &l->object, &err), 0);
	}
	MU_AUTO_TENSOR sum = {0};
	assert_int_equal(run("AddN", 2, lists, &sum, &err), -MU_INVALID_ARGUMENT);
	assert_non_null(strstr(err.msg, "Shape mismatch: expected [64], got [1]"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(zeros_of_an_optional__are_an_optional_of_zeros),
	    cmocka_unit_test(sum_of_optionals__of_equal_shapes__adds_their_values),
	    cmocka_unit_test(sum_of_optionals__of_mismatched_types__is_invalid),
	    cmocka_unit_test(sum_of_variant_lists__of_mismatched_shapes__is_invalid),
	};

	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
