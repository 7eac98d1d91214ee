/* SPDX-License-Identifier: Apache-2.0 */
/* Makes a task's part of a graph smaller before it is compiled; what a step computes stays the
 * same, bit for bit but for the one addition that a fused product saves.
 *
 * Done are: nodes that only hand on (Identity, StopGradient, NoOp), nodes of constants alone (run
 * once, here), nodes that compute what another does or what nobody takes, MatMul + bias +
 * activation as one node.  What has state, waits, takes references, or may be dead on one side only
 * is left as it is. */
#ifndef MU_TASK_GRAPH_OPTIMIZE_H
#define MU_TASK_GRAPH_OPTIMIZE_H

#include "lib/graph/graph.h"

struct runtime;
void graph_optimize(struct mu_graph *g, struct runtime *rt);
/* What a session's ConfigProto says: false with optimizer_options.opt_level L0, or
 * rewrite_options.disable_meta_optimizer. */
bool graph_optimize_wanted(struct mu_span config);

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
	struct {                              /* what is known of the ops seen last */
		const struct mu_op_def *def;
		unsigned facts;
	} seen[64];
	struct same *same; /* merge.c */
	unsigned cap_same;
	uint64_t seed;
	struct mu_buf key[2];
};

enum fact {
	FACT_PURE = 1 << 0, /* may run at another time, or once for two, if its inputs allow it */
	FACT_GIVES_REF = 1 << 1,
	FACT_PASSES = 1 << 2, /* Identity and its like */
	FACT_NO_OP = 1 << 3,
	FACT_DIES_ALONE = 1 << 4, /* a dead output is no dead node */
	FACT_NEXT = 1 << 5,       /* closes a loop */
	FACT_CONST = 1 << 6,
	FACT_STEERS = 1 << 7, /* control flow */
};
unsigned optimize_facts(struct opt *o, const struct mu_node *n);
/* No state, no references, nothing to wait for. */
bool optimize_is_pure(struct opt *o, const struct mu_node *n);
bool optimize_is_constant(const struct mu_node *n); /* a Const that waits for nothing */

bool fold_node(struct opt *o, struct mu_node *n);  /* true: n is gone, or a Const now */
bool merge_node(struct opt *o, struct mu_node *n); /* true: n is gone, an equal one stands for it */
void merge_end(struct opt *o);
void drop_idle_work(struct opt *o);
void fuse_products(struct opt *o);

#endif
