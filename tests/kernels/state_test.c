/* SPDX-License-Identifier: Apache-2.0 */
/* Cases that tests/compat cannot compare: updates that share a buffer, and requests that never end
 * in TensorFlow. */
#include "tests/test.h"

#include "tests/kernels/one_runtime.h"

static struct mu_tensor one_float(float f)
{
	struct mu_tensor t;

	assert_int_equal(mu_tensor_scalar(&t, MU_FLOAT, &f, NULL), 0);
	return t;
}

static void kernel__of_every_op__has_a_row_in_the_op_table(void **state)
{
	for (unsigned i = 0; cpu_kernel_at(i); i++) {
		const struct kernel *k = cpu_kernel_at(i);
		MU_AUTO_FREE char *ops = mu_xstrdup(k->op);
		for (char *strtok_state, *op = strtok_r(ops, " ", &strtok_state); op;
		     op = strtok_r(NULL, " ", &strtok_state)) {
			if (!mu_op_find(op))
				fail_msg("kernel %s has no op row", op);
			assert_ptr_equal(cpu_kernel_find(op), k);
		}
	}
}

static void assign_add_by_reference__after_a_read__changes_the_read_tensor(void **state)
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

static struct mu_tensor vector(enum mu_dtype t, int n, const int64_t *v)
{
	struct mu_shape s = mu_shape_vec(n);
	struct mu_tensor out;

	assert_int_equal(mu_tensor_new(&out, t, &s, NULL), 0);
	for (int i = 0; i < n; i++)
		mu_tensor_set_int(&out, i, v[i]);
	return out;
}

static void sparse_cross__of_many_rows_with_few_values__ends(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_attr one = {.kind = MU_ATTR_INT, .i = 1};
	enum mu_dtype type = MU_INT64;
	struct mu_attr sparse = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = 1, .types = &type};
	struct mu_attr dense = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE};
	int64_t last = ((int64_t)1 << 60) - 1;
	struct mu_tensor indices = vector(MU_INT64, 2, (int64_t[]){last, 0}), sep;
	struct mu_node *n;
	struct harness h;
	struct mu_err err;

	assert_int_equal(mu_graph_add(g, "n", "SparseCrossV2", &n, &err), 0);
	mu_node_set_attr(g, n, "N", &one);
	mu_node_set_attr(g, n, "sparse_types", &sparse);
	mu_node_set_attr(g, n, "dense_types", &dense);
	assert_int_equal(mu_shape_set(&indices.shape, 2, (int64_t[]){1, 2}, &err), 0);
	assert_int_equal(mu_tensor_string(&sep, "+", 1, &err), 0);
	assert_int_equal(harness_prepare(&h, rt, n, &err), 0);
	harness_input(&h, indices);
	harness_input(&h, vector(MU_INT64, 1, (int64_t[]){5}));
	harness_input(&h, vector(MU_INT64, 2, (int64_t[]){last + 1, 1}));
	harness_input(&h, sep);
	assert_int_equal(harness_run(&h, &err), 0);
	assert_true(MU_DATA(int64_t, &h.out[0].tensor)[0] == last);
	harness_fini(&h);
}

/* With a small max_load_factor the number of buckets overflows. */
static void insert__into_a_table_with_too_many_buckets__is_resource_exhausted(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_attr key = {.kind = MU_ATTR_TYPE, .type = MU_INT64};
	struct mu_attr load = {.kind = MU_ATTR_FLOAT, .f = 1e-30f};
	struct mu_node *make, *insert;
	struct harness table, h;
	struct mu_err err;

	assert_int_equal(mu_graph_add(g, "table", "MutableDenseHashTableV2", &make, &err), 0);
	assert_int_equal(mu_graph_add(g, "insert", "LookupTableInsertV2", &insert, &err), 0);
	mu_node_set_attr(g, make, "key_dtype", &key);
	mu_node_set_attr(g, make, "value_dtype", &key);
	mu_node_set_attr(g, make, "max_load_factor", &load);
	mu_node_set_attr(g, insert, "Tin", &key);
	mu_node_set_attr(g, insert, "Tout", &key);
	assert_int_equal(harness_prepare(&table, rt, make, &err), 0);
	for (int64_t i = -2; i < 0; i++) {
		struct mu_tensor t;
		assert_int_equal(mu_tensor_scalar(&t, MU_INT64, &i, &err), 0);
		harness_input(&table, t);
	}
	assert_int_equal(harness_run(&table, &err), 0);
	assert_int_equal(harness_prepare(&h, rt, insert, &err), 0);
	harness_input(&h, mu_tensor_ref(&table.out[0].tensor));
	harness_input(&h, vector(MU_INT64, 2, (int64_t[]){1, 2}));
	harness_input(&h, vector(MU_INT64, 2, (int64_t[]){3, 4}));
	assert_int_equal(harness_run(&h, &err), -(int)MU_RESOURCE_EXHAUSTED);
	harness_fini(&h);
	harness_fini(&table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(kernel__of_every_op__has_a_row_in_the_op_table),
	    cmocka_unit_test(assign_add_by_reference__after_a_read__changes_the_read_tensor),
	    cmocka_unit_test(assign__of_a_shared_tensor__copies_it),
	    cmocka_unit_test(sparse_cross__of_many_rows_with_few_values__ends),
	    cmocka_unit_test(insert__into_a_table_with_too_many_buckets__is_resource_exhausted),
	};

	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
