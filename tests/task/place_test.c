/* SPDX-License-Identifier: Apache-2.0 */
#include "task/graph/graph_passes.h"
#include "tests/task/build.h"

#define PS0    "/job:ps/replica:0/task:0/device:CPU:0"
#define WORKER "/job:worker/replica:0/task:0/device:CPU:0"

static const struct graph_device list[] = {{PS0, 1, "CPU"}, {WORKER, 2, "CPU"}};
static struct graph_devices devs = {list, 2, WORKER, false, false};
static struct mu_err err;

static struct mu_node *variable(struct mu_graph *g, const char *name, const char *device)
{
	struct mu_node *v = node(g, name, "VariableV2", "", device);
	struct mu_pshape any = {.rank = 0};
	struct mu_attr shape = {.kind = MU_ATTR_SHAPE, .shape = &any};

	attr_type(g, v, "dtype", MU_FLOAT);
	mu_node_set_attr(g, v, "shape", &shape);
	return v;
}

static void expect(struct mu_graph *g, const char *name, const char *device)
{
	assert_string_equal(mu_graph_find(g, name)->device, device);
}

static void node_without_a_device__goes_to_the_clients_task(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "free", 1, "");
	scalar(g, "asked", 1, "/job:ps");
	scalar(g, "old", 1, "/job:ps/task:0/cpu:0");
	scalar(g, "wild", 1, "/device:CPU:*");
	assert_ok(graph_place(g, &devs, NULL, &err), &err);
	expect(g, "free", WORKER);
	expect(g, "asked", PS0);
	expect(g, "old", PS0);
	expect(g, "wild", WORKER);
	mu_graph_free(g);
}

static void node_of_an_old_graph__goes_to_the_first_task_by_name(void **state)
{
	static const struct graph_device unsorted[] = {{WORKER, 2, "CPU"}, {PS0, 1, "CPU"}};
	static const struct {
		int producer;
		const char *device;
	} cases[] = {{21, PS0}, {134, PS0}, {175, PS0}, {561, WORKER}, {0, WORKER}};

	for (unsigned i = 0; i < MU_COUNT(cases); i++) {
		struct graph_devices two = {unsorted, 2, WORKER, false, false};
		struct mu_graph *g = mu_graph_new();

		g->producer = cases[i].producer;
		scalar(g, "free", 1, "");
		scalar(g, "asked", 1, "/job:worker");
		assert_ok(graph_place(g, &two, NULL, &err), &err);
		expect(g, "free", cases[i].device);
		expect(g, "asked", WORKER);
		mu_graph_free(g);
	}
}

static void user_of_a_variable__is_placed_with_it(void **state)
{
	struct mu_graph *g = mu_graph_new();

	variable(g, "v", "/job:ps/task:0");
	scalar(g, "init", 1, "");
	floats(g, "assign", "Assign", "v init", "");
	floats(g, "read", "Identity", "v", "");
	floats(g, "use", "Mul", "read read", "");
	attr_class(g, scalar(g, "with", 1, ""), "loc:@v");
	assert_ok(graph_place(g, &devs, NULL, &err), &err);
	expect(g, "assign", PS0);
	expect(g, "init", PS0); /* the initial value of the variable only */
	expect(g, "with", PS0);
	expect(g, "use", WORKER);
	mu_graph_free(g);
}

static void shape_reader__stays_with_its_producer(void **state)
{
	struct mu_graph *g = mu_graph_new();

	floats(g, "far", "Identity", "", "/job:ps");
	scalar(g, "c", 1, "");
	mu_node_set_inputs(g, mu_graph_find(g, "far"), &(struct mu_input){mu_graph_find(g, "c"), 0},
			   1, NULL, 0);
	floats(g, "shape", "Shape", "far", "");
	assert_ok(graph_place(g, &devs, NULL, &err), &err);
	expect(g, "shape", PS0);
	mu_graph_free(g);
}

static void unknown_device__is_reported_with_the_available_ones(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "c", 1, "/job:ps/task:7");
	assert_fails(graph_place(g, &devs, NULL, &err), &err, MU_INVALID_ARGUMENT,
		     "Cannot assign a device for operation c: {{node c}} was explicitly assigned "
		     "to /job:ps/task:7 but available devices are [ " PS0 ", " WORKER " ].");
	mu_graph_free(g);
}

static void missing_gpu__becomes_a_cpu_only_with_soft_placement(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "c", 1, "/job:ps/device:GPU:0");
	assert_fails(graph_place(g, &devs, NULL, &err), &err, MU_INVALID_ARGUMENT, "GPU:0");
	devs.soft_placement = true;
	assert_ok(graph_place(g, &devs, NULL, &err), &err);
	devs.soft_placement = false;
	expect(g, "c", PS0);
	mu_graph_free(g);
}

#define GPU0 "/job:worker/replica:0/task:0/device:GPU:0"
static const struct graph_device with_gpu[] = {
    {PS0, 1, "CPU"}, {WORKER, 2, "CPU"}, {GPU0, 3, "GPU"}};
static struct graph_devices gpu_devs = {with_gpu, 3, WORKER, false, false};

/* Adds an op on variables without a GPU kernel, which keeps the variables on the CPU. */
static void ref_select(struct mu_graph *g, const char *name, const char *inputs)
{
	attr_int(g, floats(g, name, "RefSelect", inputs, ""), "N", 2);
}

static void node_with_a_gpu_kernel__goes_to_its_tasks_gpu(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, "");
	floats(g, "native", "Mul", "a a", "");
	floats(g, "there", "Mul", "a a", "/job:ps");
	floats(g, "asked", "Mul", "a a", "/device:CPU:0");
	floats(g, "none", "MatrixLogarithm", "native", "");
	variable(g, "v", "");
	floats(g, "assign", "Assign", "v a", "");
	variable(g, "w", "");
	ref_select(g, "update", "a w w");
	assert_ok(graph_place(g, &gpu_devs, NULL, &err), &err);
	expect(g, "native", GPU0);
	expect(g, "there", PS0);
	expect(g, "asked", WORKER);
	expect(g, "none", WORKER);
	expect(g, "v", GPU0);
	expect(g, "assign", GPU0);
	expect(g, "w", WORKER);
	mu_graph_free(g);
}

/* Stock TensorFlow registers such ops for GPUs, so graphs may place them there.  Without a device
 * request they go to the CPU. */
static void host_memory_op_on_a_gpu__keeps_its_device(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, "");
	floats(g, "named", "Cholesky", "a", "/job:worker/device:GPU:0");
	floats(g, "free", "Cholesky", "a", "");
	assert_ok(graph_place(g, &gpu_devs, NULL, &err), &err);
	expect(g, "named", GPU0);
	expect(g, "free", WORKER);
	mu_graph_free(g);
}

static void node_without_a_gpu_kernel__on_a_gpu__is_rejected_without_soft_placement(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, "");
	floats(g, "d", "MatrixLogarithm", "a", "/job:worker/device:GPU:0");
	assert_fails(graph_place(g, &gpu_devs, NULL, &err), &err, MU_INVALID_ARGUMENT,
		     "there is none for op MatrixLogarithm");
	gpu_devs.soft_placement = true;
	assert_ok(graph_place(g, &gpu_devs, NULL, &err), &err);
	gpu_devs.soft_placement = false;
	expect(g, "d", WORKER);
	mu_graph_free(g);
}

static void user_of_a_variable__follows_it_against_its_device_request(void **state)
{
	struct mu_graph *g = mu_graph_new();

	variable(g, "v", "/job:ps/task:0");
	scalar(g, "init", 1, "");
	floats(g, "assign", "Assign", "v init", "/job:worker/task:0");
	assert_ok(graph_place(g, &devs, NULL, &err), &err);
	expect(g, "assign", PS0);
	mu_graph_free(g);
}

static struct mu_node *handles(struct mu_graph *g, const char *name, const char *op,
			       const char *inputs)
{
	struct mu_node *n = node(g, name, op, inputs, "/job:worker/task:0");

	attr_type(g, n, "T", MU_RESOURCE);
	return n;
}

/* Merge is visited before NextIteration, whose group does not contain the variable yet. */
static void
loop__that_carries_a_handle__follows_the_variable_against_its_device_request(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *v = node(g, "v", "VarHandleOp", "", "/job:ps/task:0"), *merge;
	struct mu_pshape any = {.rank = 0};
	struct mu_attr shape = {.kind = MU_ATTR_SHAPE, .shape = &any}, two = {MU_ATTR_INT, .i = 2};
	struct mu_input in[2];
	bool yes = true;

	attr_type(g, v, "dtype", MU_FLOAT);
	mu_node_set_attr(g, v, "shape", &shape);
	constant(g, "more", MU_BOOL, &yes, "", "");
	in[0] = (struct mu_input){handles(g, "enter", "Enter", "v"), 0};
	attr_string(g, in[0].node, "frame_name", "loop");
	merge = handles(g, "merge", "Merge", "enter enter");
	mu_node_set_attr(g, merge, "N", &two);
	handles(g, "switch", "Switch", "merge more");
	in[1] = (struct mu_input){handles(g, "next", "NextIteration", "switch:1"), 0};
	mu_node_set_inputs(g, merge, in, 2, NULL, 0);
	assert_ok(graph_place(g, &devs, NULL, &err), &err);
	expect(g, "enter", PS0);
	expect(g, "merge", PS0);
	expect(g, "next", PS0);
	mu_graph_free(g);
}

static void colocated_variables_on_different_tasks__are_rejected(void **state)
{
	struct mu_graph *g = mu_graph_new();

	variable(g, "v", "/job:ps/task:0");
	scalar(g, "init", 1, "");
	attr_class(g, variable(g, "other", "/job:worker/task:0"), "loc:@assign");
	floats(g, "assign", "Assign", "v init", "");
	assert_fails(graph_place(g, &devs, NULL, &err), &err, MU_INVALID_ARGUMENT,
		     "'other' asks for /job:worker/task:0 and 'v' for /job:ps/task:0");
	mu_graph_free(g);
}

static void group_with_conflicting_devices__is_rejected(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, "/job:ps/task:0");
	attr_class(g, scalar(g, "b", 1, "/job:worker/task:0"), "loc:@a");
	assert_fails(graph_place(g, &devs, NULL, &err), &err, MU_INVALID_ARGUMENT,
		     "Cannot colocate nodes {{colocation_node a}} and {{colocation_node b}}");
	mu_graph_free(g);
}

static void malformed_device_name__is_rejected(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "c", 1, "/jib:ps");
	assert_fails(graph_place(g, &devs, NULL, &err), &err, MU_INVALID_ARGUMENT,
		     "Malformed device specification '/jib:ps'");
	mu_graph_free(g);
}

/* Prunes g for `target` and places the result as a step of a session with `stateful`. */
static struct mu_graph *step(struct mu_graph *g, const char *target, struct graph_devices *d,
			     struct stateful_placement *stateful)
{
	struct graph_signature sig = {.targets = &target, .n_targets = 1};
	const char **feed_keys, **fetch_keys;
	struct mu_graph *out = NULL;

	graph_place_stateful(g, d, stateful);
	assert_ok(graph_prune(g, &sig, d, &out, &feed_keys, &fetch_keys, &err), &err);
	assert_ok(graph_place(out, d, stateful, &err), &err);
	return out;
}

static void expect_step(struct mu_graph *g, const char *target, struct stateful_placement *stateful,
			const char *name, const char *device)
{
	struct mu_graph *s = step(g, target, &devs, stateful);

	expect(s, name, device);
	mu_graph_free(s);
}

/* Makes a variable and its assignment, without device requests. */
static struct mu_graph *set_variable(struct stateful_placement *stateful)
{
	struct mu_graph *g = mu_graph_new();

	mu_map_init(&stateful->by_name);
	variable(g, "v", "");
	scalar(g, "c", 1, "");
	floats(g, "init", "Assign", "v c", "");
	return g;
}

static void variable__is_placed_by_a_constraint_in_another_step(void **state)
{
	struct stateful_placement stateful = {0};
	struct mu_graph *g = set_variable(&stateful);

	floats(g, "push", "AssignAdd", "v c", "/job:ps/task:0");
	attr_class(g, variable(g, "slot", ""), "loc:@v");
	floats(g, "zero", "Assign", "slot c", "");
	expect_step(g, "init", &stateful, "v", PS0);
	expect_step(g, "push", &stateful, "v", PS0);
	expect_step(g, "zero", &stateful, "slot", PS0); /* v is not in this step */
	mu_map_fini(&stateful.by_name);
	mu_graph_free(g);
}

static void stateful_placement__does_not_change_when_the_graph_grows(void **state)
{
	struct stateful_placement stateful = {0};
	struct mu_graph *g = set_variable(&stateful);

	expect_step(g, "init", &stateful, "v", WORKER);
	floats(g, "push", "AssignAdd", "v c", "/job:ps/task:0");
	attr_class(g, variable(g, "slot", ""), "loc:@v");
	expect_step(g, "push", &stateful, "v", WORKER);
	expect_step(g, "push", &stateful, "push", WORKER);
	expect_step(g, "slot", &stateful, "slot", WORKER);
	mu_map_fini(&stateful.by_name);
	mu_graph_free(g);
}

static void node_that_fits_no_device__fails_only_the_step_that_needs_it(void **state)
{
	struct mu_graph *g = mu_graph_new();
	struct stateful_placement stateful = {0};
	struct mu_node *q;

	mu_map_init(&stateful.by_name);
	variable(g, "v", "/job:worker");
	attr_class(g, variable(g, "w", "/job:ps"), "loc:@v");
	variable(g, "nowhere", "/job:ps/task:9");
	variable(g, "malformed", "/jib:ps");
	node(g, "unknown", "NoSuchOp", "v", "");
	floats(g, "untyped", "Assign", "v w", "");
	q = node(g, "q", "FIFOQueueV2", "", "");
	attr_class(g, node(g, "close", "QueueCloseV2", "q", "/job:ps"), "loc:@q");
	assert_non_null(q);
	expect_step(g, "v", &stateful, "v", WORKER);
	expect_step(g, "q", &stateful, "q", PS0);
	assert_null(mu_map_get(&stateful.by_name, "nowhere"));
	mu_map_fini(&stateful.by_name);
	mu_graph_free(g);
}

static void variable_on_a_missing_gpu__takes_its_users_to_the_cpu_with_soft_placement(void **state)
{
	struct mu_graph *g = mu_graph_new(), *s;
	struct stateful_placement stateful = {0};

	mu_map_init(&stateful.by_name);
	variable(g, "v", "/job:ps/device:GPU:0");
	scalar(g, "a", 1, "");
	attr_class(g, floats(g, "init", "Assign", "v a", "/job:ps/device:GPU:0"), "loc:@v");
	attr_class(g, floats(g, "other", "Assign", "v a", "/job:ps/device:TPU:0"), "loc:@v");
	devs.soft_placement = true;
	for (int i = 0; i < 2; i++) { /* the second step finds the variable on its device */
		s = step(g, "init", &devs, &stateful);
		expect(s, "v", PS0);
		expect(s, "init", PS0);
		mu_graph_free(s);
	}
	s = step(g, "other", &devs, &stateful);
	expect(s, "other", PS0);
	mu_graph_free(s);
	devs.soft_placement = false;
	mu_map_fini(&stateful.by_name);
	mu_graph_free(g);
}

static void group_with_conflicting_device_types__needs_only_a_task_with_soft_placement(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "c", 1, "/job:ps/device:GPU:0");
	attr_class(g, scalar(g, "type", 1, "/job:ps/device:CPU:0"), "loc:@c");
	attr_class(g, scalar(g, "index", 1, "/job:ps/device:GPU:1"), "loc:@c");
	devs.soft_placement = true;
	assert_ok(graph_place(g, &devs, NULL, &err), &err);
	expect(g, "c", PS0);
	expect(g, "index", PS0);
	attr_class(g, scalar(g, "task", 1, "/job:worker/device:GPU:0"), "loc:@c");
	assert_fails(graph_place(g, &devs, NULL, &err), &err, MU_INVALID_ARGUMENT,
		     "Cannot colocate nodes");
	devs.soft_placement = false;
	mu_graph_free(g);
}

static void stateful_node_on_a_gpu__is_not_moved_by_soft_placement(void **state)
{
	struct mu_graph *g = mu_graph_new(), *s;
	struct stateful_placement stateful = {0};

	mu_map_init(&stateful.by_name);
	variable(g, "v", "");
	scalar(g, "a", 1, "");
	floats(g, "init", "Assign", "v a", "");
	s = step(g, "init", &gpu_devs, &stateful);
	expect(s, "v", GPU0);
	mu_graph_free(s);
	variable(g, "w", "");
	/* RefSelect would need both variables on the CPU, but v stays on the GPU */
	ref_select(g, "late", "a v w");
	gpu_devs.soft_placement = true;
	graph_place_stateful(g, &gpu_devs, &stateful);
	assert_fails(graph_place(g, &gpu_devs, &stateful, &err), &err, MU_INVALID_ARGUMENT,
		     "there is none for op RefSelect");
	gpu_devs.soft_placement = false;
	mu_map_fini(&stateful.by_name);
	mu_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(node_without_a_device__goes_to_the_clients_task),
	    cmocka_unit_test(node_of_an_old_graph__goes_to_the_first_task_by_name),
	    cmocka_unit_test(host_memory_op_on_a_gpu__keeps_its_device),
	    cmocka_unit_test(user_of_a_variable__is_placed_with_it),
	    cmocka_unit_test(shape_reader__stays_with_its_producer),
	    cmocka_unit_test(unknown_device__is_reported_with_the_available_ones),
	    cmocka_unit_test(missing_gpu__becomes_a_cpu_only_with_soft_placement),
	    cmocka_unit_test(node_with_a_gpu_kernel__goes_to_its_tasks_gpu),
	    cmocka_unit_test(
		node_without_a_gpu_kernel__on_a_gpu__is_rejected_without_soft_placement),
	    cmocka_unit_test(host_memory_op_on_a_gpu__keeps_its_device),
	    cmocka_unit_test(user_of_a_variable__follows_it_against_its_device_request),
	    cmocka_unit_test(
		loop__that_carries_a_handle__follows_the_variable_against_its_device_request),
	    cmocka_unit_test(colocated_variables_on_different_tasks__are_rejected),
	    cmocka_unit_test(group_with_conflicting_devices__is_rejected),
	    cmocka_unit_test(malformed_device_name__is_rejected),
	    cmocka_unit_test(variable__is_placed_by_a_constraint_in_another_step),
	    cmocka_unit_test(stateful_placement__does_not_change_when_the_graph_grows),
	    cmocka_unit_test(node_that_fits_no_device__fails_only_the_step_that_needs_it),
	    cmocka_unit_test(
		variable_on_a_missing_gpu__takes_its_users_to_the_cpu_with_soft_placement),
	    cmocka_unit_test(
		group_with_conflicting_device_types__needs_only_a_task_with_soft_placement),
	    cmocka_unit_test(stateful_node_on_a_gpu__is_not_moved_by_soft_placement),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
