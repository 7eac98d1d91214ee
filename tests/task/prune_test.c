/* SPDX-License-Identifier: Apache-2.0 */
#include "task/graph/graph_passes.h"
#include "tests/task/build.h"

#define WORKER "/job:worker/replica:0/task:0/device:CPU:0"

static const struct graph_device list[] = {{WORKER, 0x2a, "CPU"}};
static const struct graph_devices devs = {list, 1, WORKER, false, false};

static struct mu_graph *out;
static const char **feed_keys, **fetch_keys;
static struct mu_err err;

static int prune(const struct mu_graph *g, const char *feed, const char *fetch, const char *fetch2,
		 const char *target)
{
	const char *feeds[] = {feed}, *fetches[] = {fetch, fetch2}, *targets[] = {target};
	struct graph_signature sig = {.feeds = feeds,
				      .fetches = fetches,
				      .targets = targets,
				      .n_feeds = feed != NULL,
				      .n_fetches = (fetch != NULL) + (fetch2 != NULL),
				      .n_targets = target != NULL};

	out = NULL;
	return graph_prune(g, &sig, &devs, &out, &feed_keys, &fetch_keys, &err);
}

/* y = x * w; act has y as a control input; nothing uses "unrelated" */
static struct mu_graph *test_graph(void)
{
	struct mu_graph *g = mu_graph_new();
	struct mu_node *x = node(g, "x", "Placeholder", "", "");

	attr_type(g, x, "dtype", MU_FLOAT);
	scalar(g, "w", 2, "");
	floats(g, "y", "Mul", "x w", "");
	node(g, "unrelated", "NobodyKnowsThisOp", "y", "");
	node(g, "act", "NoOp", "^y", "");
	return g;
}

static void fetch__keeps_only_its_ancestors(void **state)
{
	struct mu_graph *g = test_graph();

	assert_ok(prune(g, NULL, "y:0", NULL, NULL), &err);
	assert_int_equal(out->n_nodes, 4);
	assert_non_null(mu_graph_find(out, "x"));
	assert_non_null(mu_graph_find(out, "_send_y_0"));
	assert_null(mu_graph_find(out, "unrelated"));
	assert_string_equal(fetch_keys[0], WORKER ";000000000000002a;" WORKER ";y:0;0:0");
	mu_graph_free(out);
	mu_graph_free(g);
}

static void feed__replaces_the_fed_tensor(void **state)
{
	struct mu_graph *g = test_graph();

	assert_ok(prune(g, "x:0", "y:0", NULL, "act"), &err);
	assert_null(mu_graph_find(out, "x"));
	struct mu_node *y = mu_graph_find(out, "y"), *recv = mu_graph_find(out, "_recv_x_0");
	assert_ptr_equal(y->inputs[0].node, recv);
	assert_string_equal(recv->device, WORKER);
	assert_string_equal(feed_keys[0], WORKER ";000000000000002a;" WORKER ";x:0;0:0");
	assert_ptr_equal(mu_graph_find(out, "act")->inputs[0].node, y);
	mu_graph_free(out);
	mu_graph_free(g);
}

/* As in TensorFlow: for control edges, a feed replaces only Placeholder and PlaceholderV2. */
static void placeholder_with_default__when_fed__still_runs_for_a_control_edge(void **state)
{
	struct mu_graph *g = test_graph();
	struct mu_node *d = node(g, "d", "PlaceholderWithDefault", "w", "");

	attr_type(g, d, "dtype", MU_FLOAT);
	node(g, "behind", "NoOp", "^d", "");
	node(g, "behind_x", "NoOp", "^x", "");
	assert_ok(prune(g, "d:0", NULL, NULL, "behind"), &err);
	assert_non_null(mu_graph_find(out, "d"));
	mu_graph_free(out);
	assert_ok(prune(g, "x:0", NULL, NULL, "behind_x"), &err);
	assert_null(mu_graph_find(out, "x"));
	mu_graph_free(out);
	mu_graph_free(g);
}

static void tensor__both_fed_and_fetched__is_rejected(void **state)
{
	struct mu_graph *g = test_graph();

	assert_fails(prune(g, "y:0", "y", NULL, NULL), &err, MU_INVALID_ARGUMENT,
		     "y is both fed and fetched.");
	mu_graph_free(g);
}

static void tensor__fetched_twice__has_two_keys(void **state)
{
	struct mu_graph *g = test_graph();

	assert_ok(prune(g, NULL, "w:0", "w:0", NULL), &err);
	assert_string_not_equal(fetch_keys[0], fetch_keys[1]);
	mu_graph_free(out);
	mu_graph_free(g);
}

static void unknown_name__is_not_found(void **state)
{
	struct mu_graph *g = test_graph();

	assert_fails(prune(g, NULL, "nope:0", NULL, NULL), &err, MU_NOT_FOUND,
		     "FetchOutputs node nope:0: not found");
	assert_fails(prune(g, NULL, "nope", NULL, NULL), &err, MU_NOT_FOUND,
		     "FetchOutputs node nope:0: not found");
	assert_fails(prune(g, NULL, NULL, NULL, "nope"), &err, MU_NOT_FOUND,
		     "PruneForTargets: Some target nodes not found: nope");
	assert_fails(prune(g, "nope:0", "y:0", NULL, NULL), &err, MU_NOT_FOUND, "nope:0");
	assert_fails(prune(g, NULL, "w:3", NULL, NULL), &err, MU_INVALID_ARGUMENT,
		     "FetchOutputs w:3: output index too large, must be < 1");
	assert_fails(prune(g, NULL, "unrelated:0", NULL, NULL), &err, MU_NOT_FOUND,
		     "Op type not registered 'NobodyKnowsThisOp' in binary running on");
	mu_graph_free(g);
}

static void duplicate_feed__is_rejected(void **state)
{
	struct mu_graph *g = test_graph();
	const char *feeds[] = {"x:0", "x"}, *fetches[] = {"y:0"};
	struct graph_signature sig = {
	    .feeds = feeds, .fetches = fetches, .n_feeds = 2, .n_fetches = 1};

	assert_fails(graph_prune(g, &sig, &devs, &out, &feed_keys, &fetch_keys, &err), &err,
		     MU_INVALID_ARGUMENT, "fed more than once");
	mu_graph_free(g);
}

static int prune_connected(struct mu_graph *g, const char *to, const char *from)
{
	const char *fetches[] = {"y:0"};
	struct graph_signature sig = {.fetches = fetches,
				      .n_fetches = 1,
				      .connected = &to,
				      .sources = &from,
				      .n_connected = 1};

	return graph_prune(g, &sig, &devs, &out, &feed_keys, &fetch_keys, &err);
}

static void connected_tensor__is_replaced_by_its_source(void **state)
{
	struct mu_graph *g = test_graph();

	scalar(g, "v", 3, "");
	floats(g, "source", "Add", "v w", "");
	assert_ok(prune_connected(g, "x:0", "source:0"), &err);
	assert_null(mu_graph_find(out, "x"));
	assert_ptr_equal(mu_graph_find(out, "y")->inputs[0].node, mu_graph_find(out, "source"));
	mu_graph_free(out);
	assert_fails(prune_connected(g, "x:0", "nobody:0"), &err, MU_INVALID_ARGUMENT,
		     "from unknown node: \"x:0\"");
	assert_fails(prune_connected(g, "nobody:0", "v:0"), &err, MU_NOT_FOUND,
		     "unable to find feed output nobody:0");
	assert_fails(prune_connected(g, "y:0", "v:0"), &err, MU_INVALID_ARGUMENT,
		     "both fed and fetched");
	mu_graph_free(g);
}

static void node_colocated_with_a_pruned_node__gets_its_device(void **state)
{
	struct mu_graph *g = mu_graph_new();

	scalar(g, "far", 1, "/job:ps/task:0");
	attr_class(g, scalar(g, "c", 1, ""), "loc:@far");
	assert_ok(prune(g, NULL, "c:0", NULL, NULL), &err);
	assert_string_equal(mu_graph_find(out, "c")->device, "/job:ps/task:0");
	mu_graph_free(out);
	mu_graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(fetch__keeps_only_its_ancestors),
	    cmocka_unit_test(feed__replaces_the_fed_tensor),
	    cmocka_unit_test(placeholder_with_default__when_fed__still_runs_for_a_control_edge),
	    cmocka_unit_test(tensor__both_fed_and_fetched__is_rejected),
	    cmocka_unit_test(tensor__fetched_twice__has_two_keys),
	    cmocka_unit_test(unknown_name__is_not_found),
	    cmocka_unit_test(duplicate_feed__is_rejected),
	    cmocka_unit_test(connected_tensor__is_replaced_by_its_source),
	    cmocka_unit_test(node_colocated_with_a_pruned_node__gets_its_device),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
