/* SPDX-License-Identifier: Apache-2.0 */
/* Finds homes for what a session keeps, before its steps are placed.
 *
 * It takes the whole graph, with the functions that it calls put in place: who uses a variable may
 * say so only within a loop's body.  That is a copy of the graph, made when the graph has grown by
 * something that keeps state or by a call; a session that only grows by arithmetic pays a look at
 * each new node. */
#include "lib/graph/library.h"
#include "task/graph/graph_passes.h"

/* NULL where a function cannot be put in place. */
static struct mu_graph *with_functions(const struct mu_graph *g)
{
	MU_AUTO(mu_graph_free) struct mu_graph *to = mu_graph_new();
	struct mu_input *in = NULL;
	unsigned room = 0;
	struct mu_err ignored;

	to->producer = g->producer;
	to->library = mu_library_ref(g->library);
	for (unsigned i = 0; i < g->n_nodes; i++)
		mu_graph_copy_node(to, g->nodes[i]);
	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		unsigned total = n->n_inputs + n->n_controls;

		if (total > room)
			in = mu_xrealloc(in, (room = total) * sizeof *in);
		for (unsigned k = 0; k < total; k++)
			in[k] =
			    (struct mu_input){to->nodes[n->inputs[k].node->id], n->inputs[k].port};
		mu_node_set_inputs(to, to->nodes[i], in, n->n_inputs, in + n->n_inputs,
				   n->n_controls);
	}
	free(in);
	return mu_graph_inline(to, &ignored) ? NULL : mu_steal(&to);
}

void graph_settle(struct mu_graph *g, const struct graph_devices *devs, struct graph_homes *homes)
{
	bool keeps = false;

	for (; homes->seen < g->n_nodes; homes->seen++) {
		const struct mu_node *n = g->nodes[homes->seen];
		bool is_call = mu_graph_is_call(g, n);

		homes->calls |= is_call;
		keeps |= is_call || graph_keeps(n);
	}
	if (!keeps || devs->count < 2)
		return;
	MU_AUTO(mu_graph_free) struct mu_graph *whole = homes->calls ? with_functions(g) : NULL;
	graph_place_homes(whole ? whole : g, devs, homes);
}
