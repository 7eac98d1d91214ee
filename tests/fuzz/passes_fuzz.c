/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the graph passes on the input as a GraphDef: parse, prune to the last node, inline
 * functions, place on two tasks, partition, optimize, compile.  The graph is not executed. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/inline/inline.h"
#include "task/graph/graph_passes.h"
#include "task/graph/optimize.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/runtime.h"

#define PS     "/job:ps/replica:0/task:0/device:CPU:0"
#define WORKER "/job:worker/replica:0/task:0/device:CPU:0"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct runtime *shared_runtime(void)
{
	static struct runtime *rt;

	if (!rt && runtime_new("worker", 0, 1, &task_kernels, NULL, &rt, NULL))
		abort();
	return rt;
}

static unsigned n_compiled; /* compiled exec graphs */

static void compile(struct partition *partitions, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		struct mu_graph *g = partitions[i].graph;
		struct executor *e;
		struct mu_err err;
		partitions[i].graph = NULL;
		graph_optimize(g, shared_runtime());
		if (executor_new(shared_runtime(), g, "", &e, &err))
			continue;
		n_compiled++;
		executor_unref(e);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct graph_device list[] = {{PS, 1, "CPU"}, {WORKER, 2, "CPU"}};
	static const struct graph_devices devices = {list, 2, WORKER, true, false};
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	MU_AUTO(mu_graph_free) struct mu_graph *pruned = NULL;
	const char **feed_keys, **fetch_keys, *last, *first;
	struct stateful_placement stateful = {0};
	struct partition *partitions;
	unsigned n_partitions;
	struct mu_err err;

	mu_tensor_limit = 1 << 20;
	if (mu_graph_parse(g, (struct mu_span){(const char *)data, size}, &err) || !g->n_nodes)
		return 0;
	last = g->nodes[g->n_nodes - 1]->name;
	first = g->nodes[0]->name;
	mu_map_init(&stateful.by_name);
	graph_place_stateful(g, &devices, &stateful);
	for (int round = 0; round < 3;
	     round++) { /* as a target, as a fetch, as a fetch with a feed */
		struct graph_signature sig = {.targets = &last,
					      .fetches = &last,
					      .feeds = &first,
					      .n_targets = round == 0,
					      .n_fetches = round > 0,
					      .n_feeds = round == 2};
		if (!graph_prune(g, &sig, &devices, &pruned, &feed_keys, &fetch_keys, &err) &&
		    !mu_graph_inline(pruned, &err) &&
		    !graph_place(pruned, &devices, &stateful, &err) &&
		    !graph_partition(pruned, &devices, &partitions, &n_partitions, &err)) {
			compile(partitions, n_partitions);
			graph_partitions_free(partitions, n_partitions);
		}
		mu_graph_free(mu_steal(&pruned));
	}
	mu_map_fini(&stateful.by_name);
	return 0;
}
