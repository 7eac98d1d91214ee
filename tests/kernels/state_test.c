/* SPDX-License-Identifier: Apache-2.0 */
/* Buffer sharing of updates, which the comparison with TensorFlow cannot see. */
#include "tests/test.h"

#include "tests/kernels/one_runtime.h"

static struct mu_tensor one_float(float f)
{
	struct mu_tensor t;

	assert_int_equal(mu_tensor_scalar(&t, MU_FLOAT, &f, NULL), 0);
	return t;
}

static void every_kernel__has_a_row_in_the_op_table(void **state)
{
	for (unsigned i = 0; cpu_kernel_at(i); i++) {
		const struct kernel *k = cpu_kernel_at(i);
		MU_AUTO_FREE char *ops = mu_xstrdup(k->op);
		for (char *rest, *op = strtok_r(ops, " ", &rest); op;
		     op = strtok_r(NULL, " ", &rest)) {
			if (!mu_op_find(op))
				fail_msg("kernel %s has no op row", op);
			assert_ptr_equal(cpu_kernel_find(op), k);
		}
	}
}

static void assign_add_by_reference__is_seen_by_those_who_read_before(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct variable *v = variable_new(MU_FLOAT, &(struct mu_pshape){.rank = 0});
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};
	struct mu_tensor before;
	struct mu_node *n;
	struct harness h;
	struct mu_err err;

	variable_assign(v, one_float(1));
	assert_int_equal(variable_read(v, &before, &err), 0);
	assert_int_equal(mu_graph_add(g, "add", "AssignAdd", &n, &err), 0);
	mu_node_set_attr(g, n, "T", &type);
	assert_int_equal(harness_prepare(&h, rt, n, &err), 0);
	harness_input_ref(&h, v);
	harness_input(&h, one_float(2));
	assert_int_equal(harness_run(&h, &err), 0);
	assert_true(*MU_DATA(float, &before) == 3);
	assert_ptr_equal(h.out[0].ref, v);
	harness_fini(&h);
	mu_tensor_unref(&before);
	resource_unref(&v->base);
}

static void assign__of_a_shared_tensor__copies_it(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct variable *v = variable_new(MU_FLOAT, &(struct mu_pshape){.rank = 0});
	struct mu_attr type = {.kind = MU_ATTR_TYPE, .type = MU_FLOAT};
	struct mu_tensor constant = one_float(5);
	struct mu_node *n;
	struct harness h;
	struct mu_err err;

	assert_int_equal(mu_graph_add(g, "set", "Assign", &n, &err), 0);
	mu_node_set_attr(g, n, "T", &type);
	assert_int_equal(harness_prepare(&h, rt, n, &err), 0);
	harness_input_ref(&h, v);
	harness_input(&h, mu_tensor_ref(&constant));
	assert_int_equal(harness_run(&h, &err), 0);
	assert_ptr_not_equal(v->value.data, constant.data);
	harness_fini(&h);
	mu_tensor_unref(&constant);
	resource_unref(&v->base);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_kernel__has_a_row_in_the_op_table),
	    cmocka_unit_test(assign_add_by_reference__is_seen_by_those_who_read_before),
	    cmocka_unit_test(assign__of_a_shared_tensor__copies_it),
	};

	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
