/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of calls, branches and loops.
 *
 * For a function f(x), a gradient function (x, dy) -> dx is created. It has a copy of f's nodes and
 * their gradients. The gradient of a call is a call of the gradient function. The gradient of a
 * branch is a branch with the same condition. Only numbers and variants (tensor lists) have
 * gradients. A missing gradient is zeros.
 *
 * The gradient of a loop is a reverse loop. A second copy of the loop, the recording loop, pushes
 * each variable on a tensor list at the start of each iteration. Variables that the body returns
 * unchanged, such as weights, need no list. The reverse loop pops from each list, runs the gradient
 * of the body, and ends when the lists are empty.
 */
#include "lib/builder/fn.h"
#include "lib/grad/op_grads.h"

static bool arg_has_gradient(const struct mu_fn *f, unsigned i)
{
	return grad_is_trainable(mu_out_dtype(f->b, f->args[i]));
}

static bool output_has_gradient(const struct mu_fn *f, unsigned i)
{
	return grad_is_trainable(mu_dtype_base(mu_out_dtype(f->b, f->outs[i])));
}

static unsigned count_args_with_gradient(const struct mu_fn *f)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->n_args; i++)
		n += arg_has_gradient(f, i);
	return n;
}

/* True if f can run again with the same result and without side effects. Otherwise sets the error
 * of the builder. */
static bool can_run_again(struct grad_call *c, const struct mu_fn *f)
{
	if (f && f->stateful)
		mu_builder_fail(c->b, MU_UNIMPLEMENTED,
				"op %s (node '%s') has no gradient: its function %s draws random "
				"numbers or has side effects, and the gradient would run it again",
				c->node->op, c->node->name, f->name);
	return !builder_failed(c->b);
}

/* Adds f and its gradients to b. dx: one for each argument that has a gradient. dy: one for each
 * output that has a gradient. */
static void add_gradient_nodes(struct mu_builder *b, gradients_fn gradients, const struct mu_fn *f,
			       const struct mu_out *x, const struct mu_out *dy, struct mu_out *dx)
{
	struct mu_out *y = MU_NEW_ARRAY(struct mu_out, f->n_outs + 1);
	struct mu_out *ys = MU_NEW_ARRAY(struct mu_out, f->n_outs + 1);
	struct mu_out *xs = MU_NEW_ARRAY(struct mu_out, f->n_args + 1);
	unsigned n_ys = 0, n_xs = 0;

	fn_put(b, f, x, y);
	for (unsigned i = 0; i < f->n_outs; i++)
		if (output_has_gradient(f, i))
			ys[n_ys++] = y[i];
	for (unsigned i = 0; i < f->n_args; i++)
		if (arg_has_gradient(f, i))
			xs[n_xs++] = x[i];
	if (!builder_failed(b))
		gradients(b, ys, dy, n_ys, xs, n_xs, dx);
	for (unsigned i = 0; i < n_xs && !builder_failed(b); i++)
		if (!dx[i].node)
			dx[i] = grad_zeros(b, xs[i]);
	free(y);
	free(ys);
	free(xs);
}

struct call_gradient {
	const struct mu_fn *f;
	gradients_fn gradients;
};

static void make_gradient(struct mu_builder *b, void *arg, const struct mu_out *in,
			  struct mu_out *out)
{
	const struct call_gradient *g = arg;

	add_gradient_nodes(b, g->gradients, g->f, in, in + g->f->n_args, out);
}

/* Returns a new array of the inputs of the gradient function: the node's inputs starting at `from`,
 * then the gradients of its outputs. Sets *n to the length. */
static struct mu_out *inputs_and_gradients(struct grad_call *c, const struct mu_fn *f,
					   unsigned from, unsigned *n)
{
	struct mu_out *in = MU_NEW_ARRAY(struct mu_out, f->n_args + f->n_outs + 1);

	for (*n = 0; *n < f->n_args; (*n)++)
		in[*n] = grad_in(c, from + *n);
	for (unsigned i = 0; i < f->n_outs; i++)
		if (output_has_gradient(f, i))
			in[(*n)++] =
			    c->gy[i].node ? c->gy[i] : grad_zeros(c->b, grad_out(c, (int)i));
	return in;
}

static const struct mu_fn *gradient_of(struct grad_call *c, const struct mu_fn *f,
				       const struct mu_out *in, unsigned n)
{
	struct call_gradient g = {f, c->gradients};
	const char *name;

	if (!can_run_again(c, f))
		return NULL;
	name = mu_arena_printf(&c->b->graph->arena, "%s_gradient", f->name);
	return mu_function_new(c->b, name, make_gradient, &g, in, n, count_args_with_gradient(f));
}

static void set_input_gradients(struct grad_call *c, const struct mu_fn *f, unsigned from,
				struct mu_out dx)
{
	for (unsigned i = 0, k = 0; i < f->n_args && dx.node; i++)
		if (arg_has_gradient(f, i))
			c->gx[from + i] = mu_port(dx, (int)k++);
}

/* Adds a SymbolicGradient of a function that is in the library but not in the builder. */
static void add_symbolic_gradient(struct grad_call *c, const struct mu_func *func)
{
	unsigned n_x = c->node->n_inputs;
	struct mu_out *in = MU_NEW_ARRAY(struct mu_out, n_x + c->n_gy + 1), dx;
	enum mu_dtype *types = MU_NEW_ARRAY(enum mu_dtype, n_x + 1);

	for (unsigned i = 0; i < n_x; i++) {
		in[i] = grad_in(c, i);
		types[i] = mu_dtype_base(mu_out_dtype(c->b, in[i]));
	}
	for (unsigned i = 0; i < c->n_gy; i++)
		in[n_x + i] = c->gy[i].node ? c->gy[i] : grad_zeros(c->b, grad_out(c, (int)i));
	dx = mu_op(c->b, "SymbolicGradient", .in = in, .n_in = n_x + c->n_gy,
		   MU_ATTRS(MU_A_TYPES("Tout", types, n_x),
			    {"f", {.kind = MU_ATTR_FUNC, .func = (struct mu_func *)func}}));
	for (unsigned i = 0; i < n_x && dx.node; i++)
		if (grad_is_trainable(types[i]))
			c->gx[i] = mu_port(dx, (int)i);
	free(in);
	free(types);
}

/* The op of the call is the name of the function. */
static void g_named_call(struct grad_call *c)
{
	add_symbolic_gradient(c, &(struct mu_func){.name = c->node->op,
						   .n_attrs = c->node->n_attrs,
						   .attrs = c->node->attrs});
}
const struct op_grad grad_of_named_call = {"", g_named_call, GRAD_ANY};

static void g_call(struct grad_call *c)
{
	const struct mu_attr *func = mu_node_attr(c->node, "f");
	const struct mu_fn *f, *g;
	struct mu_out *in;
	unsigned n;

	if (func && func->kind == MU_ATTR_FUNC && !fn_find(c->b, func->func->name)) {
		add_symbolic_gradient(c, func->func);
		return;
	}
	f = fn_of(c->b, c->node, "f", 0);
	if (!f)
		return;
	in = inputs_and_gradients(c, f, 0, &n);
	g = gradient_of(c, f, in, n);
	if (g)
		set_input_gradients(c, f, 0, mu_call(c->b, g, in, n));
	free(in);
}

static void g_if(struct grad_call *c)
{
	const struct mu_fn *then_fn = fn_of(c->b, c->node, "then_branch", 0);
	const struct mu_fn *else_fn = fn_of(c->b, c->node, "else_branch", 0), *g[2];
	struct mu_out *in;
	unsigned n;

	if (!then_fn || !else_fn)
		return;
	in = inputs_and_gradients(c, then_fn, 1, &n);
	g[0] = gradient_of(c, then_fn, in, n);
	g[1] = gradient_of(c, else_fn, in, n);
	if (g[0] && g[1])
		set_input_gradients(c, then_fn, 1, mu_if(c->b, grad_in(c, 0), g[0], g[1], in, n));
	free(in);
}

static void g_case(struct grad_call *c)
{
	const struct mu_attr *list = mu_node_attr(c->node, "branches");
	const struct mu_fn *first = fn_of(c->b, c->node, "branches", 0), **g;
	struct mu_out *in;
	unsigned n;

	if (!first)
		return;
	g = MU_NEW_ARRAY(const struct mu_fn *, list->n + 1);
	in = inputs_and_gradients(c, first, 1, &n);
	for (unsigned i = 0; i < list->n && !builder_failed(c->b); i++)
		g[i] = gradient_of(c, fn_of(c->b, c->node, "branches", i), in, n);
	if (!builder_failed(c->b))
		set_input_gradients(c, first, 1, mu_case(c->b, grad_in(c, 0), g, list->n, in, n));
	free(in);
	free(g);
}

/* ---- loops ----
 *
 * Variables of the recording loop:  iterations, x…, a list for each recorded x
 * Variables of the reverse loop:    remaining iterations, a list for each recorded x, all other x…,
 *                                   dx…
 */
struct loop {
	const struct mu_fn *cond, *body;
	unsigned n, n_recorded; /* variables; variables that need lists */
	gradients_fn gradients;
};

static bool is_recorded(const struct loop *l, unsigned i)
{
	return l->body->outs[i].node != l->body->args[i].node;
}

static enum mu_dtype variable_type(const struct loop *l, unsigned i)
{
	return mu_out_dtype(l->body->b, l->body->args[i]);
}

static struct mu_out any_shape(struct mu_builder *b)
{
	return grad_int(b, -1);
}

static void record_cond(struct mu_builder *b, void *loop, const struct mu_out *in,
			struct mu_out *out)
{
	fn_put(b, ((struct loop *)loop)->cond, in + 1, out);
}

static void record_body(struct mu_builder *b, void *loop, const struct mu_out *in,
			struct mu_out *out)
{
	const struct loop *l = loop;
	unsigned k = 1 + l->n;

	out[0] = mu_add(b, in[0], grad_int(b, 1));
	fn_put(b, l->body, in + 1, out + 1);
	for (unsigned i = 0; i < l->n; i++)
		if (is_recorded(l, i)) {
			out[k] = mu_op(b, "TensorListPushBack", MU_IN(in[k], in[1 + i]));
			k++;
		}
}

static void reverse_cond(struct mu_builder *b, void *loop, const struct mu_out *in,
			 struct mu_out *out)
{
	out[0] = mu_op(b, "Greater", MU_IN(in[0], grad_int(b, 0)));
}

static void reverse_body(struct mu_builder *b, void *loop, const struct mu_out *in,
			 struct mu_out *out)
{
	const struct loop *l = loop;
	struct mu_out *x = MU_NEW_ARRAY(struct mu_out, l->n + 1);
	unsigned list = 1, unchanged = 1 + l->n_recorded, dy = 1 + l->n;

	out[0] = mu_sub(b, in[0], grad_int(b, 1));
	for (unsigned i = 0; i < l->n; i++) {
		if (!is_recorded(l, i)) {
			x[i] = out[unchanged] = in[unchanged];
			unchanged++;
			continue;
		}
		out[list] = mu_op(b, "TensorListPopBack", MU_IN(in[list], any_shape(b)),
				  MU_ATTRS(MU_A_TYPE("element_dtype", variable_type(l, i))));
		x[i] = mu_port(out[list++], 1);
		builder_set_shape(b, x[i], mu_out_shape(l->body->b, l->body->args[i]));
	}
	add_gradient_nodes(b, l->gradients, l->body, x, in + dy, out + dy);
	free(x);
}

/* Adds the recording loop. Sets in[i] to the initial value of variable i of the reverse loop. */
static void add_recording_loop(struct grad_call *c, const struct loop *l, struct mu_out *in)
{
	struct mu_builder *b = c->b;
	unsigned n = 1 + l->n + l->n_recorded, k = 0;
	struct mu_out *vars = MU_NEW_ARRAY(struct mu_out, n), recording_loop;
	const struct mu_fn *cond, *body;

	vars[k++] = grad_int(b, 0);
	for (unsigned i = 0; i < l->n; i++)
		vars[k++] = grad_in(c, i);
	for (unsigned i = 0; i < l->n; i++)
		if (is_recorded(l, i))
			vars[k++] =
			    mu_op(b, "EmptyTensorList", MU_IN(any_shape(b), grad_int(b, -1)),
				  MU_ATTRS(MU_A_TYPE("element_dtype", variable_type(l, i))));
	cond = mu_function_new(b, "record_cond", record_cond, (void *)l, vars, n, 1);
	body = mu_function_new(b, "record_body", record_body, (void *)l, vars, n, n);
	recording_loop = mu_while(b, cond, body, vars, n);
	in[0] = recording_loop;
	for (unsigned i = 0; i < l->n_recorded; i++)
		in[1 + i] = mu_port(recording_loop, (int)(1 + l->n + i));
	k = 1 + l->n_recorded;
	for (unsigned i = 0; i < l->n; i++)
		if (!is_recorded(l, i))
			in[k++] = grad_in(c, i);
	free(vars);
}

static void g_while(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct loop l = {.cond = fn_of(b, c->node, "cond", 0),
			 .body = fn_of(b, c->node, "body", 0),
			 .n = c->node->n_inputs,
			 .gradients = c->gradients};
	const struct mu_fn *cond, *body;
	struct mu_out *in, reverse_loop;
	unsigned n;

	if (!l.cond || !l.body || !can_run_again(c, l.cond) || !can_run_again(c, l.body))
		return;
	for (unsigned i = 0; i < l.n; i++)
		l.n_recorded += is_recorded(&l, i);
	n = 1 + l.n;
	in = MU_NEW_ARRAY(struct mu_out, 1 + 2 * l.n);
	add_recording_loop(c, &l, in);
	for (unsigned i = 0; i < l.n; i++)
		if (arg_has_gradient(l.body, i))
			in[n++] = c->gy[i].node ? c->gy[i] : grad_zeros(b, grad_out(c, (int)i));
	cond = mu_function_new(b, "reverse_cond", reverse_cond, &l, in, n, 1);
	body = mu_function_new(b, "reverse_body", reverse_body, &l, in, n, n);
	reverse_loop = mu_while(b, cond, body, in, n);
	n = 1 + l.n;
	for (unsigned i = 0; i < l.n && reverse_loop.node; i++)
		if (arg_has_gradient(l.body, i))
			c->gx[i] = mu_port(reverse_loop, (int)n++);
	free(in);
}

const struct op_grad grads_of_functions[] = {
    {"Case", g_case, GRAD_ANY},
    {"If", g_if, GRAD_ANY},
    {"PartitionedCall", g_call, GRAD_ANY},
    {"StatefulPartitionedCall", g_call, GRAD_ANY},
    {"StatelessCase", g_case, GRAD_ANY},
    {"StatelessIf", g_if, GRAD_ANY},
    {"StatelessWhile", g_while, GRAD_ANY},
    {"While", g_while, GRAD_ANY},
    {NULL, NULL, GRAD_FIRST},
};
