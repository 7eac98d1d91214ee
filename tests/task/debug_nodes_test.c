/* SPDX-License-Identifier: Apache-2.0 */
#include "task/worker/debug_nodes.h"

#include <stdio.h>
#include <unistd.h>

#include "proto/common.pb-c.h"
#include "task/messages/control.h"
#include "tests/task/build.h"
#include "tests/task/one_runtime.h"

#define CPU "/job:w/replica:0/task:0/device:CPU:0"

static struct mu_err err;
static char folder[] = "/tmp/debug-nodes-XXXXXX", url[64];

static int start(void **state)
{
	if (!mkdtemp(folder))
		return -1;
	snprintf(url, sizeof url, "file://%s", folder);
	return start_runtime(state);
}

static int stop(void **state)
{
	char command[64];

	snprintf(command, sizeof command, "rm -r %s", folder);
	return system(command) || stop_runtime(state);
}

/* Watches one output with one debug op. */
static int watch(struct mu_graph *g, const char *name, int slot, const char *op, const char *at,
		 bool tolerates)
{
	Muster__DebugTensorWatch w = MUSTER__DEBUG_TENSOR_WATCH__INIT, *list[] = {&w};
	Muster__DebugOptions o = MUSTER__DEBUG_OPTIONS__INIT;
	MU_AUTO_BUF bytes = {0};

	w.node_name = (char *)name;
	w.output_slot = slot;
	w.debug_ops = (char *[]){(char *)op};
	w.debug_urls = (char *[]){(char *)at};
	w.n_debug_ops = w.n_debug_urls = 1;
	w.tolerate_debug_op_creation_failures = tolerates;
	o.debug_tensor_watch_opts = list;
	o.n_debug_tensor_watch_opts = 1;
	control_pack(&bytes, &o);
	return debug_nodes_add(g, mu_buf_span(&bytes), rt, &err);
}

/* a -> n, on the CPU */
static struct mu_graph *two_nodes(void)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "a", 1, CPU);
	floats(g, "n", "Neg", "a", CPU);
	return g;
}

static bool waits_for(struct mu_graph *g, const char *name, const char *before)
{
	const struct mu_node *n = mu_graph_find(g, name), *b = mu_graph_find(g, before);

	for (unsigned i = 0; b && i < n->n_controls; i++)
		if (n->inputs[n->n_inputs + i].node == b)
			return true;
	return false;
}

static void watched_output__is_published_before_its_consumers_run(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	assert_ok(watch(g, "a", 0, "DebugIdentity", url, false), &err);
	assert_true(waits_for(g, "n", "__dbg_a:0_0_DebugIdentity"));
	assert_int_equal(g->n_nodes, 3);
}

static void merge__does_not_wait(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();
	struct mu_node *m = floats(g, "m", "Merge", "a n", CPU);

	attr_int(g, m, "N", 2);
	assert_ok(watch(g, "*", -1, "DebugIdentity", url, false), &err);
	assert_int_equal(m->n_controls, 0);
	assert_true(waits_for(g, "n", "__dbg_a:0_0_DebugIdentity"));
	assert_non_null(mu_graph_find(g, "__dbg_m:1_0_DebugIdentity"));
}

static void output_that_is_not_there__is_ignored(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	assert_ok(watch(g, "a", 7, "DebugIdentity", url, false), &err);
	assert_ok(watch(g, "none", 0, "DebugIdentity", url, false), &err);
	assert_int_equal(g->n_nodes, 2);
}

static void op_without_kernel__fails_or_is_left_out(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	assert_fails(watch(g, "a", 0, "NoSuch", url, false), &err, MU_FAILED_PRECONDITION,
		     "Failed to create debug node NoSuch for tensor a:0, due to: Failed to create "
		     "node definition for debug op NoSuch on watched tensor a:0");
	assert_ok(watch(g, "a", 0, "NoSuch", url, true), &err);
	assert_int_equal(g->n_nodes, 2);
}

static void attributes__are_set(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();
	const struct mu_node *n;
	bool muted = false;
	float upper = 0;

	assert_ok(
	    watch(g, "a", 0, "DebugNumericSummary(mute_if_healthy=True;upper_bound=4)", url, false),
	    &err);
	n = mu_graph_find(g, "__dbg_a:0_0_DebugNumericSummary");
	assert_ok(mu_node_attr_bool(n, "mute_if_healthy", &muted, &err), &err);
	assert_ok(mu_node_attr_float(n, "upper_bound", &upper, &err), &err);
	assert_true(muted && upper == 4);
}

static void debug_op__with_invalid_attributes__is_rejected(void **state)
{
	static const char *const ops[] = {"DebugIdentity(",
					  "DebugIdentity(x",
					  "DebugIdentity(x)",
					  "DebugIdentity(x=1)",
					  "DebugIdentity(T=1)",
					  "DebugIdentity(gated_grpc=maybe)",
					  "DebugNumericSummary(upper_bound=)"};

	for (size_t i = 0; i < MU_COUNT(ops); i++) {
		MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

		assert_fails(watch(g, "a", 0, ops[i], url, false), &err, MU_FAILED_PRECONDITION,
			     "debug");
	}
}

static void debug_url__that_names_no_folder__is_invalid(void **state)
{
	static const char *const urls[] = {"", "file://", "/tmp", "http://x/y"};

	for (size_t i = 0; i < MU_COUNT(urls); i++) {
		MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

		assert_fails(watch(g, "a", 0, "DebugIdentity", urls[i], false), &err,
			     MU_INVALID_ARGUMENT, "does not begin with file:// and a folder");
	}
}

static void debug_options__that_are_malformed__are_invalid(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	assert_int_equal(debug_nodes_add(g, MU_SPAN("\x22\xff"), rt, &err), -MU_INVALID_ARGUMENT);
	assert_int_equal(g->n_nodes, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(watched_output__is_published_before_its_consumers_run),
	    cmocka_unit_test(merge__does_not_wait),
	    cmocka_unit_test(output_that_is_not_there__is_ignored),
	    cmocka_unit_test(op_without_kernel__fails_or_is_left_out),
	    cmocka_unit_test(attributes__are_set),
	    cmocka_unit_test(debug_op__with_invalid_attributes__is_rejected),
	    cmocka_unit_test(debug_url__that_names_no_folder__is_invalid),
	    cmocka_unit_test(debug_options__that_are_malformed__are_invalid),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
