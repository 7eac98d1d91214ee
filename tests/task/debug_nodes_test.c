/* SPDX-License-Identifier: Apache-2.0 */
#include "task/worker/debug_nodes.h"

#include <stdio.h>
#include <unistd.h>

#include "proto/common.pb-c.h"
#include "task/messages/control.h"
#include "tests/task/run_step.h"

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

static void merge__watched__does_not_wait_for_debug_nodes(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();
	struct mu_node *m = floats(g, "m", "Merge", "a n", CPU);

	attr_int(g, m, "N", 2);
	assert_ok(watch(g, "*", -1, "DebugIdentity", url, false), &err);
	assert_int_equal(m->n_controls, 0);
	assert_true(waits_for(g, "n", "__dbg_a:0_0_DebugIdentity"));
	assert_non_null(mu_graph_find(g, "__dbg_m:1_0_DebugIdentity"));
}

static void watched_output__that_does_not_exist__is_ignored(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	assert_ok(watch(g, "a", 7, "DebugIdentity", url, false), &err);
	assert_ok(watch(g, "none", 0, "DebugIdentity", url, false), &err);
	assert_int_equal(g->n_nodes, 2);
}

static void debug_op__without_a_kernel__fails_or_is_omitted(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	assert_fails(watch(g, "a", 0, "NoSuch", url, false), &err, MU_FAILED_PRECONDITION,
		     "Failed to create debug node NoSuch for tensor a:0, due to: Failed to create "
		     "node definition for debug op NoSuch on watched tensor a:0");
	assert_ok(watch(g, "a", 0, "NoSuch", url, true), &err);
	assert_int_equal(g->n_nodes, 2);
}

static void debug_op__with_attributes__has_them_set(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();
	const struct mu_node *n;
	bool muted = false;
	float upper = 0;

	assert_ok(watch(g, "a", 0, "DebugNumericSummary(mute_if_healthy=True; upper_bound=4)", url,
			false),
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

static void debug_url__that_names_no_folder__fails(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	assert_fails(watch(g, "a", 0, "DebugIdentity", "file://", false), &err,
		     MU_FAILED_PRECONDITION, "names no folder");
}

/* Runs a step of the graph.  Returns its error. */
static struct mu_err run_watched(struct mu_graph *g)
{
	struct executor *e = compile(g);
	struct wait w = WAIT;

	run(e, &w, NULL);
	executor_unref(e);
	return w.err;
}

static void debug_url__of_another_scheme__fails_with_the_first_tensor(void **state)
{
	static const char *const urls[] = {"", "/tmp", "http://x/y"};

	for (size_t i = 0; i < MU_COUNT(urls); i++) {
		struct mu_graph *g = two_nodes();
		struct mu_err why;

		assert_ok(watch(g, "a", 0, "DebugIdentity", urls[i], false), &err);
		why = run_watched(g);
		assert_int_equal(why.code, MU_INTERNAL);
		assert_non_null(strstr(why.msg, "Invalid debug target URL: "));
	}
}

/* ---- streams ---- */

static struct sent {
	unsigned graph_chunks, tensor_chunks, last_chunks;
	bool fails, enabled;
} sent;

static int record_event(void *ctx, const char *at, const struct debug_event *e, struct mu_err *why)
{
	assert_in_range(e->bytes.len, 1, DEBUG_CHUNK_BYTES + 1000);
	if (e->watch_key)
		sent.tensor_chunks++;
	else
		sent.graph_chunks++;
	sent.last_chunks += e->is_last;
	return sent.fails ? mu_fail(why, MU_CANCELLED, "a reason") : 0;
}

static bool is_enabled(void *ctx, const char *at, const char *watch_key)
{
	return sent.enabled && strncmp(watch_key, "big:0:Debug", 11) == 0;
}

/* Watches a tensor of 9,000,000 bytes with a debug op that publishes to a stream. */
static struct mu_err run_large_tensor(const char *op, struct sent before)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_tensor big;
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = &big};
	struct mu_node *n = node(g, "big", "Const", "", CPU);
	struct mu_shape shape = mu_shape_vec(2250000);
	struct mu_err why;

	sent = before;
	rt->debug_streams = (struct debug_streams){.send = record_event, .is_enabled = is_enabled};
	assert_ok(mu_tensor_new(&big, MU_FLOAT, &shape, &err), &err);
	memset(big.data, 0, mu_tensor_bytes(&big));
	mu_node_set_attr(g, n, "value", &value);
	attr_type(g, n, "dtype", MU_FLOAT);
	mu_tensor_unref(&big);
	assert_ok(watch(g, "big", 0, op, "grpc://x:1", false), &err);
	why = run_watched(g);
	rt->debug_streams = (struct debug_streams){0};
	return why;
}

static void large_tensor_and_graph__are_sent_in_chunks(void **state)
{
	assert_int_equal(run_large_tensor("DebugIdentity", (struct sent){0}).code, MU_OK);
	assert_int_equal(sent.graph_chunks, 3);
	assert_int_equal(sent.tensor_chunks, 3);
	assert_int_equal(sent.last_chunks, 2);
}

static void gated_op__without_an_enabled_watch_key__sends_nothing(void **state)
{
	static const char *const ops[] = {"DebugIdentity(gated_grpc=true)",
					  "DebugNanCount(gated_grpc=true)",
					  "DebugNumericSummary(gated_grpc=true)"};

	for (size_t i = 0; i < MU_COUNT(ops); i++) {
		assert_int_equal(run_large_tensor(ops[i], (struct sent){0}).code, MU_OK);
		assert_int_equal(sent.tensor_chunks, 0);
		assert_int_equal(run_large_tensor(ops[i], (struct sent){.enabled = true}).code,
				 MU_OK);
		assert_int_not_equal(sent.tensor_chunks, 0);
	}
}

static void stream__that_fails__fails_the_registration(void **state)
{
	MU_AUTO(mu_graph_free) struct mu_graph *g = two_nodes();

	sent = (struct sent){.fails = true};
	rt->debug_streams.send = record_event;
	assert_fails(watch(g, "a", 0, "DebugIdentity", "grpc://x:1", false), &err,
		     MU_FAILED_PRECONDITION, "Failed to send chunk 0 of 1 of encoded GraphDef");
	sent.fails = false;
	assert_ok(watch(g, "a", 0, "DebugNanCount", "grpc://x:1", false), &err);
	rt->debug_streams = (struct debug_streams){0};
}

static void stream__that_fails_in_a_step__fails_the_step(void **state)
{
	struct mu_graph *g = two_nodes();
	struct mu_err why;

	sent = (struct sent){0};
	rt->debug_streams.send = record_event;
	assert_ok(watch(g, "a", 0, "DebugIdentity", "grpc://x:1", false), &err);
	sent.fails = true;
	why = run_watched(g);
	rt->debug_streams = (struct debug_streams){0};
	assert_int_equal(why.code, MU_INTERNAL);
	assert_non_null(strstr(why.msg, "Publishing to 1 of 1 debug target URLs failed, due to the "
					"following errors: a reason;"));
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
	    cmocka_unit_test(merge__watched__does_not_wait_for_debug_nodes),
	    cmocka_unit_test(watched_output__that_does_not_exist__is_ignored),
	    cmocka_unit_test(debug_op__without_a_kernel__fails_or_is_omitted),
	    cmocka_unit_test(debug_op__with_attributes__has_them_set),
	    cmocka_unit_test(debug_op__with_invalid_attributes__is_rejected),
	    cmocka_unit_test(debug_url__that_names_no_folder__fails),
	    cmocka_unit_test(debug_url__of_another_scheme__fails_with_the_first_tensor),
	    cmocka_unit_test(large_tensor_and_graph__are_sent_in_chunks),
	    cmocka_unit_test(gated_op__without_an_enabled_watch_key__sends_nothing),
	    cmocka_unit_test(stream__that_fails__fails_the_registration),
	    cmocka_unit_test(stream__that_fails_in_a_step__fails_the_step),
	    cmocka_unit_test(debug_options__that_are_malformed__are_invalid),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
