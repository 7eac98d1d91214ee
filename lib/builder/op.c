/* SPDX-License-Identifier: Apache-2.0 */
/* Adds one node. Checks the inputs against the op definition, derives attributes from them, chooses
 * the device, and infers output types and shapes. */
#include "lib/builder/builder.h"

#include "lib/graph/library.h"
#include "lib/ops/op_def.h"

enum { MAX_ATTRS = 32 };

/* Attributes of the node being built: first the caller's, then the derived ones. */
struct attr_list {
	struct mu_node_attr at[MAX_ATTRS];
	unsigned n;
};

static const struct mu_attr *attr_find(const struct attr_list *l, const char *name)
{
	for (unsigned i = 0; i < l->n; i++)
		if (strcmp(l->at[i].name, name) == 0)
			return &l->at[i].value;
	return NULL;
}

static void attr_put(struct attr_list *l, struct mu_node_attr a)
{
	if (l->n < MAX_ATTRS && !attr_find(l, a.name))
		l->at[l->n++] = a;
}

/* Derives attributes from one input argument. *at is the index of its first input. */
static int derive_arg(struct mu_builder *b, const struct mu_op_args *a, const struct mu_op_def *def,
		      const struct mu_arg_def *arg, unsigned *at, struct attr_list *l)
{
	unsigned n_later_args = (unsigned)(&def->inputs[def->n_inputs] - arg) - 1, n = 1;
	const struct mu_attr *number;

	if (arg->kind == MU_ARG_REPEAT && (number = attr_find(l, arg->number_attr)))
		n = number->i >= 0 && number->i < 100000 ? (unsigned)number->i : 0;
	else if (arg->kind == MU_ARG_REPEAT || arg->kind == MU_ARG_TYPE_LIST)
		n = a->n_in > *at + n_later_args ? a->n_in - *at - n_later_args : 0;
	if (*at + n > a->n_in)
		return mu_fail(&b->err, MU_INVALID_ARGUMENT, "%s needs input '%s', only %u given",
			       a->op, arg->name, a->n_in);
	if (arg->kind == MU_ARG_REPEAT)
		attr_put(l, MU_A_INT(arg->number_attr, n));
	if (arg->kind == MU_ARG_TYPE_LIST) {
		enum mu_dtype *types = MU_ARENA_ARRAY(&b->graph->arena, enum mu_dtype, n + 1);

		for (unsigned i = 0; i < n; i++)
			types[i] = mu_dtype_base(mu_out_dtype(b, a->in[*at + i]));
		attr_put(l, MU_A_TYPES(arg->type_attr, types, n));
	}
	for (unsigned i = 0; i < n; i++) {
		enum mu_dtype t = mu_out_dtype(b, a->in[*at + i]), want = arg->type;

		if (arg->is_ref && !mu_dtype_is_ref(t))
			return mu_fail(&b->err, MU_INVALID_ARGUMENT,
				       "%s: input '%s' must be a variable, %s is a value", a->op,
				       arg->name, a->in[*at + i].node->name);
		if (arg->kind == MU_ARG_TYPE_LIST)
			continue;
		if (arg->type_attr) {
			attr_put(l, MU_A_TYPE(arg->type_attr, mu_dtype_base(t)));
			want = attr_find(l, arg->type_attr)->type;
		}
		if (mu_dtype_base(t) != mu_dtype_base(want))
			return mu_fail(&b->err, MU_INVALID_ARGUMENT,
				       "%s: input '%s' must be %s, %s is %s", a->op, arg->name,
				       mu_dtype_name(mu_dtype_base(want)),
				       a->in[*at + i].node->name, mu_dtype_name(mu_dtype_base(t)));
	}
	*at += n;
	return 0;
}

static int derive_attrs(struct mu_builder *b, const struct mu_op_args *a,
			const struct mu_op_def *def, struct attr_list *l)
{
	unsigned at = 0;

	for (unsigned i = 0; i < def->n_inputs; i++)
		if (derive_arg(b, a, def, &def->inputs[i], &at, l))
			return -1;
	if (at != a->n_in)
		return mu_fail(&b->err, MU_INVALID_ARGUMENT, "%s takes %u inputs, %u given", a->op,
			       at, a->n_in);
	for (unsigned i = 0; i < def->n_attrs; i++)
		if (!def->attrs[i].has_default && !attr_find(l, def->attrs[i].name))
			return mu_fail(&b->err, MU_INVALID_ARGUMENT, "%s needs attribute '%s'",
				       a->op, def->attrs[i].name);
	return 0;
}

static bool is_variable_op(const char *op)
{
	return strcmp(op, "VariableV2") == 0 || strcmp(op, "Variable") == 0 ||
	       strcmp(op, "VarHandleOp") == 0;
}

/* Size in bytes of the variable that a node creates; 0 if its shape is unknown. */
static int64_t variable_bytes(const struct mu_node *n)
{
	const struct mu_attr *shape = mu_node_attr(n, "shape"), *type = mu_node_attr(n, "dtype");
	struct mu_shape known;

	if (!shape || !type || mu_shape_set(&known, shape->shape->rank, shape->shape->dim, NULL))
		return 0;
	return known.count * (int64_t)mu_dtype_size(mu_dtype_base(type->type));
}

/* Chooses the ps task for a variable: round robin, or the first task with the fewest bytes. */
static unsigned choose_ps(struct mu_builder *b, const struct mu_node *n)
{
	unsigned smallest = 0;

	if (!b->ps_bytes)
		return b->next_ps++ % b->ps_tasks;
	for (unsigned i = 1; i < b->ps_tasks; i++)
		if (b->ps_bytes[i] < b->ps_bytes[smallest])
			smallest = i;
	b->ps_bytes[smallest] += variable_bytes(n);
	return smallest;
}

static void choose_device(struct mu_builder *b, struct mu_node *n)
{
	const char *scope = builder_list_top(&b->devices), *replica_device = "";

	/* A variable with an explicit task does not advance the round robin. */
	if (b->ps_tasks && is_variable_op(n->op) && !(scope && strstr(scope, "/task:")))
		replica_device =
		    mu_arena_printf(&b->graph->arena, "/job:ps/task:%u", choose_ps(b, n));
	else if (b->ps_tasks && is_variable_op(n->op))
		replica_device = "/job:ps";
	else if (b->ps_tasks)
		replica_device = b->worker_device;
	mu_node_set_device(b->graph, n,
			   builder_merge_device(b, replica_device, scope ? scope : ""));
}

/* Infers output types, and output shapes if the op has a shape rule. */
static int infer_outputs(struct mu_builder *b, struct mu_node *n, const struct mu_op_args *a)
{
	struct builder_node info = {0};
	struct mu_arena *ar = &b->graph->arena;
	const struct mu_attr *value;

	if (mu_op_output_types(n, ar, &info.types, &info.n_out, &b->err))
		return -1;
	info.shapes = MU_ARENA_ARRAY(ar, struct mu_pshape, info.n_out + 1);
	for (unsigned i = 0; i < info.n_out; i++)
		info.shapes[i].rank = -1;
	struct mu_pshape *in = MU_ARENA_ARRAY(ar, struct mu_pshape, a->n_in + 1);
	const struct mu_tensor **vals = MU_ARENA_ARRAY(ar, const struct mu_tensor *, a->n_in + 1);
	struct mu_shape_ctx c = {n, a->n_in, info.n_out, in, vals, info.shapes};
	for (unsigned i = 0; i < a->n_in; i++) {
		in[i] = *mu_out_shape(b, a->in[i]);
		vals[i] = builder_value(b, a->in[i]);
	}
	if (mu_op_shapes(&c, &b->err))
		return -1;
	if (strcmp(n->op, "Const") == 0 && (value = mu_node_attr(n, "value")))
		info.value = value->tensor;
	while (b->cap_info <= n->id) {
		b->cap_info = b->cap_info ? 2 * b->cap_info : 64;
		b->info = mu_xrealloc(b->info, b->cap_info * sizeof(*b->info));
	}
	b->info[n->id] = info;
	b->n_info = n->id + 1;
	return 0;
}

/* Returns the definition of an op, or the signature of a library function with this name. */
static const struct mu_op_def *op_def_find(const struct mu_builder *b, const char *op)
{
	const struct mu_op_def *def = mu_op_find(op);
	const struct mu_function *f = def ? NULL : mu_library_find(b->graph->library, op);

	return f ? &f->def : def;
}

static int op_add_node(struct mu_builder *b, const struct mu_op_args *a, const char *name,
		       struct mu_node **out)
{
	const struct mu_op_def *def = op_def_find(b, a->op);
	struct attr_list attrs = {.n = 0};
	struct mu_node *n;

	if (!def)
		return mu_fail(&b->err, MU_NOT_FOUND, "there is no op named '%s'", a->op);
	if (a->n_attrs > MAX_ATTRS / 2)
		return mu_fail(&b->err, MU_INVALID_ARGUMENT, "%u attributes are too many",
			       a->n_attrs);
	for (unsigned i = 0; i < a->n_in; i++)
		if (!a->in[i].node || a->in[i].port == MU_CONTROL)
			return mu_fail(&b->err, MU_INVALID_ARGUMENT, "%s: input %u is not a tensor",
				       a->op, i);
		else if (builder_check_out(b, a->in[i], &b->err))
			return mu_wrap(&b->err, "input %u", i);
	for (unsigned i = 0; i < a->n_attrs; i++) {
		if (!mu_op_attr(def, a->attrs[i].name) && a->attrs[i].name[0] != '_')
			return mu_fail(&b->err, MU_INVALID_ARGUMENT, "%s has no attribute '%s'",
				       a->op, a->attrs[i].name);
		attr_put(&attrs, a->attrs[i]);
	}
	if (derive_attrs(b, a, def, &attrs) || mu_graph_add(b->graph, name, a->op, &n, &b->err))
		return -1;

	struct mu_input *in = MU_NEW_ARRAY(struct mu_input, a->n_in + 1);
	for (unsigned i = 0; i < a->n_in; i++)
		in[i] = (struct mu_input){a->in[i].node, a->in[i].port};
	mu_node_set_inputs(b->graph, n, in, a->n_in, NULL, 0);
	free(in);
	for (unsigned i = 0; i < attrs.n; i++)
		mu_node_set_attr(b->graph, n, attrs.at[i].name, &attrs.at[i].value);
	builder_add_controls(b, n);
	choose_device(b, n);
	if (infer_outputs(b, n, a))
		return -1;
	*out = n;
	return 0;
}

struct mu_out mu_op_add(struct mu_builder *b, const struct mu_op_args *a)
{
	struct mu_node *n;
	const char *name;

	if (builder_failed(b))
		return MU_NO_OUT;
	name = builder_name(b, a->name ? a->name : a->op);
	if (op_add_node(b, a, name, &n)) {
		mu_wrap(&b->err, "node '%s'", name);
		return MU_NO_OUT;
	}
	return (struct mu_out){n, b->info[n->id].n_out ? 0 : MU_CONTROL};
}
