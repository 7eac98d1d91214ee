/* SPDX-License-Identifier: Apache-2.0 */
#include "task/graph/graph_passes.h"
#include "tests/task/build.h"

static struct mu_err err;

static void new_graph__sum_of_two_types__is_invalid(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, "");
	node(g, "p", "Placeholder", "", "");
	attr_type(g, mu_graph_find(g, "p"), "dtype", MU_INT32);
	floats(g, "n", "Add", "a p", "");
	assert_fails(
	    graph_check_new(g, 0, false, &err), &err, MU_INVALID_ARGUMENT,
	    "Input 1 of node n was passed int32 from p:0 incompatible with expected float");
}

static void new_graph__missing_input__is_left_to_the_step(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, "");
	floats(g, "n", "Add", "a", "");
	assert_ok(graph_check_new(g, 0, false, &err), &err);
	assert_fails(graph_check_step(g, &err), &err, MU_INVALID_ARGUMENT,
		     "Incomplete graph, missing 1 inputs for n");
}

static void extension__that_fails__is_removed(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, "");
	floats(g, "n", "Add", "a", "");
	assert_fails(graph_check_new(g, 1, true, &err), &err, MU_INVALID_ARGUMENT,
		     "NodeDef expected inputs 'float, float' do not match 1 inputs specified");
	assert_int_equal(g->n_nodes, 1);
	assert_null(mu_graph_find(g, "n"));
}

static void extension__with_a_cycle_outside_a_loop__is_invalid(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct mu_node *m = floats(g, "m", "Merge", "", ""), *next, *a, *b;
	struct mu_attr two = {.kind = MU_ATTR_INT, .i = 1};

	mu_node_set_attr(g, m, "N", &two);
	next = floats(g, "next", "NextIteration", "m", "");
	mu_node_set_inputs(g, m, &(struct mu_input){next, 0}, 1, NULL, 0);
	assert_ok(graph_check_new(g, 0, true, &err), &err);
	a = node(g, "x", "NoOp", "", "");
	b = node(g, "y", "NoOp", "^x", "");
	mu_node_add_control(g, a, b);
	assert_fails(graph_check_new(g, 2, true, &err), &err, MU_INVALID_ARGUMENT,
		     "2 nodes in a cycle");
	assert_int_equal(g->n_nodes, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(new_graph__sum_of_two_types__is_invalid),
	    cmocka_unit_test(new_graph__missing_input__is_left_to_the_step),
	    cmocka_unit_test(extension__that_fails__is_removed),
	    cmocka_unit_test(extension__with_a_cycle_outside_a_loop__is_invalid),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
