/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces nodes whose outputs are unused, and that only order other nodes, by NoOp.
 *
 * A trainer groups all gradients under one control node.  So a step also waits for the gradient of
 * its input data, often its largest product or convolution, and discards the value.  The NoOp has
 * the inputs of the old node as control inputs (stock TensorFlow's optimizer does the same).  An
 * input that may be dead while its node is alive must stay a data input; then the node becomes an
 * IdentityN of such inputs. */
#include "task/graph/optimize.h"

/* True if the outputs of n are dead exactly when n is, so that a control edge can replace a data
 * edge. */
static bool outputs_live_together(const struct mu_node *n)
{
	return !(optimize_traits(n) & (TRAIT_DEAD_OUTPUTS | TRAIT_CONTROL_FLOW));
}

static bool is_unused(struct opt *o, const struct mu_node *n)
{
	return !o->data_users[n->id] && o->control_users[n->id] && n->n_inputs &&
	       optimize_is_pure(n);
}

/* Turns the data inputs whose outputs live together into control inputs and moves the others to the
 * front.  Returns the new number of data inputs.  If a type is unknown, changes nothing and returns
 * n_inputs. */
static unsigned demote_inputs_to_control(struct opt *o, struct mu_node *n, enum mu_dtype **types)
{
	struct mu_input *sorted = MU_ARENA_ARRAY(&o->scratch, struct mu_input, n->n_inputs);
	unsigned first = 0, last = n->n_inputs;

	*types = mu_arena_zalloc(&o->g->arena, n->n_inputs * sizeof **types);
	for (unsigned k = 0; k < n->n_inputs; k++) {
		struct mu_input in = n->inputs[k];
		if (outputs_live_together(in.node)) {
			sorted[--last] = (struct mu_input){in.node, MU_CONTROL};
			continue;
		}
		(*types)[first] = mu_op_edge_type(in, &o->scratch);
		if (!(*types)[first])
			return n->n_inputs;
		sorted[first++] = in;
	}
	for (unsigned k = 0; first < n->n_inputs && k < n->n_inputs; k++) {
		if (sorted[k].port == MU_CONTROL) {
			o->data_users[sorted[k].node->id]--;
			o->control_users[sorted[k].node->id]++;
		}
		n->inputs[k] = sorted[k];
	}
	return first;
}

/* Visits users before their inputs: a node that only unused nodes read becomes unused as well. */
void drop_unused_values(struct opt *o)
{
	for (unsigned i = o->n_order; i-- > 0;) {
		struct mu_node *n = o->order[i];
		enum mu_dtype *types;
		if (!is_unused(o, n))
			continue;
		unsigned n_data = demote_inputs_to_control(o, n, &types);
		if (n_data == n->n_inputs)
			continue; /* no input can become a control input */
		n->def = mu_op_find(n_data ? "IdentityN" : "NoOp");
		n->op = n->def->name;
		n->n_controls += n->n_inputs - n_data;
		n->n_inputs = n_data;
		n->n_attrs = 0;
		struct mu_attr t = {
		    .kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = n_data, .types = types};
		if (n_data)
			mu_node_set_attr(o->g, n, "T", &t);
	}
}
