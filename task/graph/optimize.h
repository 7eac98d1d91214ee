/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizes a task's partition before it is compiled.  The results of a step do not change by a
 * bit.
 *
 * Passes: removal of identity nodes (Identity, StopGradient, NoOp); constant folding; common
 * subexpression elimination; removal of unused values.  The passes do not change nodes that have
 * state, may wait, take references or run on dead inputs. */
#ifndef MU_TASK_GRAPH_OPTIMIZE_H
#define MU_TASK_GRAPH_OPTIMIZE_H

#include "lib/base/map.h"
#include "lib/graph/graph.h"

struct runtime;
void graph_optimize(struct mu_graph *g, struct runtime *rt);

/* ---- internals of the passes ---- */

struct opt {
	struct mu_graph *g;
	struct runtime *rt;
	struct mu_arena scratch;
	unsigned n; /* nodes before the passes; added nodes have larger ids */
	struct mu_node **order;
	unsigned n_order;
	struct mu_input **replacement; /* by id: the edges that replace the outputs; or NULL */
	bool *removed;
	unsigned *data_users, *control_users; /* by id, before the passes */
	size_t budget;                        /* bytes left for folded constants */
	struct mu_map computations;           /* merge.c: identity to node */
	struct mu_buf key;
};

enum op_trait {
	TRAIT_PURE = 1 << 0, /* may run earlier, or once instead of twice */
	TRAIT_REF_OUTPUT = 1 << 1,
	TRAIT_IDENTITY = 1 << 2, /* Identity and equivalent ops */
	TRAIT_NO_OP = 1 << 3,
	TRAIT_DEAD_OUTPUTS = 1 << 4, /* one output may be dead and another alive */
	TRAIT_CONTROL_FLOW = 1 << 5,
};
unsigned optimize_traits(const struct mu_node *n);
/* True if the node has no state, takes no references and never waits. */
bool optimize_is_pure(const struct mu_node *n);

bool fold_node(struct opt *o, struct mu_node *n);  /* true: n is replaced by constants */
bool merge_node(struct opt *o, struct mu_node *n); /* true: n is replaced by an equal node */
void drop_unused_values(struct opt *o);

#endif
