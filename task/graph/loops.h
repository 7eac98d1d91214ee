/* SPDX-License-Identifier: Apache-2.0 */
/* While loops of a graph that is about to be partitioned: the loop of each node, and the control
 * loops that make other tasks iterate too. */
#ifndef MU_TASK_GRAPH_LOOPS_H
#define MU_TASK_GRAPH_LOOPS_H

#include "lib/graph/graph.h"

struct loop {
	const char *name; /* frame_name of its Enters */
	unsigned parent;  /* 0: none */
	unsigned depth;
	struct mu_node *cond; /* its LoopCond */
	int64_t parallel;     /* parallel_iterations of its Enters */
};
struct loops {
	struct loop *list; /* indexed from 1 */
	unsigned n, cap;
	unsigned *output_loop; /* by node id: the loop of its outputs; 0: none */
	unsigned n_nodes;
	struct mu_map
	    pivots; /* {loop, task} -> the node that runs once per iteration on that task */
	struct mu_arena arena;
};

/* Finds the loops, moves Enter, Exit and NextIteration to the devices of their neighbours, and adds
 * a control loop on every task that exchanges tensors within a loop.  The graph must be placed. */
int loops_distribute(struct loops *l, struct mu_graph *g, struct mu_err *err);
void loops_fini(struct loops *l);
/* Returns the loop of n's outputs; 0 outside of loops, and for the nodes of control loops. */
unsigned loop_of_outputs(const struct loops *l, const struct mu_node *n);
/* Returns the node that runs once per iteration of loop i on the task of `device`. */
struct mu_node *loops_pivot(const struct loops *l, unsigned i, const char *device);

#endif
