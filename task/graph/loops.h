/* SPDX-License-Identifier: Apache-2.0 */
/* While loops seen from outside: how many loops are around the outputs of each node. */
#ifndef MU_TASK_GRAPH_LOOPS_H
#define MU_TASK_GRAPH_LOOPS_H

#include "lib/graph/graph.h"

/* By node id, from the arena; NULL when the graph has no loop. */
const int *loops_depth(const struct mu_graph *g, struct mu_arena *a);

#endif
