/* SPDX-License-Identifier: Apache-2.0 */
/* Optionals: a tuple of tensors, or no value. Gradients of branches use them. Composite tensors and
 * compressed elements are tuples too. An element does not leave its task, so CompressElement does
 * not compress it. */
#include "task/kernels/control/optional.h"

#include "lib/base/pb.h"
#include "task/kernels/control/sum.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/variant.h"

struct optional {
	struct mu_object object;
	bool has_value;
	uint64_t kind; /* of a composite tensor: the class of its TypeSpec */
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
static const struct mu_object_type composite_type = {.name = "CompositeTensorVariant",
						     .free = optional_free,
						     .zeros = optional_zeros,
						     .add = optional_add};
static const struct mu_object_type compressed_type = {.name = "compressed element",
						      .free = optional_free};

/* Allocates space for `capacity` tensors; none of them is set. */
static struct optional *optional_new(const struct mu_object_type *type, bool has_value,
				     unsigned capacity)
{
	struct optional *p = mu_xcalloc(1, sizeof *p + capacity * sizeof p->t[0]);

	mu_object_init(&p->object, type);
	p->has_value = has_value;
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

/* The result for an optional without a value has no value. */
static int optional_zeros(const struct mu_object *o, struct mu_object **out, struct mu_err *err)
{
	const struct optional *from = MU_CONTAINER(o, const struct optional, object);
	struct optional *p = optional_new(o->type, from->has_value, from->n);
	int rc = 0;

	p->kind = from->kind;
	for (unsigned i = 0; i < from->n && !(rc = zeros_of(&from->t[i], &p->t[i], err)); i++)
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

	if (x->has_value != y->has_value)
		return mu_invalid(
		    err, "Cannot add optionals because one has a value and the other doesn't.");
	if (x->n != y->n)
		return mu_invalid(err,
				  "Cannot add optionals because they have different numbers of "
				  "components (%u vs. %u).",
				  x->n, y->n);
	struct optional *p = optional_new(a->type, x->has_value, x->n);
	p->kind = x->kind;
	for (unsigned i = 0; i < x->n && !(rc = sum_of(&x->t[i], &y->t[i], &p->t[i], err)); i++)
		p->n++;
	return optional_finish(p, rc, out);
}

int optional_out(struct kernel_call *c, const struct mu_tensor *t, unsigned n, struct mu_err *err)
{
	struct optional *p = optional_new(&optional_type, t != NULL, t ? n : 0);

	for (; t && p->n < n; p->n++)
		p->t[p->n] = mu_tensor_ref(&t[p->n]);
	return variant_out(c, 0, &p->object, err);
}

static struct optional *inputs_as_tuple(struct kernel_call *c, const struct mu_object_type *type)
{
	struct optional *p = optional_new(type, c->n_in > 0, c->n_in);

	for (; p->n < c->n_in; p->n++)
		p->t[p->n] = mu_tensor_ref(kernel_in(c, p->n));
	return p;
}

KERNEL_RUN(optional_make, variant_out(c, 0, &inputs_as_tuple(c, &optional_type)->object, err))
KERNEL_RUN(compress, variant_out(c, 0, &inputs_as_tuple(c, &compressed_type)->object, err))

static int optional_in(const struct kernel_call *c, struct optional **out, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(variant_in(c, 0, &optional_type, &o, err));
	*out = MU_CONTAINER(o, struct optional, object);
	return 0;
}

static int has_value(struct kernel_call *c, struct mu_err *err)
{
	struct optional *p;

	MU_RETURN_IF_ERROR(optional_in(c, &p, err));
	return kernel_out_value(c, 0, MU_BOOL, &p->has_value, err);
}

static int get_value(struct kernel_call *c, struct mu_err *err)
{
	struct optional *p;

	MU_RETURN_IF_ERROR(optional_in(c, &p, err));
	if (!p->has_value)
		return mu_invalid(err, "The given optional does not have a value.");
	if (p->n != c->n_out)
		return mu_invalid(err, "The given optional has %u components, expected %u.", p->n,
				  c->n_out);
	for (unsigned i = 0; i < p->n; i++)
		kernel_out_take(c, i, mu_tensor_ref(&p->t[i]));
	return 0;
}

/* ---- compressed elements and composite tensors ---- */

/* Outputs the components, which must have the types of the attribute. */
static int output_components(struct kernel_call *c, const struct optional *p, const char *attr,
			     enum mu_code code, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, attr);

	if (p->n != c->n_out)
		return mu_fail(err, code, "the value has %u components, not %u", p->n, c->n_out);
	for (unsigned i = 0; i < p->n; i++)
		if (p->t[i].dtype != types->types[i])
			return mu_fail(err, code, "component %u is %s, not %s", i,
				       mu_dtype_name(p->t[i].dtype),
				       mu_dtype_name(types->types[i]));
	for (unsigned i = 0; i < p->n; i++)
		kernel_out_take(c, i, mu_tensor_ref(&p->t[i]));
	return 0;
}

static int uncompress(struct kernel_call *c, struct mu_err *err)
{
	struct mu_object *o;

	MU_RETURN_IF_ERROR(args_rank(c, 0, 0, err));
	MU_RETURN_IF_ERROR(variant_in(c, 0, &compressed_type, &o, err));
	return output_components(c, MU_CONTAINER(o, struct optional, object), "output_types",
				 MU_FAILED_PRECONDITION, err);
}

/* The class of the TypeSpec in a CompositeTensorVariantMetadata message. */
static int spec_class(const struct kernel_call *c, uint64_t *out, struct mu_err *err)
{
	enum { METADATA_TYPE_SPEC = 1, TYPE_SPEC_CLASS = 1 };
	const struct mu_attr *metadata = mu_node_attr(c->node, "metadata");
	struct mu_pb m = mu_pb_of(metadata->s);
	struct mu_pb_field f, g;

	*out = 0;
	while (mu_pb_next(&m, &f)) {
		struct mu_pb spec = mu_pb_of(f.bytes);
		while (f.number == METADATA_TYPE_SPEC && mu_pb_next(&spec, &g))
			if (g.number == TYPE_SPEC_CLASS)
				*out = g.value;
		m.bad |= spec.bad;
	}
	return m.bad ? mu_invalid(err, "Error parsing metadata") : 0;
}

static int composite_from_components(struct kernel_call *c, struct mu_err *err)
{
	uint64_t kind;

	MU_RETURN_IF_ERROR(spec_class(c, &kind, err));
	struct optional *p = inputs_as_tuple(c, &composite_type);
	p->kind = kind;
	return variant_out(c, 0, &p->object, err);
}

static int composite_to_components(struct kernel_call *c, struct mu_err *err)
{
	struct mu_object *o;
	uint64_t kind;

	MU_RETURN_IF_ERROR(spec_class(c, &kind, err));
	MU_RETURN_IF_ERROR(variant_in(c, 0, &composite_type, &o, err));
	const struct optional *p = MU_CONTAINER(o, struct optional, object);
	if (p->kind != kind)
		return mu_invalid(err,
				  "Expected a TypeSpec of class %llu, but `encoded` contains one "
				  "of class %llu",
				  (unsigned long long)kind, (unsigned long long)p->kind);
	return output_components(c, p, "Tcomponents", MU_INVALID_ARGUMENT, err);
}

static const struct kernel rows[] = {
    {"CompressElement", .run = compress},
    {"UncompressElement", .run = uncompress},
    {"CompositeTensorVariantFromComponents", .run = composite_from_components},
    {"CompositeTensorVariantToComponents", .run = composite_to_components},
    {"OptionalFromValue OptionalNone", .run = optional_make},
    {"OptionalHasValue", .run = has_value},
    {"OptionalGetValue", .run = get_value},
};
KERNEL_TABLE(control_optional, rows)
