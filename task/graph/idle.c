/* SPDX-License-Identifier: Apache-2.0 */
/* Work that nobody looks at: values that no node takes, from a node that others only wait for.
 *
 * A trainer's gradients come in groups that are finished together, so a step waits for the gradient
 * of its own input data too, often the largest product or convolution of all, and throws it away.
 * Such a node becomes a NoOp that waits for what it would have read (stock TensorFlow's optimizer
 * does the same), or an IdentityN of those inputs that may be dead where their nodes are not. */
#include "task/graph/optimize.h"

/* A control edge from here means what a data edge does: both dead or neither. */
static bool lives_as_one(struct opt *o, const struct mu_node *n)
{
	return !(optimize_facts(o, n) & (FACT_DIES_ALONE | FACT_STEERS));
}

static bool is_idle(struct opt *o, const struct mu_node *n)
{
	return !o->data_users[n->id] && o->control_users[n->id] && n->n_inputs &&
	       optimize_is_pure(o, n);
}

/* The inputs that may be dead on their own stay data, ahead of the others; says how many. */
static unsigned sort_inputs(struct opt *o, struct mu_node *n, enum mu_dtype **types)
{
	struct mu_input *sorted = MU_ARENA_ARRAY(&o->scratch, struct mu_input, n->n_inputs);
	unsigned first = 0, last = n->n_inputs;

	*types = mu_arena_zalloc(&o->g->arena, n->n_inputs * sizeof **types);
	for (unsigned k = 0; k < n->n_inputs; k++) {
		struct mu_input in = n->inputs[k];
		enum mu_dtype *outputs;
		unsigned n_out;
		if (lives_as_one(o, in.node)) {
			sorted[--last] = (struct mu_input){in.node, MU_CONTROL};
			continue;
		}
		if (mu_op_output_types(in.node, &o->scratch, &outputs, &n_out, NULL) ||
		    (unsigned)in.port >= n_out)
			return n->n_inputs;
		(*types)[first] = outputs[in.port];
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

/* Users before what they use: what only idle nodes read becomes idle in its turn. */
void drop_idle_work(struct opt *o)
{
	for (unsigned i = o->n_order; i-- > 0;) {
		struct mu_node *n = o->order[i];
		enum mu_dtype *types;
		if (!is_idle(o, n))
			continue;
		unsigned kept = sort_inputs(o, n, &types);
		if (kept == n->n_inputs)
			continue; /* nothing would be won */
		n->def = mu_op_find(kept ? "IdentityN" : "NoOp");
		n->op = n->def->name;
		n->n_controls += n->n_inputs - kept;
		n->n_inputs = kept;
		n->n_attrs = 0;
		struct mu_attr t = {.kind = MU_ATTR_LIST + MU_ATTR_TYPE, .n = kept, .types = types};
		if (kept)
			mu_node_set_attr(o->g, n, "T", &t);
	}
}
