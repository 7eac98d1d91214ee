/* SPDX-License-Identifier: Apache-2.0 */
/* A pipeline of most datasets that have state between elements, without functions; for tests of
 * saved iterators. */
#ifndef MU_TESTS_TASK_PIPELINE_H
#define MU_TESTS_TASK_PIPELINE_H

#include <stdlib.h>

#include "task/kernels/data/serializer.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"

enum { PIPELINE_COMPONENTS = 2 };

/* Returns a dataset in a tensor; releases the inputs. */
static struct mu_tensor pipeline_node(const char *op, unsigned n_out, struct mu_tensor *in,
				      unsigned n_in)
{
	static const enum mu_dtype types[PIPELINE_COMPONENTS] = {MU_INT64, MU_INT64};
	struct mu_attr a = {
	    .kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = n_out, .types = (enum mu_dtype *)types};
	MU_AUTO(mu_graph_free) struct mu_graph *g = mu_graph_new();
	struct value inputs[8] = {0}, out = {0};
	struct mu_node *node;

	if (mu_graph_add(g, "n", op, &node, NULL))
		abort();
	mu_node_set_attr(g, node, "output_types", &a);
	for (unsigned i = 0; i < n_in; i++)
		inputs[i].tensor = in[i];
	struct runtime rt = {.kernels = &task_kernels};
	struct kernel_call c = {
	    .node = node, .n_in = n_in, .n_out = 1, .in = inputs, .out = &out, .runtime = &rt};
	if (cpu_kernel_find(op)->run(&c, NULL))
		abort();
	element_drop(in, n_in);
	return out.tensor;
}

static struct mu_tensor pipeline_number(int64_t v)
{
	struct mu_tensor t;

	if (mu_tensor_scalar(&t, MU_INT64, &v, NULL))
		abort();
	return t;
}

#define PIPELINE_NODE(op, n_out, ...)                                                              \
	pipeline_node(op, n_out, (struct mu_tensor[]){__VA_ARGS__},                                \
		      sizeof((struct mu_tensor[]){__VA_ARGS__}) / sizeof(struct mu_tensor))

static struct mu_tensor pipeline_new(void)
{
#define N pipeline_number
	struct mu_tensor empty;
	if (mu_tensor_string(&empty, "", 0, NULL))
		abort();
	struct mu_tensor shuffled =
	    PIPELINE_NODE("ShuffleDataset", 1, PIPELINE_NODE("RangeDataset", 1, N(0), N(9), N(1)),
			  N(4), N(7), N(8));
	struct mu_tensor batches = PIPELINE_NODE(
	    "BatchDataset", 1, PIPELINE_NODE("RepeatDataset", 1, shuffled, N(-1)), N(3));
	struct mu_tensor kept =
	    PIPELINE_NODE("CacheDataset", 1, PIPELINE_NODE("UnbatchDataset", 1, batches), empty);
	struct mu_tensor chosen =
	    PIPELINE_NODE("UniqueDataset", 1,
			  PIPELINE_NODE("ConcatenateDataset", 1,
					PIPELINE_NODE("RangeDataset", 1, N(5), N(8), N(1)),
					PIPELINE_NODE("RangeDataset", 1, N(0), N(99), N(2))));
	struct mu_tensor both =
	    PIPELINE_NODE("ZipDataset", 2, kept, PIPELINE_NODE("SkipDataset", 1, chosen, N(2)));
	return PIPELINE_NODE("TakeDataset", 2, both, N(30));
#undef N
}

#endif
