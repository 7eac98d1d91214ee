/* SPDX-License-Identifier: Apache-2.0 */
/* The body's nodes are copied to a builder, because gradient functions add their nodes to a
 * builder. They also need its types, its static shapes and its topological order of node ids. */
#include "lib/grad/function_gradient.h"

#include "lib/builder/fn.h"
#include "lib/grad/op_grads.h"

struct function_gradient {
	const struct mu_graph *body;
	struct mu_builder *b;
	struct mu_arena scratch;
	struct mu_node **copies; /* by node id of the body */
	struct mu_out *x, *y, *dy, *dx;
	unsigned n_x, n_y;
};

static bool is_arg(const struct mu_node *n)
{
	return strcmp(n->op, "_Arg") == 0;
}

static bool is_retval(const struct mu_node *n)
{
	return strcmp(n->op, "_Retval") == 0;
}

/* Sorts the nodes so that each follows its inputs.  Returns false if they form a cycle. */
static bool sort_nodes(const struct mu_graph *g, struct mu_arena *a, const struct mu_node **sorted)
{
	unsigned *next_input = MU_ARENA_ARRAY(a, unsigned, g->n_nodes);
	const struct mu_node **path = MU_ARENA_ARRAY(a, const struct mu_node *, g->n_nodes);
	bool *on_path = MU_ARENA_ARRAY(a, bool, g->n_nodes);
	bool *is_sorted = MU_ARENA_ARRAY(a, bool, g->n_nodes);
	unsigned n_sorted = 0;

	for (unsigned i = 0; i < g->n_nodes; i++) {
		unsigned n_path = 0;

		if (!is_sorted[i]) {
			path[n_path++] = g->nodes[i];
			on_path[i] = true;
		}
		while (n_path) {
			const struct mu_node *n = path[n_path - 1];

			if (next_input[n->id] == n->n_inputs + n->n_controls) {
				is_sorted[n->id] = true;
				sorted[n_sorted++] = n;
				n_path--;
				continue;
			}
			const struct mu_node *from = n->inputs[next_input[n->id]++].node;
			if (is_sorted[from->id])
				continue;
			if (on_path[from->id])
				return false;
			on_path[from->id] = true;
			path[n_path++] = from;
		}
	}
	return true;
}

/* Returns the value of an edge of the body in the builder.  Sets the error of the builder if it
 * does not exist. */
static struct mu_out value_of(struct function_gradient *f, struct mu_input in)
{
	const struct mu_node *copy = f->copies[in.node->id];

	if (builder_failed(f->b))
		return MU_NO_OUT;
	if (copy && in.port >= 0 && (unsigned)in.port < f->b->info[copy->id].n_out)
		return (struct mu_out){f->copies[in.node->id], in.port};
	mu_builder_fail(f->b, MU_INVALID_ARGUMENT, "node '%s' has no output %d", in.node->name,
			in.port);
	return MU_NO_OUT;
}

static unsigned index_of(struct function_gradient *f, const struct mu_node *n, unsigned limit)
{
	int64_t index = -1;

	if (mu_node_attr_int(n, "index", &index, NULL) || index < 0 || index >= limit) {
		mu_builder_fail(f->b, MU_INVALID_ARGUMENT, "node '%s' has index %lld of %u",
				n->name, (long long)index, limit);
		return 0;
	}
	return (unsigned)index;
}

static struct mu_out add_arg(struct mu_builder *b, const char *name, enum mu_dtype type, unsigned i)
{
	return mu_op(b, "_Arg", .name = name,
		     MU_ATTRS(MU_A_TYPE("T", mu_dtype_base(type)), MU_A_INT("index", i)));
}

static void copy_node(struct function_gradient *f, const struct mu_node *n)
{
	for (unsigned k = 0; k < n->n_inputs; k++)
		value_of(f, n->inputs[k]);
	if (builder_failed(f->b) || mu_op_check_node(n, &f->scratch, &f->b->err))
		return;
	if (is_arg(n)) {
		enum mu_dtype type = mu_node_attr(n, "T")->type;
		unsigned i = index_of(f, n, f->n_x);

		f->x[i] = add_arg(f->b, n->name, type, i);
		f->copies[n->id] = f->x[i].node;
	} else if (is_retval(n)) {
		f->y[index_of(f, n, f->n_y)] = value_of(f, n->inputs[0]);
	} else {
		f->copies[n->id] = fn_copy_node(f->b, n, f->copies, f->x);
	}
}

static void copy_body(struct function_gradient *f)
{
	const struct mu_node **sorted =
	    MU_ARENA_ARRAY(&f->scratch, const struct mu_node *, f->body->n_nodes);

	if (!sort_nodes(f->body, &f->scratch, sorted))
		mu_builder_fail(f->b, MU_UNIMPLEMENTED,
				"a function with a while loop has no gradient; call tf.gradients "
				"inside of the function");
	for (unsigned i = 0; i < f->body->n_nodes && !builder_failed(f->b); i++)
		copy_node(f, sorted[i]);
	for (unsigned i = 0; i < f->n_x + f->n_y; i++)
		if (!(i < f->n_x ? f->x[i] : f->y[i - f->n_x]).node)
			mu_builder_fail(f->b, MU_INVALID_ARGUMENT,
					"the body lacks an argument or an output");
}

static void add_gradients(struct function_gradient *f)
{
	struct mu_builder *b = f->b;

	for (unsigned i = 0; i < f->n_y; i++) {
		enum mu_dtype type = mu_dtype_base(mu_out_dtype(b, f->y[i]));
		struct mu_out dy = add_arg(b, "dy", type, f->n_x + i);

		f->dy[i] = grad_is_trainable(type) ? dy : MU_NO_OUT;
	}
	if (builder_failed(b))
		return;
	gradients_from(b, f->y, f->dy, f->n_y, f->x, f->n_x, f->dx);
	for (unsigned i = 0; i < f->n_x && !builder_failed(b); i++) {
		struct mu_out dx = f->dx[i].node ? f->dx[i] : grad_zeros(b, f->x[i]);

		mu_op(b, "_Retval", .name = "dx", MU_IN(dx), MU_ATTRS(MU_A_INT("index", i)));
	}
	mu_no_op(b, "function_end");
}

int mu_function_gradient(const struct mu_graph *body, struct mu_graph **out, struct mu_err *err)
{
	MU_AUTO(mu_builder_free) struct mu_builder *b = mu_builder_new();
	struct function_gradient f = {.body = body, .b = b};
	int rc;

	b->graph->library = mu_library_ref(body->library);
	mu_arena_init(&f.scratch);
	for (unsigned i = 0; i < body->n_nodes; i++) {
		f.n_x += is_arg(body->nodes[i]);
		f.n_y += is_retval(body->nodes[i]);
	}
	f.copies = MU_ARENA_ARRAY(&f.scratch, struct mu_node *, body->n_nodes);
	f.x = MU_ARENA_ARRAY(&f.scratch, struct mu_out, f.n_x + 1);
	f.y = MU_ARENA_ARRAY(&f.scratch, struct mu_out, f.n_y + 1);
	f.dy = MU_ARENA_ARRAY(&f.scratch, struct mu_out, f.n_y + 1);
	f.dx = MU_ARENA_ARRAY(&f.scratch, struct mu_out, f.n_x + 1);
	copy_body(&f);
	if (!builder_failed(b))
		add_gradients(&f);
	if (!(rc = mu_builder_check(b, err))) {
		mu_body_prune(b->graph, NULL, &f.scratch);
		*out = mu_steal(&b->graph);
	}
	mu_arena_fini(&f.scratch);
	return rc;
}
