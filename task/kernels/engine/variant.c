/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/variant.h"

#include "task/kernels/engine/args.h"

int variant_in(const struct kernel_call *c, unsigned i, const struct mu_object_type *type,
	       struct mu_object **out, struct mu_err *err)
{
	const struct mu_tensor *t = i < c->n_in ? kernel_in(c, i) : NULL;
	struct mu_object *o = t && t->dtype == MU_VARIANT && t->shape.count == 1
				  ? *MU_DATA(struct mu_object *, t)
				  : NULL;

	if (!o || o->type != type)
		return mu_invalid(err, "Input %u must be a %s, not %s", i, type->name,
				  o ? o->type->name : "something else");
	*out = o;
	return 0;
}

int variant_tensor(struct mu_tensor *out, struct mu_object *o, struct mu_err *err)
{
	struct mu_shape scalar = mu_shape_scalar();
	int rc = mu_tensor_new(out, MU_VARIANT, &scalar, err);

	if (rc)
		mu_object_unref(o);
	else
		*MU_DATA(struct mu_object *, out) = o;
	return rc;
}

int variant_out(struct kernel_call *c, unsigned i, struct mu_object *o, struct mu_err *err)
{
	struct mu_tensor t;

	MU_RETURN_IF_ERROR(variant_tensor(&t, o, err));
	kernel_out_take(c, i, t);
	return 0;
}

struct box {
	struct mu_object object;
	struct mu_tensor t;
};

static void box_free(struct mu_object *o)
{
	struct box *b = MU_CONTAINER(o, struct box, object);

	mu_tensor_unref(&b->t);
	free(b);
}

static const struct mu_object_type box_type = {.name = "tensor", .free = box_free};

struct mu_object *variant_box(const struct mu_tensor *t)
{
	struct box *b = MU_NEW(struct box);

	mu_object_init(&b->object, &box_type);
	b->t = mu_tensor_ref(t);
	return &b->object;
}

int variant_box_ragged(const struct mu_tensor *parts, unsigned n, struct mu_object **out,
		       struct mu_err *err)
{
	MU_AUTO_TENSOR boxes = {0};
	struct mu_shape vector = mu_shape_vec(n);

	MU_RETURN_IF_ERROR(mu_tensor_new(&boxes, MU_VARIANT, &vector, err));
	for (unsigned i = 0; i < n; i++)
		MU_DATA(struct mu_object *, &boxes)[i] = variant_box(&parts[i]);
	*out = variant_box(&boxes);
	return 0;
}

const struct mu_tensor *variant_unbox(const struct mu_object *o)
{
	return o && o->type == &box_type ? &MU_CONTAINER(o, const struct box, object)->t : NULL;
}

bool variant_is_sole(const struct kernel_call *c, unsigned i)
{
	const struct mu_tensor *t = kernel_in(c, i);

	return !c->in[i].is_constant && mu_tensor_is_sole(t) &&
	       atomic_load_explicit(&(*MU_DATA(struct mu_object *, t))->refs,
				    memory_order_acquire) == 1;
}

static int fail_unsupported(const struct mu_object *o, const char *op, struct mu_err *err)
{
	return mu_fail(err, MU_UNIMPLEMENTED, "%s of a %s means nothing", op,
		       o ? o->type->name : "variant that holds nothing");
}

/* Clients may nest objects to any depth, and share an object any number of times.  The outermost
 * call of a thread resets the count of objects. */
enum { MAX_NESTING = 1000, MAX_OBJECTS = 1 << 23 };
static _Thread_local int64_t nesting, objects;

int variant_count(int64_t n, struct mu_err *err)
{
	objects = nesting ? objects + n : n;
	if (nesting == MAX_NESTING || objects > MAX_OBJECTS)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED,
			       "variants are nested over %d deep or hold over %d objects",
			       MAX_NESTING, MAX_OBJECTS);
	return 0;
}

int variant_zeros(struct mu_tensor *out, const struct mu_tensor *t, struct mu_err *err)
{
	MU_AUTO_TENSOR z = {0};

	MU_RETURN_IF_ERROR(variant_count(t->shape.count, err));
	nesting++;
	int rc = mu_tensor_new(&z, MU_VARIANT, &t->shape, err);
	for (int64_t i = 0; i < t->shape.count && !rc; i++) {
		const struct mu_object *o = MU_DATA(struct mu_object *, t)[i];
		rc = o && o->type->zeros
			 ? o->type->zeros(o, &MU_DATA(struct mu_object *, &z)[i], err)
			 : fail_unsupported(o, "ZerosLike", err);
	}
	nesting--;
	if (!rc)
		*out = mu_tensor_ref(&z);
	return rc;
}

int variant_add(struct mu_tensor *out, const struct mu_tensor *a, const struct mu_tensor *b,
		struct mu_err *err)
{
	MU_AUTO_TENSOR sum = {0};

	if (!mu_shape_eq(&a->shape, &b->shape))
		return mu_invalid(err, "Shape mismatch: expected %s, got %s",
				  mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	MU_RETURN_IF_ERROR(variant_count(a->shape.count, err));
	nesting++;
	int rc = mu_tensor_new(&sum, MU_VARIANT, &a->shape, err);
	for (int64_t i = 0; i < a->shape.count && !rc; i++) {
		const struct mu_object *x = MU_DATA(struct mu_object *, a)[i];
		const struct mu_object *y = MU_DATA(struct mu_object *, b)[i];
		rc = x && y && x->type == y->type && x->type->add
			 ? x->type->add(x, y, &MU_DATA(struct mu_object *, &sum)[i], err)
			 : fail_unsupported(x, "AddN", err);
	}
	nesting--;
	if (!rc)
		*out = mu_tensor_ref(&sum);
	return rc;
}

int variant_add_all(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor sum = mu_tensor_ref(kernel_in(c, 0)), next;

	for (unsigned i = 1; i < c->n_in; i++) {
		int rc = args_same_shape(c, 0, i, err);
		if (rc || (rc = variant_add(&next, &sum, kernel_in(c, i), err))) {
			mu_tensor_unref(&sum);
			return rc;
		}
		mu_tensor_unref(&sum);
		sum = next;
	}
	kernel_out_take(c, 0, sum);
	return 0;
}
