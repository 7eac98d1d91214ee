/* SPDX-License-Identifier: Apache-2.0 */
/* Reverse-mode differentiation.
 *
 * The inputs of a node have smaller ids, so ids are a topological order. One pass from the id of
 * the loss downward visits each node after all its consumers. Only nodes on a path from the xs to
 * the loss are differentiated.
 */
#include "lib/grad/op_grads.h"
#include "muster/grad.h"

struct partial_sum { /* partial gradients of one output, to be summed */
	struct mu_out *g;
	unsigned n;
};
struct backward_pass {
	struct mu_builder *b;
	unsigned n_nodes;              /* nodes of the graph before the first gradient node */
	bool *depends_on_xs;           /* by node id */
	struct partial_sum **partials; /* by node id: one entry for each output */
};

static void add_partial(struct backward_pass *pass, struct mu_out out, struct mu_out g)
{
	unsigned id = out.node->id, n_out = pass->b->info[id].n_out;
	struct partial_sum *p;

	if (!pass->partials[id])
		pass->partials[id] = MU_NEW_ARRAY(struct partial_sum, n_out);
	p = &pass->partials[id][out.port];
	p->g = mu_xrealloc(p->g, (p->n + 1) * sizeof(*p->g));
	p->g[p->n++] = g;
}

/* Returns the sum of the partial gradients of an output. */
static struct mu_out sum_partials(struct backward_pass *pass, struct mu_out out)
{
	struct partial_sum *p = pass->partials[out.node->id];

	if (!p || !p[out.port].n)
		return MU_NO_OUT;
	p += out.port;
	if (p->n > 1) {
		p->g[0] = mu_op_add(pass->b,
				    &(struct mu_op_args){.op = "AddN", .in = p->g, .n_in = p->n});
		p->n = 1;
	}
	return p->g[0];
}

static void mark_dependents_of_xs(struct backward_pass *pass, const struct mu_out *xs, unsigned n)
{
	struct mu_graph *g = pass->b->graph;

	for (unsigned i = 0; i < n; i++)
		if (xs[i].node)
			pass->depends_on_xs[xs[i].node->id] = true;
	for (unsigned i = 0; i < pass->n_nodes; i++)
		for (unsigned j = 0; j < g->nodes[i]->n_inputs && !pass->depends_on_xs[i]; j++)
			pass->depends_on_xs[i] =
			    pass->depends_on_xs[g->nodes[i]->inputs[j].node->id];
}

static bool is_on_path(const struct backward_pass *pass, const struct mu_node *n)
{
	for (unsigned i = 0; i < n->n_inputs; i++)
		if (pass->depends_on_xs[n->inputs[i].node->id])
			return true;
	return false;
}

/* Replaces missing gradients of n's outputs by zeros if the gradient function needs them. Returns
 * true if the function can be called. */
static bool prepare_output_gradients(struct backward_pass *pass, const struct op_grad *og,
				     struct mu_node *n, struct mu_out *gy, unsigned n_out)
{
	bool has_gradient = false;

	if (!og->fn || !n_out)
		return false;
	for (unsigned i = 0; i < n_out; i++)
		has_gradient = has_gradient || gy[i].node;
	if (og->needs == GRAD_FIRST)
		return gy[0].node != NULL;
	for (unsigned i = 0; i < n_out && has_gradient && og->needs == GRAD_ALL; i++)
		if (!gy[i].node)
			gy[i] = grad_zeros(pass->b, (struct mu_out){n, (int)i});
	return has_gradient;
}

/* Advice in the message about an op without a gradient. */
static const char *advice_for(const struct mu_node *n)
{
	if (mu_node_has_flag(n, MU_OP_LOOP))
		return "build the loop with mu_while (muster/function.h)";
	return "remove it from the loss or put a StopGradient before it";
}

/* Computes the gradients of the inputs of a node from the gradients of its outputs. */
static void differentiate_node(struct backward_pass *pass, struct mu_node *n)
{
	const struct op_grad *og = mu_op_find(n->op) ? op_grad_find(n->op) : &grad_of_named_call;
	unsigned n_out = pass->b->info[n->id].n_out;
	struct mu_out *gy = MU_NEW_ARRAY(struct mu_out, n_out + 1);
	struct mu_out *gx = MU_NEW_ARRAY(struct mu_out, n->n_inputs + 1);
	struct grad_call c = {pass->b, n, gy, n_out, gx, gradients_from};

	for (unsigned i = 0; i < n_out; i++)
		gy[i] = sum_partials(pass, (struct mu_out){n, (int)i});
	mu_push_device(pass->b, n->device);
	if (!og) {
		mu_builder_fail(pass->b, MU_UNIMPLEMENTED, "op %s (node '%s') has no gradient; %s",
				n->op, n->name, advice_for(n));
	} else if (prepare_output_gradients(pass, og, n, gy, n_out)) {
		if (grad_supports_complex(&c))
			og->fn(&c);
		else
			grad_unsupported(&c, "of complex numbers");
		for (unsigned i = 0; i < n->n_inputs && !builder_failed(pass->b); i++)
			if (gx[i].node && pass->depends_on_xs[n->inputs[i].node->id])
				add_partial(pass, grad_in(&c, i), gx[i]);
	}
	mu_pop_device(pass->b);
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

static void backward_pass_free(struct backward_pass *pass)
{
	for (unsigned i = 0; i < pass->n_nodes; i++) {
		for (unsigned j = 0; pass->partials[i] && j < pass->b->info[i].n_out; j++)
			free(pass->partials[i][j].g);
		free(pass->partials[i]);
	}
	free(pass->partials);
	free(pass->depends_on_xs);
}

void gradients_from(struct mu_builder *b, const struct mu_out *ys, const struct mu_out *gys,
		    unsigned n_ys, const struct mu_out *xs, unsigned n, struct mu_out *grads)
{
	struct backward_pass pass = {.b = b, .n_nodes = b->graph->n_nodes};

	pass.depends_on_xs = MU_NEW_ARRAY(bool, pass.n_nodes + 1);
	pass.partials = MU_NEW_ARRAY(struct partial_sum *, pass.n_nodes + 1);
	mark_dependents_of_xs(&pass, xs, n);
	for (unsigned i = 0; i < n_ys && !builder_failed(b); i++)
		if (gys[i].node && pass.depends_on_xs[ys[i].node->id])
			add_partial(&pass, ys[i], gys[i]);
	for (unsigned id = pass.n_nodes; id-- > 0 && !builder_failed(b);)
		if (pass.depends_on_xs[id] && pass.partials[id] &&
		    is_on_path(&pass, b->graph->nodes[id]))
			differentiate_node(&pass, b->graph->nodes[id]);
	for (unsigned i = 0; i < n; i++)
		grads[i] =
		    xs[i].node && !builder_failed(b) ? sum_partials(&pass, xs[i]) : MU_NO_OUT;
	backward_pass_free(&pass);
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
	bool failed = builder_check_out(b, loss, &b->err) != 0;
	for (unsigned i = 0; i < n && !failed; i++)
		failed = xs[i].node && builder_check_out(b, xs[i], &b->err) != 0;
	if (failed) {
		mu_wrap(&b->err, "mu_gradients");
		return;
	}
	mu_push_name(b, "gradients");
	if (!outer)
		b->gradients = builder_list_top(&b->scopes);
	g = ones_like(b, loss);
	gradients_from(b, &loss, &g, 1, xs, n, grads);
	b->gradients = outer;
	mu_pop_name(b);
}
