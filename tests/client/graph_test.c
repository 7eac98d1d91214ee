/* SPDX-License-Identifier: Apache-2.0 */
/* Graph construction: names, devices, inferred attributes, sticky errors, structure of gradients.
 */
#include "tests/test.h"

#include <stdio.h>

#include "muster/grad.h"
#include "muster/graph.h"

static struct mu_builder *b;
static struct mu_err err;

static int setup(void **state)
{
	b = mu_builder_new();
	err = (struct mu_err){0};
	return 0;
}

static int teardown(void **state)
{
	mu_builder_free(b);
	return 0;
}

static void duplicate_names__get_a_number(void **state)
{
	struct mu_out x = mu_const_float(b, 1), y = mu_const_float(b, 2);

	assert_string_equal(x.node->name, "Const");
	assert_string_equal(y.node->name, "Const_1");
	mu_push_name(b, "layer");
	assert_string_equal(mu_neg(b, x).node->name, "layer/Neg");
	mu_pop_name(b);
	mu_push_name(b, "layer");
	assert_string_equal(mu_neg(b, x).node->name, "layer_1/Neg");
	mu_pop_name(b);
	assert_ok(mu_builder_check(b, &err), &err);
}

static void attributes__are_derived_from_inputs(void **state)
{
	struct mu_out x = mu_const_float(b, 1);
	struct mu_out p = mu_op(b, "Pack", MU_IN(x, x, x));
	enum mu_dtype t;
	int64_t n;

	assert_ok(mu_builder_check(b, &err), &err);
	assert_ok(mu_node_attr_type(p.node, "T", &t, &err), &err);
	assert_ok(mu_node_attr_int(p.node, "N", &n, &err), &err);
	assert_int_equal(t, MU_FLOAT);
	assert_int_equal(n, 3);
}

static void errors__are_sticky_and_name_the_node(void **state)
{
	struct mu_out x = mu_const_float(b, 1), i = mu_const_int(b, MU_INT32, 1);
	struct mu_out bad = mu_matmul(b, x, i);

	assert_null(bad.node);
	assert_null(mu_neg(b, bad).node);
	assert_null(mu_op(b, "NoSuchOp").node);
	assert_fails(mu_builder_check(b, &err), &err, MU_INVALID_ARGUMENT, "node 'MatMul'");
}

static void unknown_op__is_named(void **state)
{
	mu_op(b, "NoSuchOp");
	assert_fails(mu_builder_check(b, &err), &err, MU_NOT_FOUND, "no op named 'NoSuchOp'");
}

static void value_instead_of_a_variable__fails(void **state)
{
	struct mu_out x = mu_const_float(b, 1);

	mu_op(b, "Assign", MU_IN(x, x));
	assert_fails(mu_builder_check(b, &err), &err, MU_INVALID_ARGUMENT, "must be a variable");
}

static void devices__inner_fields_win(void **state)
{
	mu_push_device(b, "/job:ps/task:1");
	mu_push_device(b, "/task:2/device:CPU:0");
	assert_string_equal(mu_const_float(b, 1).node->device, "/job:ps/task:2/device:CPU:0");
	mu_pop_device(b);
	assert_string_equal(mu_const_float(b, 1).node->device, "/job:ps/task:1");
	mu_pop_device(b);
	assert_string_equal(mu_const_float(b, 1).node->device, "");
	mu_push_device(b, "gpu number one");
	assert_fails(mu_builder_check(b, &err), &err, MU_INVALID_ARGUMENT,
		     "Malformed device specification");
}

static void replica_setter__places_variables_round_robin(void **state)
{
	mu_replica_device_setter(b, 2, "/job:worker/task:3");
	for (int i = 0; i < 3; i++) {
		struct mu_var *v = mu_variable(b, "v", MU_FLOAT, MU_SHAPE(2), MU_ZEROS, true);
		char want[64];

		assert_non_null(v);
		snprintf(want, sizeof(want), "/job:ps/task:%d", i % 2);
		assert_string_equal(v->ref.node->device, want);
		assert_string_equal(v->init.node->device, want);
		assert_string_equal(v->read.node->device, want);
	}
	assert_string_equal(mu_const_float(b, 1).node->device, "/job:worker/task:3");
}

/* Round robin would give 100 + 300 and 200 + 10 numbers. */
static void replica_setter__by_bytes__balances_bytes(void **state)
{
	static const int64_t sizes[] = {100, 200, 300, 10};
	static const char *const wanted[] = {"/job:ps/task:0", "/job:ps/task:1", "/job:ps/task:0",
					     "/job:ps/task:1"};
	struct mu_var *wide, *placed;

	mu_replica_device_setter_by_bytes(b, 2, "/job:worker/task:3");
	mu_push_device(b, "/job:ps/task:0"); /* a variable with an explicit task does not count */
	placed = mu_variable(b, "placed", MU_FLOAT, MU_SHAPE(1000), MU_ZEROS, true);
	mu_pop_device(b);
	assert_string_equal(placed->ref.node->device, "/job:ps/task:0");
	for (int i = 0; i < 4; i++) {
		struct mu_var *v =
		    mu_variable(b, "v", MU_FLOAT, MU_SHAPE(sizes[i]), MU_ZEROS, true);

		assert_non_null(v);
		assert_string_equal(v->ref.node->device, wanted[i]);
		assert_string_equal(v->init.node->device, wanted[i]);
	}
	/* 190 numbers of eight bytes more than the other task */
	wide = mu_variable(b, "wide", MU_DOUBLE, MU_SHAPE(100), MU_ZEROS, true);
	assert_string_equal(wide->ref.node->device, "/job:ps/task:1");
	wide = mu_variable(b, "wide", MU_FLOAT, MU_SHAPE(1), MU_ZEROS, true);
	assert_string_equal(wide->ref.node->device, "/job:ps/task:0");
	assert_string_equal(mu_const_float(b, 1).node->device, "/job:worker/task:3");
}

static void control_dependencies__reach_nodes_in_scope(void **state)
{
	struct mu_out x = mu_const_float(b, 1), group = mu_group(b, "g", &x, 1);

	assert_int_equal(group.port, MU_CONTROL);
	assert_int_equal(group.node->n_controls, 1);
	assert_ptr_equal(group.node->inputs[group.node->n_inputs].node, x.node);
	assert_int_equal(mu_const_float(b, 1).node->n_controls, 0);
}

static void shapes__are_inferred(void **state)
{
	if (!mu_op_find("MatMul")->shape)
		skip(); /* the op table has no shape rule for this op */
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, 64));
	struct mu_var *w = mu_variable(b, "w", MU_FLOAT, MU_SHAPE(64, 10), MU_ZEROS, true);
	const struct mu_pshape *s = mu_out_shape(b, mu_matmul(b, x, mu_read(w)));

	assert_ok(mu_builder_check(b, &err), &err);
	assert_string_equal(mu_pshape_str(s), "[?,10]");
}

static void gradients__of_an_independent_input__are_none(void **state)
{
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3));
	struct mu_out y = mu_placeholder(b, "y", MU_FLOAT, MU_SHAPE(3));
	struct mu_out loss = mu_sum(b, mu_square(b, x), NULL, 0), g[2];

	mu_gradients(b, loss, (struct mu_out[]){x, y}, 2, g);
	assert_ok(mu_builder_check(b, &err), &err);
	assert_non_null(g[0].node);
	assert_null(g[1].node);
}

static void gradients__through_an_op_without_gradient__name_it(void **state)
{
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(3)), g;
	struct mu_out at = mu_const_ints(b, (int32_t[]){0, 2, 0}, 3);
	struct mu_out r =
	    mu_op(b, "Bincount", .name = "counted", MU_IN(at, mu_const_int(b, MU_INT32, 3), x));

	mu_gradients(b, mu_sum(b, r, NULL, 0), &x, 1, &g);
	assert_fails(mu_builder_check(b, &err), &err, MU_UNIMPLEMENTED, "'counted'");
}

static void minimize__places_apply_ops_with_their_variables(void **state)
{
	const char *const kinds[] = {"sgd", "momentum", "adagrad", "adam"};
	struct mu_optimizer o;

	mu_replica_device_setter(b, 2, "/job:worker/task:0");
	struct mu_out x = mu_placeholder(b, "x", MU_FLOAT, MU_SHAPE(-1, 4));
	struct mu_var *w = mu_variable(b, "w", MU_FLOAT, MU_SHAPE(4, 3), MU_ZEROS, true);
	struct mu_out loss = mu_mean(b, mu_square(b, mu_matmul(b, x, mu_read(w))), NULL, 0);

	for (size_t i = 0; i < MU_COUNT(kinds); i++) {
		assert_ok(mu_optimizer_named(kinds[i], 0.1, &o, &err), &err);
		assert_non_null(mu_minimize(b, &o, loss, mu_global_step(b)).node);
	}
	assert_ok(mu_builder_check(b, &err), &err);
	for (unsigned i = 0; i < mu_builder_graph(b)->n_nodes; i++)
		if (strncmp(mu_builder_graph(b)->nodes[i]->op, "Apply", 5) == 0)
			assert_string_equal(mu_builder_graph(b)->nodes[i]->device,
					    "/job:ps/task:0");
	assert_fails(mu_optimizer_named("adamax", 1, &o, &err), &err, MU_INVALID_ARGUMENT,
		     "adagrad");
}

static void group__of_two_devices__has_one_edge_per_device(void **state)
{
	struct mu_out after[5], all;

	for (int i = 0; i < 5; i++) {
		mu_push_device(b, i % 2 ? "/job:ps/task:1" : "/job:ps/task:0");
		after[i] = mu_const_float(b, (float)i);
		mu_pop_device(b);
	}
	mu_push_device(b, "/job:ps/task:0");
	all = mu_group(b, "all", after, 5);
	mu_pop_device(b);
	assert_ok(mu_builder_check(b, &err), &err);
	assert_int_equal(all.node->n_controls, 2);
	assert_string_equal(all.node->name, "all");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
int main(void)
{
	const struct CMUnitTest tests[] = {
	    T(group__of_two_devices__has_one_edge_per_device),
	    T(duplicate_names__get_a_number),
	    T(attributes__are_derived_from_inputs),
	    T(errors__are_sticky_and_name_the_node),
	    T(unknown_op__is_named),
	    T(value_instead_of_a_variable__fails),
	    T(devices__inner_fields_win),
	    T(replica_setter__places_variables_round_robin),
	    T(replica_setter__by_bytes__balances_bytes),
	    T(control_dependencies__reach_nodes_in_scope),
	    T(shapes__are_inferred),
	    T(gradients__of_an_independent_input__are_none),
	    T(gradients__through_an_op_without_gradient__name_it),
	    T(minimize__places_apply_ops_with_their_variables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
