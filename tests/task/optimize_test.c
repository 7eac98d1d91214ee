/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>

#include "task/graph/optimize.h"
#include "task/messages/control.h"
#include "tests/task/run_step.h"

static struct mu_err err;

static unsigned count(const struct mu_graph *g, const char *op)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n_nodes; i++)
		n += strcmp(g->nodes[i]->op, op) == 0;
	return n;
}

/* Runs g once, consumes it, and returns the scalar that it sends as "out". */
static float run_scalar_graph(struct mu_graph *g)
{
	struct executor *e = compile(g);
	float v = run_scalar(e);

	executor_unref(e);
	return v;
}

static void constants__are_folded_and_their_inputs_removed(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 3, "");
	scalar(g, "b", 4, "");
	floats(g, "m", "Mul", "a b", "");
	floats(g, "s", "Add", "m a", "");
	floats(g, "i", "Identity", "s", "");
	end(g, "send", "_Send", "i", "out");
	graph_optimize(g, rt);
	assert_int_equal(g->n_nodes, 2);
	assert_int_equal(count(g, "Const"), 1);
	assert_float_equal(run_scalar_graph(g), 15, 0);
}

static void node_with_two_outputs__is_folded(void **state)
{
	struct mu_graph *g = mu_graph_new();
	int32_t zero = 0;
	struct mu_node *n;

	scalar(g, "a", 5, "");
	scalar(g, "b", 6, "");
	n = floats(g, "p", "Pack", "a b", "");
	attr_int(g, n, "N", 2);
	constant(g, "axis", MU_INT32, &zero, "", "");
	n = floats(g, "u", "Unpack", "p", "");
	attr_int(g, n, "num", 2);
	floats(g, "d", "Sub", "u u:1", "");
	end(g, "send", "_Send", "d", "out");
	graph_optimize(g, rt);
	assert_int_equal(g->n_nodes, 2);
	assert_float_equal(run_scalar_graph(g), -1, 0);
}

static void failing_kernel__is_not_folded(void **state)
{
	struct mu_graph *g = mu_graph_new();
	int32_t one = 1, zero = 0;
	struct mu_node *n;

	constant(g, "one", MU_INT32, &one, "", "");
	constant(g, "zero", MU_INT32, &zero, "", "");
	n = node(g, "d", "FloorDiv", "one zero", "");
	attr_type(g, n, "T", MU_INT32);
	graph_optimize(g, rt);
	assert_int_equal(count(g, "FloorDiv"), 1);
	mu_graph_free(g);
}

static void large_result__is_not_folded(void **state)
{
	struct mu_graph *g = mu_graph_new();
	int32_t many = 100 << 20;
	struct mu_node *n;

	constant(g, "n", MU_INT32, &many, "", "");
	scalar(g, "v", 1, "");
	struct mu_shape shape = mu_shape_vec(1);
	struct mu_tensor *dims = mu_graph_find(g, "n")->attrs[0].value.tensor;
	dims->shape = shape;
	n = floats(g, "f", "Fill", "n v", "");
	attr_type(g, n, "index_type", MU_INT32);
	floats(g, "sum", "Neg", "f", "");
	graph_optimize(g, rt);
	assert_int_equal(count(g, "Fill"), 1);
	mu_graph_free(g);
}

static void equal_nodes__are_merged_unless_random(void **state)
{
	struct mu_graph *g = mu_graph_new();
	int32_t dims = 1;

	constant(g, "shape", MU_INT32, &dims, "", "");
	mu_graph_find(g, "shape")->attrs[0].value.tensor->shape = mu_shape_vec(1);
	for (int i = 0; i < 2; i++) {
		struct mu_node *n = node(g, i ? "r1" : "r0", "RandomStandardNormal", "shape", "");
		attr_type(g, n, "dtype", MU_FLOAT);
		attr_type(g, n, "T", MU_INT32);
	}
	floats(g, "x", "Exp", "r0", "");
	floats(g, "y", "Exp", "r0", "");
	floats(g, "z", "Exp", "r1", "");
	floats(g, "d", "Sub", "x y", "");
	floats(g, "e", "Mul", "d z", "");
	end(g, "send", "_Send", "e", "out");
	graph_optimize(g, rt);
	assert_int_equal(count(g, "RandomStandardNormal"), 2);
	assert_int_equal(count(g, "Exp"), 2);
	assert_float_equal(run_scalar_graph(g), 0, 0);
}

/* switch_t is the source of the control edges of a branch.  The Switch cannot replace it, because
 * the Switch always runs. */
static void identity_behind_a_switch__keeps_its_control_edges(void **state)
{
	for (int on = 0; on < 2; on++) {
		struct mu_graph *g = mu_graph_new();
		bool pred = on;
		float ten = 10, one = 1;

		struct mu_node *n = end(g, "in", "_Recv", "", "in");
		attr_type(g, n, "tensor_type", MU_BOOL);
		constant(g, "pred", MU_BOOL, &pred, "", "");
		n = node(g, "sw", "Switch", "pred pred", "");
		attr_type(g, n, "T", MU_BOOL);
		n = node(g, "t", "Identity", "sw:1", "");
		attr_type(g, n, "T", MU_BOOL);
		n = node(g, "f", "Identity", "sw", "");
		attr_type(g, n, "T", MU_BOOL);
		constant(g, "yes", MU_FLOAT, &ten, "^t", "");
		constant(g, "no", MU_FLOAT, &one, "^f", "");
		n = floats(g, "m", "Merge", "no yes", "");
		attr_int(g, n, "N", 2);
		end(g, "send", "_Send", "m", "out");
		bool keep[16];
		for (unsigned i = 0; i < g->n_nodes; i++)
			keep[i] = i != 0; /* the _Recv only shifts the ids */
		mu_graph_keep(g, keep);
		graph_optimize(g, rt);
		assert_int_equal(count(g, "Identity"), 2);
		assert_float_equal(run_scalar_graph(g), on ? 10 : 1, 0);
	}
}

static void variable_reads__are_not_merged(void **state)
{
	struct mu_graph *g = mu_graph_new();

	attr_type(g, node(g, "v", "VariableV2", "", ""), "dtype", MU_FLOAT);
	node(g, "train", "NoOp", "", "");
	floats(g, "now", "Identity", "v", "");
	floats(g, "again", "Identity", "v", "");
	floats(g, "sum", "Add", "now again", "");
	graph_optimize(g, rt);
	assert_int_equal(count(g, "Identity"), 2);
	assert_int_equal(count(g, "NoOp"), 0);
	mu_graph_free(g);
}

/* Two gradients under one control node: only the gradient of the weights is used. */
static void unused_value_with_control_outputs__is_not_computed(void **state)
{
	struct mu_graph *g = mu_graph_new();
	float one = 1;

	attr_type(g, node(g, "p", "Placeholder", "", ""), "dtype", MU_FLOAT);
	floats(g, "deep", "Tanh", "p", "");
	floats(g, "data", "Mul", "deep p", "");
	floats(g, "weights", "Exp", "p", "");
	node(g, "both", "NoOp", "^data ^weights", "");
	floats(g, "taken", "Neg", "weights ^both", "");
	end(g, "send", "_Send", "taken", "out");
	constant(g, "later", MU_FLOAT, &one, "^data", "");
	end(g, "send2", "_Send", "later", "out2");
	graph_optimize(g, rt);
	assert_int_equal(count(g, "Tanh"), 0);
	assert_int_equal(count(g, "Mul"), 0);
	assert_int_equal(count(g, "Exp"), 1);
	assert_int_equal(count(g, "Neg"), 1);
	mu_graph_free(g);
}

static void unused_value_behind_a_switch__keeps_inputs_that_may_be_dead(void **state)
{
	struct mu_graph *g = mu_graph_new();

	attr_type(g, node(g, "p", "Placeholder", "", ""), "dtype", MU_FLOAT);
	attr_type(g, node(g, "q", "Placeholder", "", ""), "dtype", MU_BOOL);
	attr_type(g, node(g, "sw", "Switch", "p q", ""), "T", MU_FLOAT);
	floats(g, "no", "Mul", "sw p", "");
	floats(g, "out", "Neg", "p ^no", "");
	end(g, "send", "_Send", "out", "out");
	graph_optimize(g, rt);
	assert_int_equal(count(g, "Mul"), 0);
	struct mu_node *no = mu_graph_find(g, "no");
	assert_string_equal(no->op, "IdentityN");
	assert_int_equal(no->n_inputs, 1);
	assert_string_equal(no->inputs[0].node->name, "sw");
	assert_ok(mu_op_check_node(no, &g->arena, &err), &err);
	mu_graph_free(g);
}

static void no_op_with_one_control_input__is_replaced_by_its_input(void **state)
{
	struct mu_graph *g = mu_graph_new();

	attr_type(g, node(g, "p", "Placeholder", "", ""), "dtype", MU_FLOAT);
	node(g, "n1", "NoOp", "^p", "");
	node(g, "n2", "NoOp", "^n1", "");
	float one = 1;
	constant(g, "c", MU_FLOAT, &one, "^n2 ^n1", "");
	graph_optimize(g, rt);
	assert_int_equal(g->n_nodes, 2);
	struct mu_node *c = mu_graph_find(g, "c");
	assert_int_equal(c->n_controls, 1);
	assert_string_equal(c->inputs[0].node->name, "p");
	mu_graph_free(g);
}

static void loop__has_the_same_result(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_attr yes = {.kind = MU_ATTR_BOOL, .b = true};
	struct mu_input in[2];
	struct mu_node *n, *merge;

	scalar(g, "a", 1, "");
	floats(g, "limit", "Add", "a a", ""); /* 2, folded */
	n = floats(g, "e_i", "Enter", "a", "");
	attr_string(g, n, "frame_name", "f");
	n = floats(g, "e_l", "Enter", "limit", "");
	attr_string(g, n, "frame_name", "f");
	mu_node_set_attr(g, n, "is_constant", &yes);
	merge = floats(g, "merge", "Merge", "e_i", "");
	attr_int(g, merge, "N", 2);
	floats(g, "less", "Less", "merge e_l", "");
	node(g, "cond", "LoopCond", "less", "");
	floats(g, "sw", "Switch", "merge cond", "");
	floats(g, "id", "Identity", "sw:1", "");
	float by = 0.75f;
	constant(g, "by", MU_FLOAT, &by, "^id", "");
	floats(g, "body", "Add", "id by", "");
	floats(g, "back", "Identity", "body", "");
	floats(g, "next", "NextIteration", "back", "");
	floats(g, "exit", "Exit", "sw", "");
	end(g, "send", "_Send", "exit", "out");
	assert_ok(mu_graph_resolve(g, "e_i", &in[0], &err), &err);
	assert_ok(mu_graph_resolve(g, "next", &in[1], &err), &err);
	mu_node_set_inputs(g, merge, in, 2, NULL, 0);
	graph_optimize(g, rt);
	assert_int_equal(count(g, "Identity"), 1);
	assert_float_equal(run_scalar_graph(g), 2.5, 0);
}

static void invalid_graph__is_left_to_the_compiler(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *x;

	scalar(g, "a", 1, "");
	floats(g, "m", "Mul", "a a:7", "");
	graph_optimize(g, rt);
	assert_int_equal(g->n_nodes, 2);
	mu_graph_free(g);
	g = mu_graph_new();
	x = floats(g, "x", "Identity", "", "");
	struct mu_input in = {x, 0};
	mu_node_set_inputs(g, x, &in, 1, NULL, 0);
	node(g, "u", "NoSuchOp", "x", "");
	graph_optimize(g, rt);
	assert_int_equal(g->n_nodes, 2);
	mu_graph_free(g);
	g = mu_graph_new();
	int32_t one = 1;
	constant(g, "a", MU_INT32, &one, "", "");
	floats(g, "m", "Mul", "a a", "");
	graph_optimize(g, rt);
	assert_int_equal(count(g, "Mul"), 1);
	mu_graph_free(g);
}

static void optimizer__is_disabled_by_the_session_config(void **state)
{
	/* graph_options { optimizer_options { opt_level: L0 } } */
	static const char level[] = "\x52\x0d\x1a\x0b\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
	/* graph_options { rewrite_options { disable_meta_optimizer: true } } */
	static const char rewrite[] = "\x52\x05\x52\x03\x98\x01\x01";

	assert_true(control_optimizer_enabled(MU_SPAN("")));
	assert_true(control_optimizer_enabled(MU_SPAN("\x52\x00")));
	assert_true(control_optimizer_enabled(MU_SPAN("\x52\x7f")));
	assert_false(control_optimizer_enabled((struct mu_span){level, sizeof level - 1}));
	assert_false(control_optimizer_enabled((struct mu_span){rewrite, sizeof rewrite - 1}));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(constants__are_folded_and_their_inputs_removed),
	    cmocka_unit_test(node_with_two_outputs__is_folded),
	    cmocka_unit_test(failing_kernel__is_not_folded),
	    cmocka_unit_test(large_result__is_not_folded),
	    cmocka_unit_test(equal_nodes__are_merged_unless_random),
	    cmocka_unit_test(identity_behind_a_switch__keeps_its_control_edges),
	    cmocka_unit_test(variable_reads__are_not_merged),
	    cmocka_unit_test(unused_value_with_control_outputs__is_not_computed),
	    cmocka_unit_test(unused_value_behind_a_switch__keeps_inputs_that_may_be_dead),
	    cmocka_unit_test(no_op_with_one_control_input__is_replaced_by_its_input),
	    cmocka_unit_test(loop__has_the_same_result),
	    cmocka_unit_test(optimizer__is_disabled_by_the_session_config),
	    cmocka_unit_test(invalid_graph__is_left_to_the_compiler),
	};
	return cmocka_run_group_tests(tests, start_runtime, stop_runtime);
}
