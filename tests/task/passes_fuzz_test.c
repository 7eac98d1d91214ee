/* SPDX-License-Identifier: Apache-2.0 */
/* Runs all passes on some thousand corrupted copies of a small trainer's graph. */
#include <time.h>

#include "tests/fuzz/mutate.h"
#include "tests/task/build.h"

#include "tests/fuzz/passes_fuzz.c"

static void variable(struct mu_graph *g, const char *name)
{
	struct mu_pshape any = {.rank = 0};
	struct mu_attr shape = {.kind = MU_ATTR_SHAPE, .shape = &any};
	struct mu_node *n = node(g, name, "VariableV2", "", PS);

	attr_type(g, n, "dtype", MU_FLOAT);
	mu_node_set_attr(g, n, "shape", &shape);
}

/* A product with bias and activation, a branch, a loop, an update on the other task. */
static struct mu_graph *trainer(void)
{
	struct mu_graph *g = mu_graph_new();
	bool yes = true;
	struct mu_input in[2];
	struct mu_node *n, *merge;

	attr_type(g, node(g, "x", "Placeholder", "", ""), "dtype", MU_FLOAT);
	variable(g, "w");
	variable(g, "b");
	floats(g, "w/read", "Identity", "w", "");
	floats(g, "b/read", "Identity", "b", "");
	floats(g, "mm", "MatMul", "x w/read", WORKER);
	floats(g, "add", "BiasAdd", "mm b/read", WORKER);
	floats(g, "act", "Relu", "add", WORKER);
	constant(g, "pred", MU_BOOL, &yes, "", "");
	floats(g, "sw", "Switch", "act pred", WORKER);
	floats(g, "neg", "Neg", "sw", WORKER);
	n = floats(g, "m", "Merge", "neg sw:1", WORKER);
	attr_int(g, n, "N", 2);
	scalar(g, "a", 2, WORKER);
	floats(g, "aa", "Mul", "a a", WORKER);
	floats(g, "aaa", "Mul", "a a", WORKER);
	n = floats(g, "e", "Enter", "aa", WORKER);
	attr_string(g, n, "frame_name", "f");
	merge = floats(g, "lm", "Merge", "e", WORKER);
	attr_int(g, merge, "N", 2);
	floats(g, "less", "Less", "lm lm", WORKER);
	node(g, "cond", "LoopCond", "less", WORKER);
	floats(g, "lsw", "Switch", "lm cond", WORKER);
	floats(g, "next", "NextIteration", "lsw:1", WORKER);
	floats(g, "exit", "Exit", "lsw", WORKER);
	in[0] = (struct mu_input){mu_graph_find(g, "e"), 0};
	in[1] = (struct mu_input){mu_graph_find(g, "next"), 0};
	mu_node_set_inputs(g, merge, in, 2, NULL, 0);
	floats(g, "grad", "Mul", "m aaa", WORKER);
	n = node(g, "train", "ApplyGradientDescent", "w exit grad", "");
	attr_type(g, n, "T", MU_FLOAT);
	node(g, "done", "NoOp", "^train", "");
	floats(g, "after", "Identity", "w ^done", WORKER);
	return g;
}

static int slowest_ms;

static int run_timed(const uint8_t *data, size_t size)
{
	struct timespec a, b;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a); /* independent of the load of the machine */
	LLVMFuzzerTestOneInput(data, size);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
	int ms = (int)((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000);
	if (ms > slowest_ms)
		slowest_ms = ms;
	return 0;
}

static void corrupted_graphs__end_in_an_error_soon(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = trainer();
	MU_AUTO_BUF bytes = {0};

	mu_graph_write(g, &bytes);
	LLVMFuzzerTestOneInput((const uint8_t *)bytes.data, bytes.len);
	/* two partitions each: with a target, a fetch, a feed and a fetch */
	assert_int_equal(n_compiled, 6);
	mutate_run(run_timed, bytes.data, bytes.len, 20000);
	assert_true(n_compiled > 100);
	assert_true(slowest_ms < 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(corrupted_graphs__end_in_an_error_soon),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	runtime_free(shared_runtime());
	return failed;
}
