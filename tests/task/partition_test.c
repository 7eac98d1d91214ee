/* SPDX-License-Identifier: Apache-2.0 */
#include "task/graph/graph_passes.h"
#include "tests/task/build.h"

#define PS     "/job:ps/replica:0/task:0/device:CPU:0"
#define WORKER "/job:worker/replica:0/task:0/device:CPU:0"

static const struct graph_device list[] = {{PS, 0x11, "CPU"}, {WORKER, 0x22, "CPU"}};
static struct graph_devices devs = {list, 2, WORKER, false, false};
static struct mu_err err;
static struct partition *partitions;
static unsigned n_partitions;

static struct mu_graph *part(const char *task)
{
	for (unsigned i = 0; i < n_partitions; i++)
		if (strcmp(partitions[i].task, task) == 0)
			return partitions[i].graph;
	fail_msg("no part for %s", task);
	return NULL;
}

static unsigned count(const struct mu_graph *g, const char *op)
{
	unsigned n = 0;

	for (unsigned i = 0; i < g->n_nodes; i++)
		n += strcmp(g->nodes[i]->op, op) == 0;
	return n;
}

static struct mu_node *only(const struct mu_graph *g, const char *op)
{
	assert_int_equal(count(g, op), 1);
	for (unsigned i = 0; i < g->n_nodes; i++)
		if (strcmp(g->nodes[i]->op, op) == 0)
			return g->nodes[i];
	return NULL;
}

static const char *text(const struct mu_node *n, const char *attr)
{
	const char *s = NULL;

	assert_ok(mu_node_attr_string(n, attr, &s, &err), &err);
	return s;
}

static void tensor_between_tasks__is_sent_once_for_two_users(void **state)
{
	struct mu_graph *g = mu_graph_new();
	int64_t inc;

	attr_type(g, node(g, "c", "Placeholder", "", PS), "dtype", MU_FLOAT);
	floats(g, "a", "Mul", "c c", WORKER);
	floats(g, "b", "Add", "c a", WORKER);
	assert_ok(graph_partition(g, &devs, &partitions, &n_partitions, &err), &err);
	assert_int_equal(n_partitions, 2);
	struct mu_node *send = only(part("/job:ps/replica:0/task:0"), "_Send");
	struct mu_node *recv = only(part("/job:worker/replica:0/task:0"), "_Recv");
	assert_string_equal(text(send, "tensor_name"), text(recv, "tensor_name"));
	assert_string_equal(text(recv, "send_device"), PS);
	assert_string_equal(text(recv, "recv_device"), WORKER);
	assert_ok(mu_node_attr_int(recv, "send_device_incarnation", &inc, &err), &err);
	assert_int_equal(inc, 0x11);
	assert_ptr_equal(mu_graph_find(part("/job:worker/replica:0/task:0"), "a")->inputs[1].node,
			 recv);
	graph_partitions_free(partitions, n_partitions);
	mu_graph_free(g);
}

static enum mu_dtype type_of(const struct mu_node *n, const char *attr)
{
	const struct mu_attr *a = mu_node_attr(n, attr);

	assert_non_null(a);
	return a->type;
}

static void float_between_tasks__is_sent_as_bfloat16_if_the_session_asks_for_it(void **state)
{
	struct mu_graph *g = mu_graph_new();

	attr_type(g, node(g, "v", "VariableV2", "", PS), "dtype", MU_FLOAT);
	attr_type(g, node(g, "n", "Placeholder", "", PS), "dtype", MU_INT32);
	floats(g, "a", "Mul", "v v", WORKER);
	attr_type(g, node(g, "b", "Identity", "n", WORKER), "T", MU_INT32);
	devs.bfloat16_edges = true;
	assert_ok(graph_partition(g, &devs, &partitions, &n_partitions, &err), &err);
	devs.bfloat16_edges = false;
	const struct mu_graph *ps = part("/job:ps/replica:0/task:0");
	const struct mu_graph *worker = part("/job:worker/replica:0/task:0");
	struct mu_node *shrink = only(ps, "Cast"), *widen = only(worker, "Cast");
	assert_int_equal(count(ps, "_Send"), 2);
	assert_int_equal(type_of(shrink, "DstT"), MU_BFLOAT16);
	assert_true(mu_node_attr(shrink, "Truncate")->b);
	assert_int_equal(type_of(widen, "DstT"), MU_FLOAT);
	assert_string_equal(widen->inputs[0].node->op, "_Recv");
	assert_int_equal(type_of(widen->inputs[0].node, "tensor_type"), MU_BFLOAT16);
	assert_ptr_equal(mu_graph_find(worker, "a")->inputs[1].node, widen);
	assert_string_equal(mu_graph_find(worker, "b")->inputs[0].node->op, "_Recv");
	graph_partitions_free(partitions, n_partitions);
	mu_graph_free(g);
}

static void control_edge_between_tasks__becomes_an_empty_tensor(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "c", 1, PS);
	node(g, "first", "NoOp", "", PS);
	node(g, "then", "NoOp", "^first", WORKER);
	assert_ok(graph_partition(g, &devs, &partitions, &n_partitions, &err), &err);
	struct mu_node *send = only(part("/job:ps/replica:0/task:0"), "_Send");
	assert_string_equal(send->inputs[0].node->op, "Const");
	assert_string_equal(send->inputs[0].node->inputs[0].node->name, "first");
	struct mu_node *then = mu_graph_find(part("/job:worker/replica:0/task:0"), "then");
	assert_int_equal(then->n_inputs, 0);
	assert_int_equal(then->n_controls, 1);
	assert_string_equal(then->inputs[0].node->op,
			    "Identity"); /* does not run on a dead token */
	assert_string_equal(then->inputs[0].node->inputs[0].node->op, "_Recv");
	graph_partitions_free(partitions, n_partitions);
	mu_graph_free(g);
}

static void resource_handle_between_tasks__is_rejected(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_pshape any = {.rank = 0};
	struct mu_attr shape = {.kind = MU_ATTR_SHAPE, .shape = &any};
	struct mu_node *v = node(g, "v", "VarHandleOp", "", PS);

	attr_type(g, v, "dtype", MU_FLOAT);
	mu_node_set_attr(g, v, "shape", &shape);
	attr_type(g, node(g, "r", "ReadVariableOp", "v", WORKER), "dtype", MU_FLOAT);
	assert_fails(graph_partition(g, &devs, &partitions, &n_partitions, &err), &err,
		     MU_INVALID_ARGUMENT, "a handle cannot leave its task");
	mu_graph_free(g);
}

static void variable_read_after_a_control_input__is_sent_after_it(void **state)
{
	struct mu_graph *g = mu_graph_new();

	attr_type(g, node(g, "v", "VariableV2", "", PS), "dtype", MU_FLOAT);
	node(g, "train", "NoOp", "", PS);
	node(g, "here", "NoOp", "", WORKER);
	floats(g, "now", "Identity", "v", WORKER);
	floats(g, "after", "Identity", "v ^train ^here", WORKER);
	assert_ok(graph_partition(g, &devs, &partitions, &n_partitions, &err), &err);
	const struct mu_graph *ps = part("/job:ps/replica:0/task:0");
	unsigned late = 0, early = 0;
	for (unsigned i = 0; i < ps->n_nodes; i++) {
		const struct mu_node *n = ps->nodes[i];
		if (strcmp(n->op, "_Send") || strcmp(n->inputs[0].node->name, "v"))
			continue;
		early += n->n_controls == 0;
		late += n->n_controls == 2;
		if (n->n_controls == 2) {
			assert_string_equal(n->inputs[1].node->name, "train");
			assert_string_equal(n->inputs[2].node->op, "Identity");
		}
	}
	assert_int_equal(late, 1);
	assert_int_equal(early, 1);
	graph_partitions_free(partitions, n_partitions);
	mu_graph_free(g);
}

/* while (x < limit) x = -x, with the negation on the ps. */
static struct mu_graph *loop_over_two_tasks(bool condition)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *merge;
	struct mu_input in[2];

	scalar(g, "c", 1, PS);
	attr_string(g, floats(g, "enter", "Enter", "c", PS), "frame_name", "f");
	merge = floats(g, "merge", "Merge", "enter", WORKER);
	attr_int(g, merge, "N", 2);
	floats(g, "less", "Less", "merge merge", WORKER);
	if (condition)
		node(g, "cond", "LoopCond", "less", WORKER);
	floats(g, "choice", "Switch", condition ? "merge cond" : "merge less", WORKER);
	floats(g, "body", "Neg", "choice:1", PS);
	floats(g, "next", "NextIteration", "body", PS);
	floats(g, "exit", "Exit", "choice", PS);
	assert_ok(mu_graph_resolve(g, "enter", &in[0], &err), &err);
	assert_ok(mu_graph_resolve(g, "next", &in[1], &err), &err);
	mu_node_set_inputs(g, merge, in, 2, NULL, 0);
	return g;
}

static void loop_over_two_tasks__iterates_on_both(void **state)
{
	struct mu_graph *g = loop_over_two_tasks(true);

	assert_ok(graph_partition(g, &devs, &partitions, &n_partitions, &err), &err);
	const struct mu_graph *ps = part("/job:ps/replica:0/task:0");
	const struct mu_graph *worker = part("/job:worker/replica:0/task:0");
	struct mu_node *pivot = only(ps, "Merge"), *enter = only(ps, "Enter");
	assert_ptr_equal(pivot->inputs[0].node, enter); /* the control loop */
	assert_string_equal(text(enter, "frame_name"), "f");
	assert_string_equal(only(ps, "Switch")->inputs[1].node->op, "_Recv");
	for (unsigned i = 0; i < ps->n_nodes; i++)
		if (!strcmp(ps->nodes[i]->op, "_Recv")) {
			assert_int_equal(ps->nodes[i]->n_controls, 1);
			assert_ptr_equal(ps->nodes[i]->inputs[0].node, pivot);
		}
	/* nodes without an output in some iterations are on the device of their neighbours */
	assert_non_null(mu_graph_find(worker, "enter"));
	assert_non_null(mu_graph_find(worker, "next"));
	assert_non_null(mu_graph_find(worker, "exit"));
	graph_partitions_free(partitions, n_partitions);
	mu_graph_free(g);
}

static void loop_over_two_tasks_without_a_condition__is_rejected(void **state)
{
	struct mu_graph *g = loop_over_two_tasks(false);

	assert_fails(graph_partition(g, &devs, &partitions, &n_partitions, &err), &err,
		     MU_INVALID_ARGUMENT, "the loop 'f' spans tasks and has no LoopCond");
	mu_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(tensor_between_tasks__is_sent_once_for_two_users),
	    cmocka_unit_test(float_between_tasks__is_sent_as_bfloat16_if_the_session_asks_for_it),
	    cmocka_unit_test(control_edge_between_tasks__becomes_an_empty_tensor),
	    cmocka_unit_test(resource_handle_between_tasks__is_rejected),
	    cmocka_unit_test(variable_read_after_a_control_input__is_sent_after_it),
	    cmocka_unit_test(loop_over_two_tasks__iterates_on_both),
	    cmocka_unit_test(loop_over_two_tasks_without_a_condition__is_rejected),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
