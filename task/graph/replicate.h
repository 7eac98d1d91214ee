/* SPDX-License-Identifier: Apache-2.0 */
/* Small constants are not sent to other tasks but made there: a learning rate need not travel each
 * step. */
#ifndef MU_TASK_GRAPH_REPLICATE_H
#define MU_TASK_GRAPH_REPLICATE_H

#include "lib/graph/graph.h"

/* The constant that an edge from `in` hands on, when a task may have a copy of it; else NULL. */
const struct mu_node *replicate_source(struct mu_input in);
/* By node id, from the arena: true for what nobody needs where it stands, all its users being on
 * other parts with copies of their own. */
bool *replicate_unused(const struct mu_graph *g, const unsigned *part_of, struct mu_arena *a);

#endif
