/* SPDX-License-Identifier: Apache-2.0 */
/* Visits the nodes in topological order, so the inputs of a node are final before it.  Edges that
 * close a loop are rewired at the end. */
#include "task/graph/optimize.h"

#include <string.h>

#include "task/kernels/engine/kernel_table.h"

/* Limit of all folded constants of one graph. */
enum { FOLD_BYTES = 64 << 20 };

/* ---- edges ---- */

static struct mu_input replacement_of(const struct opt *o, struct mu_input in)
{
	const struct mu_input *to = in.node->id < o->n ? o->replacement[in.node->id] : NULL;

	if (!to || in.port == MU_CONTROL)
		return in;
	return to[in.port];
}

/* Finds the node that replaces `from` as the source of a control edge.  Returns the number of
 * control edges, 0 or 1. */
static unsigned replace_control(const struct opt *o, struct mu_node *from, struct mu_node **out)
{
	while (from->id < o->n && o->removed[from->id]) {
		if (strcmp(from->op, "NoOp") == 0) {
			if (!from->n_controls)
				return 0;
			from = from->inputs[0].node;
		} else {
			from = o->replacement[from->id][0].node;
		}
	}
	*out = from;
	return !mu_node_is_constant(from);
}

static void rewire(struct opt *o, struct mu_node *n)
{
	unsigned n_kept = n->n_inputs;

	for (unsigned k = 0; k < n->n_inputs; k++)
		n->inputs[k] = replacement_of(o, n->inputs[k]);
	for (unsigned k = n->n_inputs; k < n->n_inputs + n->n_controls; k++) {
		struct mu_node *from;
		bool duplicate = false;
		if (!replace_control(o, n->inputs[k].node, &from))
			continue;
		for (unsigned i = n_kept; !duplicate && i-- > n->n_inputs && n_kept - i < 8;)
			duplicate = n->inputs[i].node == from;
		if (!duplicate)
			n->inputs[n_kept++] = (struct mu_input){from, MU_CONTROL};
	}
	n->n_controls = n_kept - n->n_inputs;
}

/* ---- identity nodes ---- */

/* Removes an Identity.  An Identity of a Switch stays if it has control outputs: it runs only if
 * its branch is taken, but the Switch always runs. */
static bool skip_identity(struct opt *o, struct mu_node *n)
{
	if (!(optimize_traits(n) & TRAIT_IDENTITY) || n->n_inputs != 1 || n->n_controls)
		return false;
	unsigned from = optimize_traits(n->inputs[0].node);
	if (from & TRAIT_REF_OUTPUT || (o->control_users[n->id] && from & TRAIT_DEAD_OUTPUTS))
		return false;
	if (!o->data_users[n->id] && !o->control_users[n->id])
		return false; /* a target of the step */
	o->replacement[n->id] = mu_arena_alloc(&o->scratch, sizeof(struct mu_input));
	o->replacement[n->id][0] = n->inputs[0];
	return o->removed[n->id] = true;
}

static bool skip_no_op(struct opt *o, struct mu_node *n)
{
	if (!(optimize_traits(n) & TRAIT_NO_OP) || n->n_inputs || n->n_controls > 1)
		return false;
	return o->removed[n->id] = true;
}

/* ---- graph_optimize ---- */

/* Returns true if every edge starts from an existing output.  Each pass checks its other
 * requirements. */
static bool edges_are_valid(struct opt *o)
{
	struct mu_graph *g = o->g;
	unsigned *outputs = MU_ARENA_ARRAY(&o->scratch, unsigned, o->n);

	for (unsigned i = 0; i < o->n; i++) {
		const struct mu_op_def *d = g->nodes[i]->def;
		enum mu_dtype *types;
		if (!d)
			return false;
		outputs[i] = d->n_outputs;
		for (unsigned k = 0; k < d->n_outputs; k++)
			if (d->outputs[k].kind == MU_ARG_REPEAT ||
			    d->outputs[k].kind == MU_ARG_TYPE_LIST) {
				if (mu_op_output_types(g->nodes[i], &o->scratch, &types,
						       &outputs[i], NULL))
					return false;
				break;
			}
	}
	for (unsigned i = 0; i < o->n; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs; k++) {
			struct mu_input in = g->nodes[i]->inputs[k];
			if (in.port < 0 || (unsigned)in.port >= outputs[in.node->id])
				return false;
		}
	return true;
}

static void count_users(struct opt *o)
{
	struct mu_graph *g = o->g;

	for (unsigned i = 0; i < o->n; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs + g->nodes[i]->n_controls; k++) {
			struct mu_input in = g->nodes[i]->inputs[k];
			(in.port == MU_CONTROL ? o->control_users : o->data_users)[in.node->id]++;
		}
}

/* Drops the removed nodes and the unused constants. */
static void drop_unused(struct opt *o)
{
	struct mu_graph *g = o->g;
	bool *used = MU_ARENA_ARRAY(&o->scratch, bool, g->n_nodes);
	bool *keep = MU_ARENA_ARRAY(&o->scratch, bool, g->n_nodes);

	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		for (unsigned k = 0;
		     !(i < o->n && o->removed[i]) && k < n->n_inputs + n->n_controls; k++)
			used[n->inputs[k].node->id] = true;
	}
	for (unsigned i = 0; i < g->n_nodes; i++)
		keep[i] =
		    !(i < o->n && o->removed[i]) && (used[i] || !mu_node_is_constant(g->nodes[i]));
	mu_graph_keep(g, keep);
}

void graph_optimize(struct mu_graph *g, struct runtime *rt)
{
	struct opt o = {.g = g, .rt = rt, .n = g->n_nodes, .budget = FOLD_BYTES};

	mu_map_init(&o.computations);
	mu_arena_init(&o.scratch);
	if (edges_are_valid(&o)) {
		o.replacement = MU_ARENA_ARRAY(&o.scratch, struct mu_input *, o.n);
		o.removed = MU_ARENA_ARRAY(&o.scratch, bool, o.n);
		o.data_users = MU_ARENA_ARRAY(&o.scratch, unsigned, o.n);
		o.control_users = MU_ARENA_ARRAY(&o.scratch, unsigned, o.n);
		count_users(&o);
		o.order = MU_ARENA_ARRAY(&o.scratch, struct mu_node *, o.n);
		o.n_order = mu_graph_order(g, 0, o.order, &o.scratch);
		drop_unused_values(&o);
		for (unsigned i = 0; i < o.n_order; i++) {
			struct mu_node *n = o.order[i];
			rewire(&o, n);
			if (!skip_identity(&o, n) && !skip_no_op(&o, n) && !fold_node(&o, n))
				merge_node(&o, n);
		}
		for (unsigned i = 0; i < o.n; i++)
			if (!o.removed[i])
				rewire(&o, g->nodes[i]);
		drop_unused(&o);
	}
	mu_map_fini(&o.computations);
	mu_buf_fini(&o.key);
	mu_arena_fini(&o.scratch);
}
