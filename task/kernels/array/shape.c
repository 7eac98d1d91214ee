/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that read or change shapes, and BroadcastTo. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"

/* Outputs n numbers as an int32 or int64 vector, or one number as a scalar. */
static int put_ints(struct kernel_call *c, unsigned o, enum mu_dtype type, const int64_t *v, int n,
		    bool scalar, struct mu_err *err)
{
	struct mu_shape shape = scalar ? mu_shape_scalar() : mu_shape_vec(n);
	struct mu_tensor *out;

	int rc = kernel_out(c, o, type, &shape, &out, err);
	for (int i = 0; i < n && !rc; i++) {
		if (type == MU_INT64)
			MU_DATA(int64_t, out)[i] = v[i];
		else if (v[i] > INT32_MAX)
			rc = mu_invalid(err, "%lld does not fit int32", (long long)v[i]);
		else
			MU_DATA(int32_t, out)[i] = (int32_t)v[i];
	}
	return rc;
}

static int shape_n(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype type = args_attr_type(c->node, "out_type", MU_INT32);

	for (unsigned i = 0; i < c->n_in && i < c->n_out; i++) {
		const struct mu_shape *s = &kernel_in(c, i)->shape;
		MU_RETURN_IF_ERROR(put_ints(c, i, type, s->dim, s->rank, false, err));
	}
	return 0;
}

KERNEL_RUN(shape_size, put_ints(c, 0, args_attr_type(c->node, "out_type", MU_INT32),
				&kernel_in(c, 0)->shape.count, 1, true, err))

static int rank(struct kernel_call *c, struct mu_err *err)
{
	int64_t n = kernel_in(c, 0)->shape.rank;

	return put_ints(c, 0, MU_INT32, &n, 1, true, err);
}

static void take_reshaped(struct kernel_call *c, const struct mu_shape *s)
{
	kernel_out_take(c, 0, mu_tensor_reshaped(kernel_in(c, 0), s));
}

/* Computes the requested size that is -1; known_size is the product of the others, without zeros.
 * If a requested size is 0, zeros in the input shape are ignored too: [0, 4, 6] becomes [0, 24]. */
static int missing_size(const struct mu_shape *in, bool has_zero, int64_t known_size, int64_t *out,
			struct mu_err *err)
{
	int64_t count = 1;

	for (int i = 0; i < in->rank; i++)
		if (in->dim[i] || !has_zero)
			if (__builtin_mul_overflow(count, in->dim[i], &count))
				return mu_invalid(err, "the shape is too large");
	if (!has_zero && count % known_size)
		return mu_invalid(err,
				  "Input to reshape is a tensor with %lld values, but the "
				  "requested shape requires a multiple of %lld",
				  (long long)count, (long long)known_size);
	*out = count / known_size;
	return 0;
}

static int reshape(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0);
	int64_t dims[MU_MAX_RANK], known_size = 1;
	struct mu_shape shape;
	bool has_zero = false;
	int n, free_dim = -1;

	MU_RETURN_IF_ERROR(args_ints(c, 1, dims, MU_MAX_RANK, &n, err));
	for (int i = 0; i < n; i++) {
		if (dims[i] == -1 && free_dim >= 0)
			return mu_invalid(err, "Only one input size may be -1, not both %d and %d",
					  free_dim, i);
		if (dims[i] < -1)
			return mu_invalid(err, "Size %d must be non-negative, not %lld", i,
					  (long long)dims[i]);
		if (dims[i] == -1)
			free_dim = i;
		else if (dims[i] == 0)
			has_zero = true;
		else if (__builtin_mul_overflow(known_size, dims[i], &known_size))
			return mu_invalid(err, "the requested shape is too large");
	}
	if (free_dim >= 0)
		MU_RETURN_IF_ERROR(
		    missing_size(&t->shape, has_zero, known_size, &dims[free_dim], err));
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, n, dims, err));
	if (shape.count != t->shape.count)
		return mu_invalid(err,
				  "Input to reshape is a tensor with %lld values, but the "
				  "requested shape has %lld",
				  (long long)t->shape.count, (long long)shape.count);
	take_reshaped(c, &shape);
	return 0;
}

static int expand_dims(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	struct mu_shape shape;
	int64_t axis;

	if (kernel_in(c, 1)->shape.count != 1)
		return mu_invalid(err, "'dim' must be a tensor with a single value");
	axis = mu_tensor_int(kernel_in(c, 1), 0);
	if (axis < -in->rank - 1 || axis > in->rank)
		return mu_invalid(err,
				  "Tried to expand dim index %lld for tensor with %d dimensions.",
				  (long long)axis, in->rank);
	if (axis < 0)
		axis += in->rank + 1;
	MU_RETURN_IF_ERROR(mu_shape_splice(&shape, in, (int)axis, 0, 1, &(int64_t){1}, err));
	take_reshaped(c, &shape);
	return 0;
}

static int squeeze(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	struct mu_shape shape = mu_shape_scalar();
	int64_t axes[MU_MAX_RANK];
	bool drop[MU_MAX_RANK] = {false};
	int n = args_attr_ints(c->node, "squeeze_dims", axes, MU_MAX_RANK), rc = 0;

	if (n < 0)
		return mu_invalid(err, "more squeeze_dims than dimensions");
	for (int i = 0; i < n; i++) {
		if (axes[i] < -in->rank || axes[i] >= in->rank)
			return mu_invalid(
			    err, "Tried to squeeze dim index %lld for tensor with %d dimensions.",
			    (long long)axes[i], in->rank);
		int a = (int)(axes[i] < 0 ? axes[i] + in->rank : axes[i]);
		if (in->dim[a] != 1)
			return mu_invalid(
			    err, "Can not squeeze dim[%d], expected a dimension of 1, got %lld", a,
			    (long long)in->dim[a]);
		drop[a] = true;
	}
	for (int i = 0; i < in->rank && !rc; i++)
		if (!drop[i] && (n || in->dim[i] != 1))
			rc = mu_shape_push(&shape, in->dim[i], err);
	if (!rc)
		take_reshaped(c, &shape);
	return rc;
}

static int broadcast_to(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_shape shape, result;
	struct mu_tensor *out;
	struct view v;

	MU_RETURN_IF_ERROR(args_shape(c, 1, &shape, err));
	if (broadcast_shape(&in->shape, &shape, &result, NULL) || !mu_shape_eq(&result, &shape))
		return mu_invalid(err, "Incompatible shapes: %s vs. %s", mu_shape_str(&in->shape),
				  mu_shape_str(&shape));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	broadcast_view(&v, &in->shape, &shape);
	return move_read(out, in, &v, err);
}

/* BroadcastArgs: the shape that two shape vectors broadcast to. */
static int broadcast_args(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape a, b, out;

	MU_RETURN_IF_ERROR(args_shape(c, 0, &a, err));
	MU_RETURN_IF_ERROR(args_shape(c, 1, &b, err));
	MU_RETURN_IF_ERROR(broadcast_shape(&a, &b, &out, err));
	return put_ints(c, 0, kernel_in(c, 0)->dtype, out.dim, out.rank, false, err);
}

/* Outputs the axes along which each operand is broadcast.  Its gradient is the sum over them. */
static int broadcast_gradient_args(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape s[2], out;

	MU_RETURN_IF_ERROR(args_shape(c, 0, &s[0], err));
	MU_RETURN_IF_ERROR(args_shape(c, 1, &s[1], err));
	MU_RETURN_IF_ERROR(broadcast_shape(&s[0], &s[1], &out, err));
	bool same = mu_shape_eq(&s[0], &s[1]);
	for (unsigned k = 0; k < 2; k++) {
		int64_t axes[MU_MAX_RANK];
		int n = 0, n_missing = out.rank - s[k].rank;
		for (int i = 0; i < out.rank && !same; i++)
			if (i < n_missing || s[k].dim[i - n_missing] == 1)
				axes[n++] = i;
		MU_RETURN_IF_ERROR(put_ints(c, k, kernel_in(c, 0)->dtype, axes, n, false, err));
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Shape ShapeN", .run = shape_n},
    {"Size", .run = shape_size},
    {"Rank", .run = rank},
    {"Reshape", .run = reshape},
    {"ExpandDims", .run = expand_dims},
    {"Squeeze", .run = squeeze},
    {"BroadcastTo", .run = broadcast_to},
    {"BroadcastArgs", .run = broadcast_args},
    {"BroadcastGradientArgs", .run = broadcast_gradient_args},
};
KERNEL_TABLE(array_shape, rows)
