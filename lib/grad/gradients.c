/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation.
 *
 * A node refers only to nodes that exist already, so ids are a topological order. One pass from the
 * id of the loss downward sees each node after all its consumers. Only nodes on a path from the xs
 * to the loss are differentiated.
 */
#include "lib/grad/op_grads.h"
#include "muster/grad.h"

struct pending { /* partial gradients of one output, to be summed */
	struct mu_out *g;
	unsigned n;
};
struct sweep {
	struct mu_builder *b;
	unsigned n_nodes;          /* nodes of the graph before the first gradient node */
	bool *wanted;              /* by node id: depends on one of the xs */
	struct pending **partials; /* by node id: one entry for each output */
};

static void add_partial(struct sweep *s, struct mu_out at, struct mu_out g)
{
	unsigned id = at.node->id, n_out = s->b->info[id].n_out;
	struct pending *p;

	if (!s->partials[id])
		s->partials[id] = MU_NEW_ARRAY(struct pending, n_out);
	p = &s->partials[id][at.port];
	p->g = mu_xrealloc(p->g, (p->n + 1) * sizeof(*p->g));
	p->g[p->n++] = g;
}

/* The sum of the partial gradients of an output. */
static struct mu_out sum_partials(struct sweep *s, struct mu_out at)
{
	struct pending *p = s->partials[at.node->id];

	if (!p || !p[at.port].n)
		return MU_NO_OUT;
	p += at.port;
	if (p->n > 1) {
		p->g[0] =
		    mu_op_add(s->b, &(struct mu_op_args){.op = "AddN", .in = p->g, .n_in = p->n});
		p->n = 1;
	}
	return p->g[0];
}

static void mark_wanted(struct sweep *s, const struct mu_out *xs, unsigned n)
{
	struct mu_graph *g = s->b->graph;

	for (unsigned i = 0; i < n; i++)
		if (xs[i].node)
			s->wanted[xs[i].node->id] = true;
	for (unsigned i = 0; i < s->n_nodes; i++)
		for (unsigned j = 0; j < g->nodes[i]->n_inputs && !s->wanted[i]; j++)
			s->wanted[i] = s->wanted[g->nodes[i]->inputs[j].node->id];
}

static bool is_on_path(const struct sweep *s, const struct mu_node *n)
{
	for (unsigned i = 0; i < n->n_inputs; i++)
		if (s->wanted[n->inputs[i].node->id])
			return true;
	return false;
}

/* True if n's gradient function can be called with the gradients of its outputs. Replaces missing
 * gradients by zeros if the function needs them. */
static bool gather_output_gradients(struct sweep *s, const struct op_grad *og, struct mu_node *n,
				    struct mu_out *gy, unsigned n_out)
{
	bool any = false;

	if (!og->fn || !n_out)
		return false;
	for (unsigned i = 0; i < n_out; i++)
		any = any || gy[i].node;
	if (og->needs == GRAD_FIRST)
		return gy[0].node != NULL;
	for (unsigned i = 0; i < n_out && any && og->needs == GRAD_ALL; i++)
		if (!gy[i].node)
			gy[i] = grad_zeros(s->b, (struct mu_out){n, (int)i});
	return any;
}

/* Advice in the message about an op without a gradient. */
static const char *advice_for(const struct mu_node *n)
{
	if (mu_node_has_flag(n, MU_OP_LOOP))
		return "build the loop with mu_while (muster/function.h)";
	return "remove it from the loss or put a StopGradient before it";
}

/* Differentiates one node: computes the gradients of its inputs from those of its outputs. */
static void differentiate_node(struct sweep *s, struct mu_node *n)
{
	const struct op_grad *og = mu_op_find(n->op) ? op_grad_find(n->op) : &grad_of_named_call;
	unsigned n_out = s->b->info[n->id].n_out;
	struct mu_out *gy = MU_NEW_ARRAY(struct mu_out, n_out + 1);
	struct mu_out *gx = MU_NEW_ARRAY(struct mu_out, n->n_inputs + 1);
	struct grad_call c = {s->b, n, gy, n_out, gx, gradients_from};

	for (unsigned i = 0; i < n_out; i++)
		gy[i] = sum_partials(s, (struct mu_out){n, (int)i});
	mu_push_device(s->b, n->device);
	if (!og) {
		mu_builder_fail(s->b, MU_UNIMPLEMENTED, "op %s (node '%s') has no gradient; %s",
				n->op, n->name, advice_for(n));
	} else if (gather_output_gradients(s, og, n, gy, n_out)) {
		if (grad_takes_complex(&c))
			og->fn(&c);
		else
			grad_unsupported(&c, "of complex numbers");
		for (unsigned i = 0; i < n->n_inputs && !builder_failed(s->b); i++)
			if (gx[i].node && s->wanted[n->inputs[i].node->id])
				add_partial(s, grad_in(&c, i), gx[i]);
	}
	mu_pop_device(s->b);
	free(gy);
	free(gx);
}

static struct mu_out ones_like(struct mu_builder *b, struct mu_out y)
{
	struct mu_out one = mu_const_float(b, 1);
	enum mu_dtype t = mu_dtype_base(mu_out_dtype(b, y));

	if (t != MU_FLOAT)
		one = mu_cast(b, one, t);
	return mu_op(b, "Fill", MU_IN(mu_op(b, "Shape", MU_IN(y)), one));
}

static void sweep_free(struct sweep *s)
{
	for (unsigned i = 0; i < s->n_nodes; i++) {
		for (unsigned j = 0; s->partials[i] && j < s->b->info[i].n_out; j++)
			free(s->partials[i][j].g);
		free(s->partials[i]);
	}
	free(s->partials);
	free(s->wanted);
}

void gradients_from(struct mu_builder *b, const struct mu_out *ys, const struct mu_out *gys,
		    unsigned n_ys, const struct mu_out *xs, unsigned n, struct mu_out *grads)
{
	struct sweep s = {.b = b, .n_nodes = b->graph->n_nodes};

	s.wanted = MU_NEW_ARRAY(bool, s.n_nodes + 1);
	s.partials = MU_NEW_ARRAY(struct pending *, s.n_nodes + 1);
	mark_wanted(&s, xs, n);
	for (unsigned i = 0; i < n_ys && !builder_failed(b); i++)
		if (gys[i].node && s.wanted[ys[i].node->id])
			add_partial(&s, ys[i], gys[i]);
	for (unsigned id = s.n_nodes; id-- > 0 && !builder_failed(b);)
		if (s.wanted[id] && s.partials[id] && is_on_path(&s, b->graph->nodes[id]))
			differentiate_node(&s, b->graph->nodes[id]);
	for (unsigned i = 0; i < n; i++)
		grads[i] = xs[i].node && !builder_failed(b) ? sum_partials(&s, xs[i]) : MU_NO_OUT;
	sweep_free(&s);
}

void mu_gradients(struct mu_builder *b, struct mu_out loss, const struct mu_out *xs, unsigned n,
		  struct mu_out *grads)
{
	const char *outer = b->gradients;
	struct mu_out g;

	for (unsigned i = 0; i < n; i++)
		grads[i] = MU_NO_OUT;
	if (builder_failed(b) || !loss.node || loss.port == MU_CONTROL)
		return;
	mu_push_name(b, "gradients");
	if (!outer)
		b->gradients = builder_list_top(&b->scopes);
	g = ones_like(b, loss);
	gradients_from(b, &loss, &g, 1, xs, n, grads);
	b->gradients = outer;
	mu_pop_name(b);
}
