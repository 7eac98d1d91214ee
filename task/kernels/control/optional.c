/* SPDX-License-Identifier: Apache-2.0 */
/* Optionals: a tuple of tensors, or none. Gradients of branches use them. */
#include "task/kernels/control/optional.h"

#include "task/kernels/control/sum.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"

struct optional {
	struct mu_object object;
	bool has;
	unsigned n;
	struct mu_tensor t[];
};

static void optional_free(struct mu_object *o)
{
	struct optional *p = MU_CONTAINER(o, struct optional, object);

	for (unsigned i = 0; i < p->n; i++)
		mu_tensor_unref(&p->t[i]);
	free(p);
}

static int optional_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err);
static int optional_add(const struct mu_object *a, const struct mu_object *b,
			struct mu_object **out, struct mu_err *err);
static const struct mu_object_type optional_type = {
    .name = "optional", .free = optional_free, .zeros = optional_zeros, .add = optional_add};

/* Allocates space for `capacity` tensors; none of them is set. */
static struct optional *optional_new(bool has, unsigned capacity)
{
	struct optional *p = mu_xcalloc(1, sizeof *p + capacity * sizeof p->t[0]);

	mu_object_init(&p->object, &optional_type);
	p->has = has;
	return p;
}

static int optional_finish(struct optional *p, int rc, struct mu_object **out)
{
	if (rc)
		mu_object_unref(&p->object);
	else
		*out = &p->object;
	return rc;
}

static int zeros_of(const struct mu_tensor *t, struct mu_tensor *out, struct mu_err *err)
{
	if (t->dtype == MU_VARIANT)
		return variant_zeros(out, t, err);

	MU_RETURN_IF_ERROR(mu_tensor_new(out, t->dtype, &t->shape, err));
	elems_zero(t->dtype, out->data, 0, t->shape.count);
	return 0;
}

/* Nothing stays nothing. */
static int optional_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err)
{
	const struct optional *of = MU_CONTAINER(o, const struct optional, object);
	struct optional *p = optional_new(of->has, of->n);
	int rc = 0;

	for (unsigned i = 0; i < of->n && !(rc = zeros_of(&of->t[i], &p->t[i], err)); i++)
		p->n++;
	return optional_finish(p, rc, out);
}

static int sum_of(const struct mu_tensor *a, const struct mu_tensor *b, struct mu_tensor *out,
		  struct mu_err *err)
{
	if (a->dtype == MU_VARIANT && b->dtype == MU_VARIANT)
		return variant_add(out, a, b, err);
	struct mu_tensor sum = mu_tensor_ref(a);
	int rc = sum_add(&sum, b, err);

	if (rc)
		mu_tensor_unref(&sum);
	else
		*out = sum;
	return rc;
}

static int optional_add(const struct mu_object *a, const struct mu_object *b,
			struct mu_object **out, struct mu_err *err)
{
	const struct optional *x = MU_CONTAINER(a, const struct optional, object);
	const struct optional *y = MU_CONTAINER(b, const struct optional, object);
	int rc = 0;

	if (x->has != y->has)
		return mu_invalid(
		    err, "Cannot add optionals because one has a value and the other doesn't.");
	if (x->n != y->n)
		return mu_invalid(err,
				  "Cannot add optionals because they have different numbers of "
				  "components (%u vs. %u).",
				  x->n, y->n);
	struct optional *p = optional_new(x->has, x->n);
	for (unsigned i = 0; i < x->n && !(rc = sum_of(&x->t[i], &y->t[i], &p->t[i], err)); i++)
		p->n++;
	return optional_finish(p, rc, out);
}

int optional_out(struct kernel_call *c, const struct mu_tensor *t, unsigned n, struct mu_err *err)
{
	struct optional *p = optional_new(t != NULL, t ? n : 0);

	for (; t && p->n < n; p->n++)
		p->t[p->n] = mu_tensor_ref(&t[p->n]);
	return variant_out(c, 0, &p->object, err);
}

static int optional_make(struct kernel_call *c, bool has, struct mu_err *err)
{
	struct optional *p = optional_new(has, c->n_in);

	for (; p->n < c->n_in; p->n++)
		p->t[p->n] = mu_tensor_ref(kernel_in(c, p->n));
	return variant_out(c, 0, &p->object, err);
}

KERNEL_RUN(from_value, optional_make(c, true, err))
KERNEL_RUN(none, optional_make(c, false, err))

static int optional_take(const struct kernel_call *c, struct optional **out, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &optional_type, &o, err));
	*out = MU_CONTAINER(o, struct optional, object);
	return 0;
}

static int has_value(struct kernel_call *c, struct mu_err *err)
{
	struct optional *p;
	struct mu_tensor t;
	int rc = optional_take(c, &p, err);

	if (!rc && !(rc = mu_tensor_scalar(&t, MU_BOOL, &p->has, err)))
		kernel_out_take(c, 0, t);
	return rc;
}

static int get_value(struct kernel_call *c, struct mu_err *err)
{
	struct optional *p;

	MU_RETURN_IF_ERROR(optional_take(c, &p, err));
	if (!p->has)
		return mu_invalid(err, "The given optional does not have a value.");
	if (p->n != c->n_out)
		return mu_invalid(err, "The given optional has %u components, expected %u.", p->n,
				  c->n_out);
	for (unsigned i = 0; i < p->n; i++)
		kernel_out_take(c, i, mu_tensor_ref(&p->t[i]));
	return 0;
}

static const struct kernel rows[] = {
    {"OptionalFromValue", .run = from_value},
    {"OptionalNone", .run = none},
    {"OptionalHasValue", .run = has_value},
    {"OptionalGetValue", .run = get_value},
};
KERNEL_TABLE(control_optional, rows)
