/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's debugger (tfdbg): publishes the watched tensors of a step.
 *
 * Each debug op of a watch becomes a node that publishes the watched output at the URLs of the
 * watch.  TensorFlow inserts a Copy before the node, which immutable tensors do not need.  The
 * consumers of the output wait for these nodes.  So no event is earlier than its causes, and a
 * variable is published before they update it. */
#ifndef MU_TASK_WORKER_DEBUG_NODES_H
#define MU_TASK_WORKER_DEBUG_NODES_H

#include "lib/graph/graph.h"

struct runtime;
/* Adds the nodes for the watches of DebugOptions and publishes the graph. */
int debug_nodes_add(struct mu_graph *g, struct mu_span debug_options, struct runtime *rt,
		    struct mu_err *err);

#endif
