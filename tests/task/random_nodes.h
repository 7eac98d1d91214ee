/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of one op with random attributes, shapes, types and values.  The op table allows most of
 * them.  Deterministic for a seed. */
#ifndef MU_TESTS_TASK_RANDOM_NODES_H
#define MU_TESTS_TASK_RANDOM_NODES_H

#include "lib/graph/graph.h"

struct dice {
	uint64_t state;
};
unsigned dice(struct dice *d, unsigned sides); /* 0 … sides - 1 */

/* Returns a graph with a node "odd_op" of this op, and its inputs "odd_…". */
struct mu_graph *random_node_graph(const struct mu_op_def *op, struct dice *d);

#endif
