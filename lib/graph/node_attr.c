/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of nodes. */
#include <string.h>

#include "lib/graph/graph.h"

static struct mu_attr *own_attr(const struct mu_node *n, const char *name)
{
	for (unsigned i = n->n_attrs;
	     i--;) /* the last of several attributes with one name is valid */
		if (strcmp(n->attrs[i].name, name) == 0)
			return &n->attrs[i].value;
	return NULL;
}

void mu_node_set_attr(struct mu_graph *g, struct mu_node *n, const char *name,
		      const struct mu_attr *value)
{
	struct mu_attr *v = own_attr(n, name), copy;

	mu_attr_copy(&copy, value, &g->arena);
	if (v) {
		mu_attr_fini(v);
		*v = copy;
		return;
	}
	struct mu_node_attr *grown =
	    MU_ARENA_ARRAY(&g->arena, struct mu_node_attr, (size_t)n->n_attrs + 1);
	if (n->n_attrs)
		memcpy(grown, n->attrs, n->n_attrs * sizeof *grown);
	grown[n->n_attrs].name = mu_arena_strdup(&g->arena, name);
	grown[n->n_attrs].value = copy;
	n->attrs = grown;
	n->n_attrs++;
}

void mu_node_set_int(struct mu_graph *g, struct mu_node *n, const char *name, int64_t value)
{
	mu_node_set_attr(g, n, name, &(struct mu_attr){.kind = MU_ATTR_INT, .i = value});
}

void mu_node_set_bool(struct mu_graph *g, struct mu_node *n, const char *name, bool value)
{
	mu_node_set_attr(g, n, name, &(struct mu_attr){.kind = MU_ATTR_BOOL, .b = value});
}

void mu_node_set_string(struct mu_graph *g, struct mu_node *n, const char *name, const char *value)
{
	struct mu_attr a = {.kind = MU_ATTR_STRING, .s = mu_span_of(value)};

	mu_node_set_attr(g, n, name, &a);
}

void mu_node_set_type(struct mu_graph *g, struct mu_node *n, const char *name, enum mu_dtype type)
{
	struct mu_attr a = {.kind = MU_ATTR_TYPE, .type = mu_dtype_base(type)};

	mu_node_set_attr(g, n, name, &a);
}

const struct mu_attr *mu_node_attr(const struct mu_node *n, const char *name)
{
	const struct mu_attr *v = own_attr(n, name);
	const struct mu_attr_def *d;

	if (v || !n->def)
		return v;
	d = mu_op_attr(n->def, name);
	return d && d->has_default ? &d->value : NULL;
}

/* Returns NULL with err if the attribute is missing or has another kind. */
static const struct mu_attr *attr_of(const struct mu_node *n, const char *name,
				     enum mu_attr_kind kind, const char *kind_name,
				     struct mu_err *err)
{
	const struct mu_attr *v = mu_node_attr(n, name);

	if (v && v->kind == kind)
		return v;
	if (v)
		mu_fail(err, MU_INVALID_ARGUMENT, "attribute '%s' of %s is not of kind %s", name,
			n->op, kind_name);
	else
		mu_fail(err, MU_INVALID_ARGUMENT, "%s has no attribute '%s'", n->op, name);
	return NULL;
}

int mu_node_attr_int(const struct mu_node *n, const char *name, int64_t *out, struct mu_err *err)
{
	const struct mu_attr *v = attr_of(n, name, MU_ATTR_INT, "int", err);

	if (!v)
		return -MU_INVALID_ARGUMENT;
	*out = v->i;
	return 0;
}

int mu_node_attr_float(const struct mu_node *n, const char *name, float *out, struct mu_err *err)
{
	const struct mu_attr *v = attr_of(n, name, MU_ATTR_FLOAT, "float", err);

	if (!v)
		return -MU_INVALID_ARGUMENT;
	*out = v->f;
	return 0;
}

int mu_node_attr_bool(const struct mu_node *n, const char *name, bool *out, struct mu_err *err)
{
	const struct mu_attr *v = attr_of(n, name, MU_ATTR_BOOL, "bool", err);

	if (!v)
		return -MU_INVALID_ARGUMENT;
	*out = v->b;
	return 0;
}

int mu_node_attr_type(const struct mu_node *n, const char *name, enum mu_dtype *out,
		      struct mu_err *err)
{
	const struct mu_attr *v = attr_of(n, name, MU_ATTR_TYPE, "type", err);

	if (!v)
		return -MU_INVALID_ARGUMENT;
	*out = v->type;
	return 0;
}

int mu_node_attr_string(const struct mu_node *n, const char *name, const char **out,
			struct mu_err *err)
{
	const struct mu_attr *v = attr_of(n, name, MU_ATTR_STRING, "string", err);

	if (!v)
		return -MU_INVALID_ARGUMENT;
	*out = v->s.data;
	return 0;
}
