/* SPDX-License-Identifier: Apache-2.0 */
/* Topological order of a graph, by Kahn's algorithm. */
#include "lib/graph/graph.h"

bool mu_edge_is_back(const struct mu_node *from, const struct mu_node *to)
{
	return mu_node_has_flag(from, MU_OP_NEXT_ITERATION) && mu_node_has_flag(to, MU_OP_MERGE);
}

/* True if input k of `to` is an edge of the order: not a back edge, nor from a node before `first`.
 */
static bool is_ordered(const struct mu_node *to, unsigned k, unsigned first)
{
	const struct mu_node *from = to->inputs[k].node;

	return from->id >= first && !mu_edge_is_back(from, to);
}

unsigned mu_graph_order(const struct mu_graph *g, unsigned first, struct mu_node **order,
			struct mu_arena *scratch)
{
	unsigned n = g->n_nodes - first, n_order = 0;
	unsigned *pending =
	    MU_ARENA_ARRAY(scratch, unsigned, n + 1);             /* pending count of each node */
	unsigned *end = MU_ARENA_ARRAY(scratch, unsigned, n + 2); /* of each node's users */
	unsigned *users;

	for (unsigned i = 0; i < n; i++) {
		const struct mu_node *to = g->nodes[first + i];

		for (unsigned k = 0; k < to->n_inputs + to->n_controls; k++)
			if (is_ordered(to, k, first)) {
				pending[i]++;
				end[to->inputs[k].node->id - first + 1]++;
			}
		if (!pending[i])
			order[n_order++] = g->nodes[first + i];
	}
	for (unsigned i = 0; i < n; i++)
		end[i + 1] += end[i];
	users = MU_ARENA_ARRAY(scratch, unsigned, end[n] + 1);
	for (unsigned i = 0; i < n; i++) {
		const struct mu_node *to = g->nodes[first + i];

		for (unsigned k = 0; k < to->n_inputs + to->n_controls; k++)
			if (is_ordered(to, k, first))
				users[end[to->inputs[k].node->id - first]++] = i;
	}
	for (unsigned done = 0; done < n_order; done++) {
		unsigned from = order[done]->id - first;

		for (unsigned k = from ? end[from - 1] : 0; k < end[from]; k++)
			if (--pending[users[k]] == 0)
				order[n_order++] = g->nodes[first + users[k]];
	}
	return n_order;
}
