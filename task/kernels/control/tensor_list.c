/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/control/tensor_list.h"

#include <string.h>

#include "task/device/gpu.h"
#include "task/kernels/control/sum.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/move.h"

static void list_free(struct mu_object *o)
{
	struct list *l = MU_CONTAINER(o, struct list, object);

	for (int64_t i = 0; i < l->n; i++)
		mu_tensor_unref(&l->items[i]);
	free(l->items);
	free(l);
}

static int list_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err);
static int list_add(const struct mu_object *a, const struct mu_object *b, struct mu_object **out,
		    struct mu_err *err);
static const struct mu_object_type list_type = {
    .name = "list of tensors", .free = list_free, .zeros = list_zeros, .add = list_add};

void list_set_length(struct list *l, int64_t n)
{
	for (int64_t i = n; i < l->n; i++)
		mu_tensor_unref(&l->items[i]);
	if (n > l->cap) {
		int64_t cap = n > 2 * l->cap ? n : 2 * l->cap;
		l->items = mu_xrealloc(l->items, (size_t)cap * sizeof *l->items);
		l->cap = cap;
	}
	for (int64_t i = l->n; i < n; i++)
		l->items[i] = (struct mu_tensor){0};
	l->n = n;
}

struct list *list_new(enum mu_dtype type, const struct mu_pshape *shape, int64_t n)
{
	struct list *l = MU_NEW(struct list);

	mu_object_init(&l->object, &list_type);
	l->type = type;
	l->shape = *shape;
	l->max_elements = -1;
	list_set_length(l, n);
	return l;
}

struct list *list_copy(const struct list *from)
{
	struct list *l = list_new(from->type, &from->shape, from->n);

	l->max_elements = from->max_elements;
	for (int64_t i = 0; i < l->n; i++)
		l->items[i] = mu_tensor_ref(&from->items[i]);
	return l;
}

/* Makes zeros on the device of `like`. */
static int item_zeros(struct mu_tensor *t, const struct mu_tensor *like, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(like);
	int rc = g ? gpu_tensor_new(g, like->dtype, &like->shape, "a list", t, err)
		   : mu_tensor_new(t, like->dtype, &like->shape, err);

	if (!rc && (rc = move_fill(t, NULL, err)))
		mu_tensor_unref(t);
	return rc;
}

/* An unset element remains unset. */
static int list_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err)
{
	const struct list *from = MU_CONTAINER(o, const struct list, object);

	MU_RETURN_IF_ERROR(variant_count(from->n, err));
	struct list *l = list_copy(from);
	int rc = 0;

	for (int64_t i = 0; i < l->n && !rc; i++) {
		struct mu_tensor z;
		if (!mu_tensor_is_set(&l->items[i]))
			continue;
		rc = l->type == MU_VARIANT ? variant_zeros(&z, &l->items[i], err)
					   : item_zeros(&z, &l->items[i], err);
		if (rc)
			break;
		mu_tensor_unref(&l->items[i]);
		l->items[i] = z;
	}
	if (rc)
		mu_object_unref(&l->object);
	else
		*out = &l->object;
	return rc;
}

static int list_add(const struct mu_object *a, const struct mu_object *b, struct mu_object **out,
		    struct mu_err *err)
{
	const struct list *y = MU_CONTAINER(b, const struct list, object);
	const struct list *x = MU_CONTAINER(a, const struct list, object);

	MU_RETURN_IF_ERROR(variant_count(x->n, err));
	struct list *l = list_copy(x);
	int rc = 0;

	if (l->n != y->n || l->type != y->type)
		rc = mu_invalid(err,
				"Trying to add two lists of tensors with different lengths. One is "
				"%lld and other is %lld",
				(long long)l->n, (long long)y->n);
	for (int64_t i = 0; i < l->n && !rc; i++) {
		struct mu_tensor sum;
		if (!mu_tensor_is_set(&y->items[i]))
			continue;
		if (l->type != MU_VARIANT) {
			rc = sum_add(&l->items[i], &y->items[i], err);
		} else if (!(rc = variant_add(&sum, &l->items[i], &y->items[i], err))) {
			mu_tensor_unref(&l->items[i]);
			l->items[i] = sum;
		}
	}
	if (rc)
		mu_object_unref(&l->object);
	else
		*out = &l->object;
	return rc;
}

/* ---- inputs and outputs ---- */

int list_get_mutable(struct kernel_call *c, struct list **out, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &list_type, &o, err));
	struct list *l = MU_CONTAINER(o, struct list, object);
	if (variant_is_sole(c, 0)) {
		*MU_DATA(struct mu_object *, kernel_in(c, 0)) = NULL; /* *out takes the reference */
		*out = l;
	} else {
		*out = list_copy(l);
	}
	return 0;
}

int list_output(struct kernel_call *c, struct list *l, int rc, struct mu_err *err)
{
	if (!rc)
		return variant_out(c, 0, &l->object, err);
	mu_object_unref(&l->object);
	return rc;
}

int list_get(const struct kernel_call *c, const struct list **out, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &list_type, &o, err));
	*out = MU_CONTAINER(o, struct list, object);
	enum mu_dtype want = args_attr_type(c->node, "element_dtype", (*out)->type);
	if (want != (*out)->type)
		return mu_invalid(err, "Invalid data types; list elements %s but tried to use %s",
				  mu_dtype_name((*out)->type), mu_dtype_name(want));
	return 0;
}

int list_get_at(const struct kernel_call *c, unsigned i, int64_t at, const struct list **out,
		struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, i);
	struct mu_object *o = t->dtype == MU_VARIANT ? MU_DATA(struct mu_object *, t)[at] : NULL;

	if (!o || o->type != &list_type)
		return mu_invalid(err, "Input %u is not a list at index %lld. Saw: '%s'", i,
				  (long long)at, o ? o->type->name : "nothing");
	*out = MU_CONTAINER(o, struct list, object);
	enum mu_dtype want = args_attr_type(c->node, "element_dtype", (*out)->type);
	if (want != (*out)->type)
		return mu_invalid(err, "Invalid data types; list elements %s but tried to use %s",
				  mu_dtype_name((*out)->type), mu_dtype_name(want));
	return 0;
}

int list_element_shape(const struct kernel_call *c, unsigned i, struct mu_pshape *out,
		       struct mu_err *err)
{
	int rc = args_ints(c, i, out->dim, MU_MAX_RANK, &out->rank, err);

	if (!rc && kernel_in(c, i)->shape.rank == 0) {
		if (out->dim[0] != -1)
			return mu_invalid(err, "The only valid scalar shape tensor is the fully "
					       "unknown shape specified as -1.");
		out->rank = -1;
	}
	for (int d = 0; !rc && d < out->rank; d++)
		if (out->dim[d] < -1)
			return mu_invalid(err, "dimension %d is %lld", d, (long long)out->dim[d]);
	return rc;
}

int list_merge_shape(struct mu_pshape *a, const struct mu_pshape *b, struct mu_err *err)
{
	if (b->rank < 0)
		return 0;
	if (a->rank < 0) {
		*a = *b;
		return 0;
	}
	bool fits = a->rank == b->rank;
	for (int d = 0; fits && d < a->rank; d++) {
		if (a->dim[d] < 0)
			a->dim[d] = b->dim[d];
		fits = b->dim[d] < 0 || a->dim[d] == b->dim[d];
	}
	return fits ? 0
		    : mu_invalid(err,
				 "Incompatible shapes: %s and %s: Tried to stack elements from a "
				 "list with another element_shape",
				 mu_pshape_str(a), mu_pshape_str(b));
}

struct mu_pshape list_pshape(const struct mu_shape *s)
{
	struct mu_pshape p = {.rank = s->rank};

	memcpy(p.dim, s->dim, sizeof p.dim);
	return p;
}

int list_whole_shape(const struct kernel_call *c, unsigned i, const struct list *l,
		     const struct mu_tensor *indices, struct mu_shape *out, struct mu_err *err)
{
	struct mu_pshape p;

	MU_RETURN_IF_ERROR(list_element_shape(c, i, &p, err));
	MU_RETURN_IF_ERROR(list_merge_shape(&p, &l->shape, err));
	for (int64_t k = 0; k < (indices ? indices->shape.count : l->n); k++) {
		int64_t index = indices ? mu_tensor_int(indices, k) : k;
		if (index >= 0 && index < l->n && mu_tensor_is_set(&l->items[index])) {
			struct mu_pshape have = list_pshape(&l->items[index].shape);
			MU_RETURN_IF_ERROR(list_merge_shape(&p, &have, err));
			break;
		}
	}
	bool is_defined = p.rank >= 0;
	for (int d = 0; is_defined && d < p.rank; d++)
		is_defined = p.dim[d] >= 0;
	if (!is_defined)
		return mu_invalid(err,
				  "Tried to stack elements of an empty list with non-fully-defined "
				  "element_shape: %s",
				  mu_pshape_str(&p));
	return mu_shape_set(out, p.rank, p.dim, err);
}

int list_check_item(const struct list *l, const struct mu_tensor *t, struct mu_err *err)
{
	if (t->dtype != l->type)
		return mu_invalid(err,
				  "Invalid data types; list elements %s but tried to append %s",
				  mu_dtype_name(l->type), mu_dtype_name(t->dtype));
	if (l->shape.rank >= 0 && !mu_shape_matches(&t->shape, &l->shape))
		return mu_invalid(err,
				  "Tried to append a tensor with incompatible shape to a list. Op "
				  "element shape: %s list shape: %s",
				  mu_shape_str(&t->shape), mu_pshape_str(&l->shape));
	return 0;
}
