/* SPDX-License-Identifier: Apache-2.0 */
/* The edges of a compiled graph, in one array: for each node ordered by output port, control edges
 * last. */
#include <string.h>

#include "task/runtime/exec_graph.h"

bool exec_input_is_bound(const struct executor *e, uint32_t i, uint32_t k)
{
	const struct mu_node *n = e->nodes[i].node;

	if (!e->nodes[n->inputs[k].node->id].is_bound)
		return false;
	return k >= n->n_inputs ||
	       (e->nodes[i].kind == NODE_PLAIN && !(e->extra[i].kernel->flags & KERNEL_MOVES));
}

static uint32_t first_edge(const struct executor *e, const uint32_t *fill, const struct mu_node *n)
{
	return e->nodes[n->id].edges + fill[n->id];
}

/* A counting sort: a node has few ports, and the sort must be stable. */
static void sort_ports(struct exec_edge *edges, uint32_t n, uint32_t ports, struct exec_edge *tmp,
		       uint32_t *count)
{
	memset(count, 0, ((size_t)ports + 1) * sizeof *count);
	for (uint32_t i = 0; i < n; i++)
		count[edges[i].port == MU_CONTROL ? ports : (uint32_t)edges[i].port]++;
	for (uint32_t p = 0, at = 0; p <= ports; p++) {
		uint32_t n_port = count[p];
		count[p] = at;
		at += n_port;
	}
	for (uint32_t i = 0; i < n; i++)
		tmp[count[edges[i].port == MU_CONTROL ? ports : (uint32_t)edges[i].port]++] =
		    edges[i];
	memcpy(edges, tmp, n * sizeof *edges);
}

int exec_graph_make_edges(struct executor *e, struct mu_err *err)
{
	size_t total = 0;
	uint32_t *fill = MU_NEW_ARRAY(uint32_t, (size_t)e->n_nodes + 1), max_edges = 0;

	for (unsigned i = 0; i < e->n_nodes; i++) {
		const struct mu_node *n = e->nodes[i].node;
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
			if (exec_input_is_bound(e, i, k))
				continue;
			e->nodes[n->inputs[k].node->id].n_edges++;
			total++;
		}
	}
	if (total > UINT32_MAX) {
		free(fill);
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "the graph has too many edges");
	}
	e->edges = MU_ARENA_ARRAY(&e->arena, struct exec_edge, total);
	for (uint32_t i = 0, at = 0; i < e->n_nodes; i++) {
		e->nodes[i].edges = at;
		at += e->nodes[i].n_edges;
		if (e->nodes[i].n_edges > max_edges)
			max_edges = e->nodes[i].n_edges;
	}
	for (unsigned i = 0; i < e->n_nodes; i++) {
		const struct mu_node *n = e->nodes[i].node;
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
			const struct mu_node *from = n->inputs[k].node;
			if (exec_input_is_bound(e, i, k))
				continue;
			e->edges[first_edge(e, fill, from)] = (struct exec_edge){
			    .dst = i,
			    .slot = k < n->n_inputs ? e->nodes[i].in_slot + k : NO_SLOT,
			    .port = n->inputs[k].port};
			fill[from->id]++;
		}
	}
	struct exec_edge *tmp = MU_NEW_ARRAY(struct exec_edge, (size_t)max_edges + 1);
	uint32_t *count = MU_NEW_ARRAY(uint32_t, (size_t)e->max_out + 2);
	for (unsigned i = 0; i < e->n_nodes; i++)
		sort_ports(e->edges + e->nodes[i].edges, e->nodes[i].n_edges, e->nodes[i].n_out,
			   tmp, count);
	free(tmp);
	free(count);
	free(fill);
	return 0;
}
