/* SPDX-License-Identifier: Apache-2.0 */
#include "task/graph/replicate.h"

#include <string.h>

/* SMALL_BYTES: larger constants are sent, because a copy in each task's graph costs more than it
 * saves.  MAX_CHAIN: Identity nodes between a constant and its user that are followed. */
enum { SMALL_BYTES = 1024, MAX_CHAIN = 16 };

static bool is_pass(const struct mu_node *n)
{
	return n->n_inputs == 1 && !n->n_controls && n->inputs[0].port == 0 &&
	       (strcmp(n->op, "Identity") == 0 || strcmp(n->op, "StopGradient") == 0);
}

const struct mu_node *replicate_source(struct mu_input in)
{
	const struct mu_node *n = in.node;
	const struct mu_attr *value;

	for (unsigned hops = 0; is_pass(n) && in.port <= 0 && hops < MAX_CHAIN; hops++)
		n = n->inputs[0].node;
	if (in.port > 0 || !mu_node_is_constant(n))
		return NULL;
	value = mu_node_attr(n, "value");
	if (!value || value->kind != MU_ATTR_TENSOR || value->tensor->dtype == MU_RESOURCE ||
	    mu_tensor_bytes(value->tensor) > SMALL_BYTES)
		return NULL;
	return n;
}

bool *replicate_unused(const struct mu_graph *g, const unsigned *partition_of, struct mu_arena *a)
{
	bool *unused = MU_ARENA_ARRAY(a, bool, g->n_nodes);
	unsigned *here =
	    MU_ARENA_ARRAY(a, unsigned, g->n_nodes); /* out-edges within the partition */
	const struct mu_node **todo =
	    MU_ARENA_ARRAY(a, const struct mu_node *, 2 * (size_t)g->n_nodes);
	unsigned n_todo = 0;

	for (unsigned i = 0; i < g->n_nodes; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs + g->nodes[i]->n_controls; k++) {
			struct mu_input in = g->nodes[i]->inputs[k];
			bool copied =
			    partition_of[in.node->id] != partition_of[i] && replicate_source(in);
			here[in.node->id] += !copied;
			if (copied && !unused[in.node->id]) {
				unused[in.node->id] = true; /* a candidate */
				todo[n_todo++] = in.node;
			}
		}
	while (n_todo) {
		const struct mu_node *n = todo[--n_todo];
		unused[n->id] = here[n->id] == 0;
		if (!unused[n->id] || !n->n_inputs)
			continue;
		const struct mu_node *from = n->inputs[0].node;
		if (partition_of[from->id] == partition_of[n->id] && --here[from->id] == 0)
			todo[n_todo++] = from;
	}
	return unused;
}
