/* SPDX-License-Identifier: Apache-2.0 */
/* While loops in a graph that is about to be cut: whose turns each node takes part in, and what
 * lets another task keep step with them. */
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
	struct loop *list; /* from 1 */
	unsigned n, cap;
	unsigned *of; /* by node id: the loop in which its outputs arrive, 0 outside */
	unsigned n_of;
	struct mu_map pivots; /* {loop, task} -> what runs once a turn there */
	struct mu_arena arena;
};

/* Finds the loops, moves what only leads values into or out of a turn to those who use them, and
 * gives every task that exchanges tensors within a loop a loop of its own that turns with it.  The
 * graph is placed; nodes are added. */
int loops_spread(struct loops *l, struct mu_graph *g, struct mu_err *err);
void loops_fini(struct loops *l);
/* The loop that n's outputs arrive in; 0 outside, and for what was added, which sends nothing. */
unsigned loops_of(const struct loops *l, const struct mu_node *n);
/* The node that runs once in each turn of loop i on the task of `device`. */
struct mu_node *loops_pivot(const struct loops *l, unsigned i, const char *device);

#endif
