/* SPDX-License-Identifier: Apache-2.0 */
/* Replicates small constants, such as a learning rate, on each task instead of sending them in
 * every step. */
#ifndef MU_TASK_GRAPH_REPLICATE_H
#define MU_TASK_GRAPH_REPLICATE_H

#include "lib/graph/graph.h"

/* Returns the constant behind `in` if it may be replicated, else NULL. */
const struct mu_node *replicate_source(struct mu_input in);
/* Returns an array by node id, from the arena: true if all users of the node are in other
 * partitions and have copies of their own. */
bool *replicate_unused(const struct mu_graph *g, const unsigned *partition_of, struct mu_arena *a);

#endif
