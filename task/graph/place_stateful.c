/* SPDX-License-Identifier: Apache-2.0 */
/* Assigns devices to stateful nodes (variables, queues, tables) over the whole session graph, so
 * that every later step places them the same way.
 *
 * Function calls are inlined first, because the nodes that constrain a variable may be in a loop
 * body.  Inlining needs a copy of the graph.  The copy is made only if stateful nodes or calls were
 * added since the last time. */
#include "lib/inline/inline.h"
#include "task/graph/graph_passes.h"

/* Returns a copy of g with all function calls inlined; NULL if that fails. */
static struct mu_graph *copy_and_inline(const struct mu_graph *g)
{
	MU_AUTO(mu_graph_free) struct mu_graph *to = mu_graph_new();
	struct mu_input *in = NULL;
	unsigned cap = 0;
	struct mu_err ignored;

	to->producer = g->producer;
	to->library = mu_library_ref(g->library);
	for (unsigned i = 0; i < g->n_nodes; i++)
		mu_graph_copy_node(to, g->nodes[i])->must_run = graph_is_stateful(g->nodes[i]);
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		unsigned total = n->n_inputs + n->n_controls;

		if (total > cap)
			in = mu_xrealloc(in, (cap = total) * sizeof *in);
		for (unsigned k = 0; k < total; k++)
			in[k] =
			    (struct mu_input){to->nodes[n->inputs[k].node->id], n->inputs[k].port};
		mu_node_set_inputs(to, to->nodes[i], in, n->n_inputs, in + n->n_inputs,
				   n->n_controls);
	}
	free(in);
	return mu_graph_inline(to, &ignored) ? NULL : mu_steal(&to);
}

void graph_place_stateful(struct mu_graph *g, const struct graph_devices *devs,
			  struct stateful_placement *stateful)
{
	bool has_new = false;

	for (; stateful->n_scanned < g->n_nodes; stateful->n_scanned++) {
		const struct mu_node *n = g->nodes[stateful->n_scanned];
		bool is_call = mu_graph_is_call(g, n);

		stateful->has_calls |= is_call;
		has_new |= is_call || graph_is_stateful(n);
	}
	if (!has_new || devs->count < 2)
		return;
	MU_AUTO(mu_graph_free)
	struct mu_graph *inlined = stateful->has_calls ? copy_and_inline(g) : NULL;
	graph_record_stateful(inlined ? inlined : g, devs, stateful);
}
