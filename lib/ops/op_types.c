/* SPDX-License-Identifier: Apache-2.0 */
/* Types of a node's inputs and outputs, and the checks of its attributes and edges. */
#include <inttypes.h>
#include <string.h>

#include "lib/graph/graph.h"
#include "lib/ops/op_def.h"

/* Limit of N in `N*T`, which comes from the client. */
enum { MAX_REPEAT = 1 << 20 };

struct type_list {
	enum mu_dtype *types;
	unsigned count, cap;
	struct mu_arena *arena;
};

static void push(struct type_list *l, enum mu_dtype t, bool is_ref)
{
	if (l->count == l->cap) {
		unsigned cap = l->cap ? l->cap * 2 : 8;
		enum mu_dtype *types = MU_ARENA_ARRAY(l->arena, enum mu_dtype, cap);
		if (l->count)
			memcpy(types, l->types, l->count * sizeof *types);
		l->types = types;
		l->cap = cap;
	}
	l->types[l->count++] = is_ref ? (enum mu_dtype)(t + MU_DT_REF) : t;
}

static int push_list(const struct mu_node *n, const struct mu_arg_def *a, struct type_list *l,
		     struct mu_err *err)
{
	const struct mu_attr *v = mu_node_attr(n, a->type_attr);

	if (!v)
		return mu_fail(err, MU_INVALID_ARGUMENT, "NodeDef missing attr '%s' from Op '%s'",
			       a->type_attr, n->op);
	if (v->kind != MU_ATTR_LIST + MU_ATTR_TYPE && v->kind != MU_ATTR_LIST)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "attribute '%s' of op %s is not a list of types", a->type_attr,
			       n->op);
	for (unsigned i = 0; i < v->n; i++)
		push(l, v->types[i], a->is_ref);
	return 0;
}

static int arg_types(const struct mu_node *n, const struct mu_arg_def *a, struct type_list *l,
		     struct mu_err *err)
{
	enum mu_dtype type = a->type;
	int64_t repeat = 1;
	int rc;

	if (a->kind == MU_ARG_TYPE_LIST)
		return push_list(n, a, l, err);
	if (a->type_attr && (rc = mu_node_attr_type(n, a->type_attr, &type, err)))
		return rc;
	if (a->number_attr && (rc = mu_node_attr_int(n, a->number_attr, &repeat, err)))
		return rc;
	if (repeat < 0 || repeat > MAX_REPEAT)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "attribute '%s' of op %s is %lld, not from 0 to %d", a->number_attr,
			       n->op, (long long)repeat, MAX_REPEAT);
	for (int64_t i = 0; i < repeat; i++)
		push(l, type, a->is_ref);
	return 0;
}

static int need_def(const struct mu_node *n, struct mu_err *err)
{
	return n->def ? 0 : mu_fail(err, MU_NOT_FOUND, "Op type not registered '%s'", n->op);
}

int mu_op_arg_count(const struct mu_node *n, const struct mu_arg_def *a, unsigned *out,
		    struct mu_err *err)
{
	MU_AUTO_ARENA arena = {0};
	struct type_list l = {.arena = &arena};
	int rc = arg_types(n, a, &l, err);
	if (!rc)
		*out = l.count;
	return rc;
}

int mu_op_output_port(const struct mu_node *n, struct mu_span name, unsigned *out,
		      struct mu_err *err)
{
	unsigned port = 0, n_tensors = 0;
	int rc = need_def(n, err);

	for (unsigned i = 0; !rc && i < n->def->n_outputs; i++) {
		if (mu_span_is(name, n->def->outputs[i].name)) {
			*out = port;
			return 0;
		}
		rc = mu_op_arg_count(n, &n->def->outputs[i], &n_tensors, err);
		port += n_tensors;
	}
	return rc ? rc
		  : mu_fail(err, MU_INVALID_ARGUMENT, "op %s has no output '%.*s'", n->op,
			    (int)(name.len < 80 ? name.len : 80), name.data);
}

static int all_types(const struct mu_node *n, const struct mu_arg_def *args, unsigned n_args,
		     struct mu_arena *arena, enum mu_dtype **types, unsigned *count,
		     struct mu_err *err)
{
	struct type_list l = {.arena = arena};

	for (unsigned i = 0; i < n_args; i++) {
		int rc = arg_types(n, &args[i], &l, err);
		if (rc)
			return rc;
	}
	*types = l.types;
	*count = l.count;
	return 0;
}

int mu_op_input_types(const struct mu_node *n, struct mu_arena *a, enum mu_dtype **types,
		      unsigned *count, struct mu_err *err)
{
	int rc = need_def(n, err);

	return rc ? rc : all_types(n, n->def->inputs, n->def->n_inputs, a, types, count, err);
}

int mu_op_output_types(const struct mu_node *n, struct mu_arena *a, enum mu_dtype **types,
		       unsigned *count, struct mu_err *err)
{
	int rc = need_def(n, err);

	return rc ? rc : all_types(n, n->def->outputs, n->def->n_outputs, a, types, count, err);
}

enum mu_dtype mu_op_edge_type(struct mu_input in, struct mu_arena *a)
{
	enum mu_dtype *types;
	unsigned n;

	return mu_op_output_types(in.node, a, &types, &n, NULL) || (unsigned)in.port >= n
		   ? MU_DT_INVALID
		   : types[in.port];
}

static int check_edge(const struct mu_node *n, unsigned i, enum mu_dtype want,
		      struct mu_arena *arena, struct mu_err *err)
{
	const struct mu_input *in = &n->inputs[i];
	enum mu_dtype *out_types;
	unsigned count;
	int rc = mu_op_output_types(in->node, arena, &out_types, &count, err);

	if (rc)
		return mu_wrap(err, "node '%s'", in->node->name);
	if (in->port < 0 || (unsigned)in->port >= count)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "input %u is output %d of '%s', which has %u outputs", i, in->port,
			       in->node->name, count);
	enum mu_dtype type = out_types[in->port];
	if (mu_dtype_base(type) != mu_dtype_base(want) ||
	    (mu_dtype_is_ref(want) && !mu_dtype_is_ref(type)))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Input %u of node %s was passed %s from %s:%d incompatible with "
			       "expected %s.",
			       i, n->name, mu_dtype_name(type), in->node->name, in->port,
			       mu_dtype_name(want));
	return 0;
}

static int check_allowed(const struct mu_attr_def *d, enum mu_dtype t, struct mu_span text,
			 struct mu_err *err)
{
	const struct mu_attr *allowed = &d->allowed;
	bool is_types = allowed->kind == MU_ATTR_LIST + MU_ATTR_TYPE;
	MU_AUTO_BUF b = {0};

	for (unsigned i = 0; i < allowed->n; i++) {
		if (is_types ? allowed->types[i] == t : mu_span_eq(allowed->ss[i], text))
			return 0;
		mu_buf_printf(&b, is_types ? "%s%s" : "%s\"%s\"", i ? ", " : "",
			      is_types ? mu_dtype_name(allowed->types[i]) : allowed->ss[i].data);
	}
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       is_types
			   ? "Value for attr '%s' of %.*s is not in the list of allowed values: %s"
			   : "Value for attr '%s' of \"%.*s\" is not in the list of allowed "
			     "values: %s",
		       d->name, (int)(text.len < 80 ? text.len : 80), text.data, b.data);
}

static int check_int32(const struct mu_attr_def *d, int64_t v, struct mu_err *err)
{
	if (v >= INT32_MIN && v <= INT32_MAX)
		return 0;
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "Attr %s has value %" PRId64 " out of range for an int32", d->name, v);
}

static int check_attr(const struct mu_attr_def *d, const struct mu_attr *v, struct mu_err *err)
{
	bool is_list = d->kind >= MU_ATTR_LIST;
	int rc = 0;

	if (v->kind == MU_ATTR_NONE)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "AttrValue missing value with expected type '%s'\n\t for attr '%s'",
			       mu_attr_kind_name(d->kind), d->name);
	if (v->kind != d->kind && !(is_list && v->kind == MU_ATTR_LIST))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "AttrValue had value with type '%s' when '%s' expected\n\t for attr "
			       "'%s'",
			       mu_attr_kind_name(v->kind), mu_attr_kind_name(d->kind), d->name);
	if (v->kind == MU_ATTR_TYPE && mu_dtype_is_ref(v->type))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "AttrValue must not have reference type value of %s\n\t for attr '%s'",
		    mu_dtype_name(v->type), d->name);
	if (v->kind == MU_ATTR_TYPE && v->type == MU_DT_INVALID)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "AttrValue has invalid DataType\n\t for attr '%s'", d->name);
	int64_t size = is_list ? v->n : d->kind == MU_ATTR_INT ? v->i : d->minimum;
	if (d->has_minimum && size < d->minimum)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%s for attr '%s' of %" PRId64 " must be at least minimum %" PRId64,
			       is_list ? "Length" : "Value", d->name, size, d->minimum);
	for (unsigned i = 0; d->is_int32 && i < (is_list ? v->n : 1) && !rc; i++)
		rc = check_int32(d, is_list ? v->is[i] : v->i, err);
	if (rc || d->allowed.kind == MU_ATTR_NONE)
		return rc;
	if (d->kind == MU_ATTR_STRING)
		return check_allowed(d, MU_DT_INVALID, v->s, err);
	for (unsigned i = 0; i < (is_list ? v->n : 1) && !rc; i++) {
		enum mu_dtype t = is_list ? v->types[i] : v->type;
		rc = check_allowed(d, t, mu_span_of(mu_dtype_name(t)), err);
	}
	return rc;
}

static int fail_missing(const struct mu_node *n, struct mu_err *err)
{
	MU_AUTO_BUF names = {0};
	unsigned count = 0;

	for (unsigned i = 0; i < n->def->n_attrs; i++)
		if (!mu_node_attr(n, n->def->attrs[i].name))
			mu_buf_printf(&names, "%s'%s'", count++ ? ", " : "", n->def->attrs[i].name);
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "NodeDef missing attr%s %s from Op<name=%s>; NodeDef: {{node %s}}",
		       count > 1 ? "s" : "", names.data, n->op, n->name);
}

int mu_op_check_attrs(const struct mu_node *n, struct mu_err *err)
{
	int rc = need_def(n, err);

	for (unsigned i = 0; !rc && i < n->def->n_attrs; i++) {
		const struct mu_attr_def *d = &n->def->attrs[i];
		const struct mu_attr *v = mu_node_attr(n, d->name);
		if (!v)
			return fail_missing(n, err);
		if (v != &d->value && (rc = check_attr(d, v, err)))
			mu_append(err, "\n\t");
	}
	return rc ? mu_append(err, "; NodeDef: {{node %s}}; Op<name=%s>", n->name, n->op) : 0;
}

/* True if the attribute determines the type or the number of an argument. */
static bool determines_args(const struct mu_arg_def *args, unsigned n, const char *attr)
{
	for (unsigned i = 0; i < n; i++)
		if ((args[i].type_attr && !strcmp(args[i].type_attr, attr)) ||
		    (args[i].number_attr && !strcmp(args[i].number_attr, attr)))
			return true;
	return false;
}

int mu_op_check_type_attrs(const struct mu_node *n, struct mu_err *err)
{
	int rc = need_def(n, err);

	for (unsigned i = 0; !rc && i < n->def->n_attrs; i++) {
		const struct mu_attr_def *d = &n->def->attrs[i];
		const struct mu_attr *v = mu_node_attr(n, d->name);
		if (!v && (determines_args(n->def->inputs, n->def->n_inputs, d->name) ||
			   determines_args(n->def->outputs, n->def->n_outputs, d->name)))
			return mu_fail(err, MU_NOT_FOUND,
				       "No attr named '%s' in NodeDef:\n\t [[{{node %s}}]]\n\t "
				       "[[%s]]",
				       d->name, n->name, n->name);
		if (v && v != &d->value && d->kind == MU_ATTR_TYPE && (rc = check_attr(d, v, err)))
			mu_append(err, "\n\t; NodeDef: {{node %s}}; Op<name=%s>", n->name, n->op);
	}
	return rc;
}

int mu_op_check_node(const struct mu_node *n, struct mu_arena *arena, struct mu_err *err)
{
	enum mu_dtype *want;
	unsigned count;
	int rc = mu_op_check_attrs(n, err);

	if (rc || (rc = mu_op_input_types(n, arena, &want, &count, err)))
		return rc;
	if (count != n->n_inputs)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "op %s needs %u inputs for its attributes, the node has %u", n->op,
			       count, n->n_inputs);
	for (unsigned i = 0; i < count; i++)
		if ((rc = check_edge(n, i, want[i], arena, err)))
			return rc;
	return 0;
}
