/* SPDX-License-Identifier: Apache-2.0 */
/* Finds ops that must read a variable before its update.
 *
 * An op reads a variable in place, and an update modifies it in place. The backward pass of a layer
 * reads its weights again. If the update did not wait for this read, the previous layer would get
 * gradients of the updated weights. A reader on another task has a copy. So an update waits only
 * for readers on its own device, and no control edge crosses the network.
 */
#include "client/optim/optimizers.h"
#include "lib/builder/builder.h"

/* Marks n and all its predecessors by id. */
static void mark_predecessors(const struct mu_node *n, bool *is_needed,
			      const struct mu_node **stack)
{
	unsigned depth = 0;

	if (!is_needed[n->id])
		stack[depth++] = n;
	is_needed[n->id] = true;
	while (depth) {
		n = stack[--depth];
		for (unsigned i = 0; i < n->n_inputs + n->n_controls; i++) {
			const struct mu_node *from = n->inputs[i].node;

			if (!is_needed[from->id])
				stack[depth++] = from;
			is_needed[from->id] = true;
		}
	}
}

static bool reads_variable(const struct mu_node *n, const struct mu_var *v)
{
	for (unsigned i = 0; i < n->n_inputs; i++)
		if (n->inputs[i].node == v->read.node)
			return strcmp(n->device, v->ref.node->device) == 0;
	return false;
}

struct optim_readers *optim_readers_new(struct mu_builder *b, const struct optim_grad *grads,
					unsigned n)
{
	struct optim_readers *r = MU_NEW(struct optim_readers);
	const struct mu_node **stack = MU_NEW_ARRAY(const struct mu_node *, b->graph->n_nodes + 1);

	r->n_nodes = b->graph->n_nodes;
	r->is_needed = MU_NEW_ARRAY(bool, r->n_nodes + 1);
	r->ops = MU_NEW_ARRAY(struct mu_out, r->n_nodes + 1);
	for (unsigned i = 0; i < n; i++) {
		mark_predecessors(grads[i].grad.node, r->is_needed, stack);
		if (grads[i].rows.node)
			mark_predecessors(grads[i].rows.node, r->is_needed, stack);
	}
	free(stack);
	return r;
}

unsigned optim_readers_of(struct optim_readers *r, struct mu_builder *b, const struct mu_var *v)
{
	unsigned n = 0;

	for (unsigned i = v->read.node->id + 1; i < r->n_nodes; i++)
		if (r->is_needed[i] && reads_variable(b->graph->nodes[i], v))
			r->ops[n++] = (struct mu_out){b->graph->nodes[i], MU_CONTROL};
	return n;
}

void optim_readers_free(struct optim_readers *r)
{
	free(r->is_needed);
	free(r->ops);
	free(r);
}
