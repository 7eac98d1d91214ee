/* SPDX-License-Identifier: Apache-2.0 */
/* Functions. Each has its own builder and is stored in the function library of the
 * outermost builder's graph.
 *
 * Encoding of a FunctionDef: signature=1 {name=1, input_arg=2, output_arg=3 {name=1, type=3},
 * is_stateful=17}, node_def=3, ret=4 {key=1, value=2}. Inside a function the input of a node is
 * named "argument", "node:output:k" (index k within the named output) or "^node".
 */
#include "lib/builder/fn.h"

#include <stdio.h>

#include "lib/base/pb.h"
#include "lib/graph/library.h"
#include "lib/ops/op_def.h"

static struct mu_builder *outermost_builder(struct mu_builder *b)
{
	while (b->outer)
		b = b->outer;
	return b;
}

/* ---- encoding ---- */

/* Writes "argument", "node:output:k" or "^node" for an input. */
static void encode_input_name(struct mu_buf *to, const struct mu_fn *f, struct mu_input in,
			      struct mu_err *err)
{
	unsigned port = (unsigned)in.port, count = 0;

	if (in.port == MU_CONTROL)
		mu_buf_putc(to, '^');
	mu_buf_puts(to, in.node->name);
	if (in.port == MU_CONTROL || strcmp(in.node->op, "_Arg") == 0)
		return;
	for (unsigned i = 0; i < in.node->def->n_outputs; i++, port -= count) {
		const struct mu_arg_def *o = &in.node->def->outputs[i];

		if (mu_op_arg_count(in.node, o, &count, err))
			return;
		if (port < count) {
			mu_buf_printf(to, ":%s:%u", o->name, port);
			return;
		}
	}
	mu_fail(err, MU_INTERNAL, "function %s: node '%s' has no output %d", f->name, in.node->name,
		in.port);
}

static void encode_arg(struct mu_buf *to, uint32_t number, const char *name, enum mu_dtype type)
{
	size_t at = mu_pb_begin(to, number);

	mu_pb_put_str(to, 1, name);
	mu_pb_put_int(to, 3, mu_dtype_base(type));
	mu_pb_end(to, at);
}

static void encode_node(struct mu_buf *to, const struct mu_fn *f, const struct mu_node *n,
			struct mu_err *err)
{
	size_t node = mu_pb_begin(to, 3);

	mu_pb_put_str(to, 1, n->name);
	mu_pb_put_str(to, 2, n->op);
	for (unsigned i = 0; i < n->n_inputs + n->n_controls; i++) {
		size_t at = mu_pb_begin(to, 3);

		encode_input_name(to, f, n->inputs[i], err);
		mu_pb_end(to, at);
	}
	if (*n->device)
		mu_pb_put_str(to, 4, n->device);
	for (unsigned i = 0; i < n->n_attrs; i++)
		mu_attr_entry_write(to, 5, &n->attrs[i]);
	mu_pb_end(to, node);
}

static void encode_function(struct mu_buf *to, const struct mu_fn *f, struct mu_err *err)
{
	const struct mu_graph *g = f->b->graph;
	size_t function = mu_pb_begin(to, 1), signature = mu_pb_begin(to, 1), at;
	char name[32];

	mu_pb_put_str(to, 1, f->name);
	for (unsigned i = 0; i < f->n_args; i++)
		encode_arg(to, 2, f->args[i].node->name, mu_out_dtype(f->b, f->args[i]));
	for (unsigned i = 0; i < f->n_outs; i++) {
		snprintf(name, sizeof(name), "out%u", i);
		encode_arg(to, 3, name, mu_out_dtype(f->b, f->outs[i]));
	}
	if (f->stateful)
		mu_pb_put_int(to, 17, 1);
	mu_pb_end(to, signature);
	for (unsigned i = 0; i < g->n_nodes; i++)
		if (strcmp(g->nodes[i]->op, "_Arg") != 0)
			encode_node(to, f, g->nodes[i], err);
	for (unsigned i = 0; i < f->n_outs; i++) {
		size_t ret = mu_pb_begin(to, 4);

		snprintf(name, sizeof(name), "out%u", i);
		mu_pb_put_str(to, 1, name);
		at = mu_pb_begin(to, 2);
		encode_input_name(to, f, (struct mu_input){f->outs[i].node, f->outs[i].port}, err);
		mu_pb_end(to, at);
		mu_pb_end(to, ret);
	}
	mu_pb_end(to, function);
}

const struct mu_fn *fn_find(const struct mu_builder *b, const char *name)
{
	while (b->outer)
		b = b->outer;
	for (unsigned i = 0; i < b->functions.n; i++) {
		const struct mu_fn *f = b->functions.items[i];

		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

/* ---- construction ---- */

static const char *unused_function_name(struct mu_builder *top, const char *base)
{
	const char *name = base;

	for (unsigned i = 1; fn_find(top, name) || mu_op_find(name); i++)
		name = mu_arena_printf(&top->graph->arena, "%s_%u", base, i);
	return name == base ? mu_arena_strdup(&top->graph->arena, base) : name;
}

static void add_args(struct mu_fn *f, struct mu_builder *b, const struct mu_out *like)
{
	for (unsigned i = 0; i < f->n_args; i++) {
		char name[32];

		snprintf(name, sizeof(name), "arg%u", i);
		f->args[i] = mu_op(f->b, "_Arg", .name = name,
				   MU_ATTRS(MU_A_TYPE("T", mu_dtype_base(mu_out_dtype(b, like[i]))),
					    MU_A_INT("index", i)));
		builder_set_shape(f->b, f->args[i], mu_out_shape(b, like[i]));
	}
}

static bool has_stateful_node(const struct mu_graph *g)
{
	for (unsigned i = 0; i < g->n_nodes; i++)
		if ((g->nodes[i]->def->flags & MU_OP_STATEFUL) &&
		    strcmp(g->nodes[i]->op, "_Arg") != 0)
			return true;
	return false;
}

/* Checks the outputs that `make` returned. Returns the error of the function's builder, if any. */
static int check_outputs(struct mu_fn *f, struct mu_err *err)
{
	int rc = mu_builder_check(f->b, err);

	for (unsigned i = 0; !rc && i < f->n_outs; i++)
		if (!f->outs[i].node || f->outs[i].port == MU_CONTROL ||
		    f->outs[i].node->id >= f->b->graph->n_nodes ||
		    f->b->graph->nodes[f->outs[i].node->id] != f->outs[i].node)
			rc = mu_fail(err, MU_INVALID_ARGUMENT,
				     "output %u is not a tensor of the function", i);
	return rc;
}

const struct mu_fn *mu_function_new(struct mu_builder *b, const char *name, mu_make make, void *arg,
				    const struct mu_out *like, unsigned n_in, unsigned n_out)
{
	struct mu_builder *top = outermost_builder(b);
	struct mu_arena *a = &top->graph->arena;
	MU_AUTO_BUF library = {0};
	struct mu_err err = {0};
	struct mu_fn *f;

	for (unsigned i = 0; i < n_in && !builder_failed(b); i++)
		if (mu_out_dtype(b, like[i]) == MU_DT_INVALID)
			mu_builder_fail(
			    b, MU_INVALID_ARGUMENT,
			    "function %s: argument %u has a prototype from another builder", name,
			    i);
	if (builder_failed(b))
		return NULL;
	f = MU_ARENA_NEW(a, struct mu_fn);
	*f = (struct mu_fn){.name = unused_function_name(top, name),
			    .b = mu_builder_new(),
			    .args = MU_ARENA_ARRAY(a, struct mu_out, n_in + 1),
			    .outs = MU_ARENA_ARRAY(a, struct mu_out, n_out + 1),
			    .n_args = n_in,
			    .n_outs = n_out};
	f->b->outer = b;
	f->b->gradients = b->gradients;
	builder_list_push(&top->functions, f);
	add_args(f, b, like);
	make(f->b, arg, f->args, f->outs);
	if (!check_outputs(f, &err)) {
		f->stateful = has_stateful_node(f->b->graph);
		encode_function(&library, f, &err);
	}
	if (err.code || mu_library_extend(&top->graph->library, mu_buf_span(&library), &err)) {
		mu_builder_fail(b, err.code, "function %s: %s", f->name, err.msg);
		return NULL;
	}
	return f;
}

const struct mu_fn *fn_of(struct mu_builder *b, const struct mu_node *n, const char *attr,
			  unsigned i)
{
	const struct mu_attr *a = mu_node_attr(n, attr);
	const struct mu_func *func = NULL;
	const struct mu_fn *f;

	if (a && a->kind == MU_ATTR_FUNC && i == 0)
		func = a->func;
	else if (a && (int)a->kind == MU_ATTR_LIST + MU_ATTR_FUNC && i < a->n)
		func = &a->funcs[i];
	f = func ? fn_find(b, func->name) : NULL;
	if (!f && func && mu_library_find(b->graph->library, func->name))
		mu_builder_fail(b, MU_UNIMPLEMENTED,
				"op %s (node '%s') has no gradient in a function of the library; "
				"call tf.gradients inside of the function",
				n->op, n->name);
	else if (!f)
		mu_builder_fail(b, MU_NOT_FOUND,
				"op %s (node '%s'): its function %s was not created by "
				"mu_function_new",
				n->op, n->name, func ? func->name : attr);
	return f;
}

/* ---- inlining ---- */

static struct mu_out input_of_copy(struct mu_node *const *copies, const struct mu_out *in,
				   const struct mu_input *i)
{
	int64_t index = 0;

	if (strcmp(i->node->op, "_Arg") == 0 && !mu_node_attr_int(i->node, "index", &index, NULL))
		return in[index];
	return (struct mu_out){copies[i->node->id], i->port};
}

struct mu_node *fn_copy_node(struct mu_builder *b, const struct mu_node *n,
			     struct mu_node *const *copies, const struct mu_out *in)
{
	struct mu_out *inputs = MU_NEW_ARRAY(struct mu_out, n->n_inputs + n->n_controls + 1);
	struct mu_out out;

	for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
		inputs[k] = input_of_copy(copies, in, &n->inputs[k]);
	mu_push_control(b, inputs + n->n_inputs, n->n_controls);
	mu_push_device(b, n->device);
	out = mu_op_add(b, &(struct mu_op_args){.op = n->op,
						.name = n->name,
						.in = inputs,
						.n_in = n->n_inputs,
						.attrs = n->attrs,
						.n_attrs = n->n_attrs});
	mu_pop_device(b);
	mu_pop_control(b);
	free(inputs);
	return out.node;
}

/* Sets the output shapes of a copy that are still unknown. */
static void copy_shapes(struct mu_builder *b, struct mu_node *copy, const struct builder_node *from)
{
	for (int k = 0; copy && k < (int)from->n_out; k++) {
		struct mu_out o = {copy, k};

		if (mu_out_shape(b, o)->rank < 0)
			builder_set_shape(b, o, &from->shapes[k]);
	}
}

void fn_put(struct mu_builder *b, const struct mu_fn *f, const struct mu_out *in,
	    struct mu_out *outs)
{
	const struct mu_graph *g = f->b->graph;
	struct mu_node **copies = MU_NEW_ARRAY(struct mu_node *, g->n_nodes + 1);

	mu_push_name(b, f->name);
	for (unsigned i = 0; i < g->n_nodes && !builder_failed(b); i++)
		if (strcmp(g->nodes[i]->op, "_Arg") != 0) {
			copies[i] = fn_copy_node(b, g->nodes[i], copies, in);
			copy_shapes(b, copies[i], &f->b->info[i]);
		}
	mu_pop_name(b);
	for (unsigned i = 0; i < f->n_outs; i++)
		outs[i] = builder_failed(b)
			      ? MU_NO_OUT
			      : input_of_copy(copies, in,
					      &(struct mu_input){f->outs[i].node, f->outs[i].port});
	free(copies);
}
