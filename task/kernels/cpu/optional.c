/* SPDX-License-Identifier: Apache-2.0 */
/* Optionals: some tensors, or nothing.  Gradients of branches carry them. */
#include "task/kernels/args.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/variant.h"

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

static const struct mu_object_type optional_type = {.name = "optional", .free = optional_free};

static int make(struct kernel_call *c, bool has, struct mu_err *err)
{
	struct optional *p = mu_xcalloc(1, sizeof *p + c->n_in * sizeof p->t[0]);

	mu_object_init(&p->object, &optional_type);
	p->has = has;
	for (; p->n < c->n_in; p->n++)
		p->t[p->n] = mu_tensor_ref(kernel_in(c, p->n));
	return variant_out(c, 0, &p->object, err);
}

static int from_value(struct kernel_call *c, struct mu_err *err)
{
	return make(c, true, err);
}

static int none(struct kernel_call *c, struct mu_err *err)
{
	return make(c, false, err);
}

static int take(const struct kernel_call *c, struct optional **out, struct mu_err *err)
{
	struct mu_object *o;
	int rc = variant_in(c, 0, &optional_type, &o, err);

	if (!rc)
		*out = MU_CONTAINER(o, struct optional, object);
	return rc;
}

static int has_value(struct kernel_call *c, struct mu_err *err)
{
	struct optional *p;
	struct mu_tensor t;
	int rc = take(c, &p, err);

	if (!rc && !(rc = mu_tensor_scalar(&t, MU_BOOL, &p->has, err)))
		kernel_out_take(c, 0, t);
	return rc;
}

static int get_value(struct kernel_call *c, struct mu_err *err)
{
	struct optional *p;
	int rc = take(c, &p, err);

	if (rc)
		return rc;
	if (!p->has)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "The given optional does not have a value.");
	if (p->n != c->n_out)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "The given optional has %u components, expected %u.", p->n,
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
KERNEL_TABLE(optional, rows)
