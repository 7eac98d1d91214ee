/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/graph/attr.h"

static void *dup_array(struct mu_arena *a, const void *from, size_t element_bytes, unsigned n)
{
	void *to = mu_arena_alloc(a, element_bytes * n);

	if (n)
		memcpy(to, from, element_bytes * n);
	return to;
}

static struct mu_span dup_span(struct mu_arena *a, struct mu_span s)
{
	return (struct mu_span){mu_arena_strndup(a, s.data, s.len), s.len};
}

static void copy_func(struct mu_func *to, const struct mu_func *from, struct mu_arena *a)
{
	to->name = mu_arena_strdup(a, from->name);
	to->n_attrs = from->n_attrs;
	to->attrs = MU_ARENA_ARRAY(a, struct mu_node_attr, from->n_attrs);
	for (unsigned i = 0; i < from->n_attrs; i++) {
		to->attrs[i].name = mu_arena_strdup(a, from->attrs[i].name);
		mu_attr_copy(&to->attrs[i].value, &from->attrs[i].value, a);
	}
}

static void copy_list(struct mu_attr *to, const struct mu_attr *from, struct mu_arena *a)
{
	unsigned n = from->n;

	switch ((int)from->kind - MU_ATTR_LIST) {
	case MU_ATTR_STRING:
		to->ss = MU_ARENA_ARRAY(a, struct mu_span, n);
		for (unsigned i = 0; i < n; i++)
			to->ss[i] = dup_span(a, from->ss[i]);
		break;
	case MU_ATTR_INT:
		to->is = dup_array(a, from->is, sizeof *from->is, n);
		break;
	case MU_ATTR_FLOAT:
		to->fs = dup_array(a, from->fs, sizeof *from->fs, n);
		break;
	case MU_ATTR_BOOL:
		to->bs = dup_array(a, from->bs, sizeof *from->bs, n);
		break;
	case MU_ATTR_TYPE:
		to->types = dup_array(a, from->types, sizeof *from->types, n);
		break;
	case MU_ATTR_SHAPE:
		to->shapes = dup_array(a, from->shapes, sizeof *from->shapes, n);
		break;
	case MU_ATTR_TENSOR:
		to->tensors = MU_ARENA_ARRAY(a, struct mu_tensor, n);
		for (unsigned i = 0; i < n; i++)
			to->tensors[i] = mu_tensor_ref(&from->tensors[i]);
		break;
	case MU_ATTR_FUNC:
		to->funcs = MU_ARENA_ARRAY(a, struct mu_func, n);
		for (unsigned i = 0; i < n; i++)
			copy_func(&to->funcs[i], &from->funcs[i], a);
		break;
	default:
		break;
	}
}

void mu_attr_copy(struct mu_attr *to, const struct mu_attr *from, struct mu_arena *a)
{
	struct mu_attr v = *from;

	switch ((int)from->kind) {
	case MU_ATTR_STRING:
	case MU_ATTR_PLACEHOLDER:
		v.s = dup_span(a, from->s);
		break;
	case MU_ATTR_SHAPE:
		v.shape = dup_array(a, from->shape, sizeof *from->shape, 1);
		break;
	case MU_ATTR_TENSOR:
		v.tensor = MU_ARENA_NEW(a, struct mu_tensor);
		*v.tensor = mu_tensor_ref(from->tensor);
		break;
	case MU_ATTR_FUNC:
		v.func = MU_ARENA_NEW(a, struct mu_func);
		copy_func(v.func, from->func, a);
		break;
	default:
		copy_list(&v, from, a);
	}
	*to = v;
}

static void fini_func(struct mu_func *f)
{
	for (unsigned i = 0; i < f->n_attrs; i++)
		mu_attr_fini(&f->attrs[i].value);
}

void mu_attr_fini(struct mu_attr *v)
{
	if (v->kind == MU_ATTR_TENSOR)
		mu_tensor_unref(v->tensor);
	else if (v->kind == MU_ATTR_FUNC)
		fini_func(v->func);
	else if ((int)v->kind == MU_ATTR_LIST + MU_ATTR_TENSOR)
		for (unsigned i = 0; i < v->n; i++)
			mu_tensor_unref(&v->tensors[i]);
	else if ((int)v->kind == MU_ATTR_LIST + MU_ATTR_FUNC)
		for (unsigned i = 0; i < v->n; i++)
			fini_func(&v->funcs[i]);
	v->kind = MU_ATTR_NONE;
}
