/* SPDX-License-Identifier: Apache-2.0 */
#include "task/graph/loops.h"

#include <string.h>

static int step_of(const struct mu_node *n)
{
	if (strcmp(n->op, "Enter") == 0 || strcmp(n->op, "RefEnter") == 0)
		return 1;
	return strcmp(n->op, "Exit") == 0 || strcmp(n->op, "RefExit") == 0 ? -1 : 0;
}

/* Relaxes along the inputs until nothing changes: a node is as deep as its deepest input, and every
 * cycle goes through nodes of one depth, so depths stop growing. */
const int *loops_depth(const struct mu_graph *g, struct mu_arena *a)
{
	int *depth, enters = 0;
	bool changed = true;

	for (unsigned i = 0; i < g->n_nodes; i++)
		enters += step_of(g->nodes[i]) > 0;
	if (!enters)
		return NULL;
	depth = MU_ARENA_ARRAY(a, int, g->n_nodes);
	for (unsigned round = 0; changed && round < 1000; round++) {
		changed = false;
		for (unsigned i = 0; i < g->n_nodes; i++) {
			const struct mu_node *n = g->nodes[i];
			int in = 0;
			for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
				if (depth[n->inputs[k].node->id] > in)
					in = depth[n->inputs[k].node->id];
			in += step_of(n);
			if (in < 0)
				in = 0;
			if (in > depth[i] && in <= enters) {
				depth[i] = in;
				changed = true;
			}
		}
	}
	return depth;
}
