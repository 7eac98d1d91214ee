/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a task's part of a graph smaller before it is compiled; what a step computes stays the
 * same, bit for bit but for the one addition that a fused product saves.
 *
 * Done are: nodes that only hand on (Identity, StopGradient, NoOp), nodes of constants alone (run
 * once, here), nodes that compute what another does, MatMul + bias + activation as one node.  What
 * has state, waits, takes references, or may be dead on one side only is left as it is. */
#ifndef MU_TASK_GRAPH_OPTIMIZE_H
#define MU_TASK_GRAPH_OPTIMIZE_H

#include "lib/graph/graph.h"

struct runtime;
void graph_optimize(struct mu_graph *g, struct runtime *rt);

/* ---- between the passes ---- */

struct opt {
	struct mu_graph *g;
	struct runtime *rt;
	struct mu_arena scratch;
	unsigned n; /* nodes at the start; those of the passes come after */
	struct mu_node **order;
	unsigned n_order;
	struct mu_input **instead; /* by id: what stands for each output; NULL: the node itself */
	bool *gone;
	unsigned *data_users, *control_users; /* by id, as the graph came */
	size_t budget;                        /* bytes that folding may still make */
	struct mu_map same;                   /* merge.c */
};

bool optimize_is_constant(const struct mu_node *n); /* a Const that waits for nothing */
/* No state, no references, nothing to wait for: may run at another time, or once for two. */
bool optimize_is_pure(const struct mu_node *n);

bool fold_node(struct opt *o, struct mu_node *n);  /* true: n is gone, or a Const now */
bool merge_node(struct opt *o, struct mu_node *n); /* true: n is gone, an equal one stands for it */
void fuse_products(struct opt *o);

#endif
