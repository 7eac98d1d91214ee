/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of reductions and cumulative sums. */
#include "lib/grad/op_grads.h"

static struct mu_out reduce_keep_dims(struct mu_builder *b, const char *op, struct mu_out x,
				      struct mu_out axes)
{
	return mu_op(b, op, MU_IN(x, axes), MU_ATTRS(MU_A_BOOL("keep_dims", true)));
}

/* Restores the axes that the reduction removed, with size 1. Ascending order keeps each insertion
 * index valid. */
static struct mu_out keep_axes(struct grad_call *c, struct mu_out g)
{
	const struct mu_tensor *axes = builder_value(c->b, grad_in(c, 1));
	int rank = mu_out_shape(c->b, grad_in(c, 0))->rank;

	if (grad_attr_bool(c, "keep_dims") || mu_out_shape(c->b, grad_out(c, 0))->rank == 0)
		return g;
	if (!axes ||
	    rank < 0) /* axes known only at run time: repeat the reduction with keep_dims */
		return grad_like(c->b, g,
				 reduce_keep_dims(c->b, "Sum", grad_in(c, 0), grad_in(c, 1)));
	for (int axis = 0; axis < rank; axis++)
		for (int64_t i = 0; i < axes->shape.count; i++) {
			int64_t a = mu_tensor_int(axes, i);

			if ((a < 0 ? a + rank : a) != axis)
				continue;
			g = mu_op(c->b, "ExpandDims", MU_IN(g, grad_int(c->b, axis)));
			break;
		}
	return g;
}

/* Returns the gradient of a sum: gy, broadcast over the summed axes by an addition to zeros. */
static struct mu_out broadcast_gradient(struct grad_call *c)
{
	return mu_add(c->b, grad_zeros(c->b, grad_in(c, 0)), keep_axes(c, c->gy[0]));
}

static void g_sum(struct grad_call *c)
{
	c->gx[0] = broadcast_gradient(c);
}

/* Divides by the number of elements of each mean. The quotient is computed in integers, because
 * a half cannot represent the size of a large input. */
static void g_mean(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out in = grad_size(b, grad_in(c, 0)), out = grad_size(b, grad_out(c, 0));
	struct mu_out count =
	    mu_op(b, "FloorDiv", MU_IN(in, mu_op(b, "Maximum", MU_IN(out, grad_int(b, 1)))));
	enum mu_dtype t = mu_dtype_base(mu_out_dtype(b, grad_in(c, 0)));

	c->gx[0] = mu_div(b, broadcast_gradient(c), mu_cast(b, count, t));
}

/* Max and Min: the elements that are equal to the result share its gradient. */
static void g_min_max(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), y = keep_axes(c, grad_out(c, 0));
	struct mu_out is_extreme = grad_indicator(b, mu_equal(b, y, x), x);
	struct mu_out n_extreme = reduce_keep_dims(b, "Sum", is_extreme, grad_in(c, 1));

	c->gx[0] = mu_mul(b, mu_div(b, is_extreme, n_extreme), keep_axes(c, c->gy[0]));
}

/* Returns the axes of x, the reduced axes first. Sets *n_reduced to the product of their sizes. */
static struct mu_out reduced_axes_first(struct mu_builder *b, struct mu_out x, struct mu_out axes,
					struct mu_out *n_reduced)
{
	struct mu_out rank = mu_op(b, "Rank", MU_IN(x)), zero = grad_int(b, 0);
	struct mu_out all_axes = mu_op(b, "Range", MU_IN(zero, rank, grad_int(b, 1)));
	struct mu_out flat = grad_flat(b, mu_cast(b, axes, MU_INT32));
	struct mu_out reduced = mu_op(b, "FloorMod", MU_IN(mu_add(b, flat, rank), rank));
	struct mu_out kept_axes = mu_op(b, "ListDiff", MU_IN(all_axes, reduced));

	*n_reduced =
	    mu_op(b, "Prod",
		  MU_IN(mu_op(b, "Gather", MU_IN(grad_shape(b, x), reduced)), grad_single(b, 0)));
	return mu_op(b, "ConcatV2", MU_IN(reduced, kept_axes, zero));
}

static struct mu_out exclusive_cumprod(struct mu_builder *b, struct mu_out x, bool reverse)
{
	return mu_op(b, "Cumprod", MU_IN(x, grad_int(b, 0)),
		     MU_ATTRS(MU_A_BOOL("exclusive", true), MU_A_BOOL("reverse", reverse)));
}

/* The gradient is the product of all other elements: the preceding times the following ones. A
 * quotient P / x would fail for zeros, and if P overflows. */
static void g_prod(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), n_reduced, n_kept;
	struct mu_out order = reduced_axes_first(b, x, grad_in(c, 1), &n_reduced);
	struct mu_out transposed = mu_op(b, "Transpose", MU_IN(x, order));
	struct mu_out one = grad_int(b, 1);

	n_kept = mu_op(b, "FloorDiv",
		       MU_IN(grad_size(b, x), mu_op(b, "Maximum", MU_IN(n_reduced, one))));
	struct mu_out matrix =
	    mu_reshape(b, transposed, mu_op(b, "Pack", MU_IN(n_reduced, n_kept)));
	struct mu_out products =
	    mu_mul(b, exclusive_cumprod(b, matrix, false), exclusive_cumprod(b, matrix, true));

	products = mu_op(
	    b, "Transpose",
	    MU_IN(grad_like(b, products, transposed), mu_op(b, "InvertPermutation", MU_IN(order))));
	/* grad_like restores the static shape, which is unknown after Transpose by `order`. */
	c->gx[0] = mu_mul(b, grad_like(b, products, x), keep_axes(c, c->gy[0]));
}

static void g_norm(struct grad_call *c)
{
	struct mu_out scale = keep_axes(c, mu_div(c->b, c->gy[0], grad_out(c, 0)));

	c->gx[0] = mu_mul(c->b, grad_in(c, 0), scale);
}

GRAD_UNARY(g_l2_loss, mu_mul(b, x, g))

/* The gradient of a cumulative sum is the cumulative sum in the other direction. */
static struct mu_out reverse_cumsum(struct grad_call *c, struct mu_out g)
{
	return mu_op(c->b, "Cumsum", MU_IN(g, grad_in(c, 1)),
		     MU_ATTRS(MU_A_BOOL("exclusive", grad_attr_bool(c, "exclusive")),
			      MU_A_BOOL("reverse", !grad_attr_bool(c, "reverse"))));
}

static void g_cumsum(struct grad_call *c)
{
	c->gx[0] = reverse_cumsum(c, c->gy[0]);
}

/* Each product has x as a factor once. Where x is 0 the gradient is 0, as in TensorFlow. */
static void g_cumprod(struct grad_call *c)
{
	struct mu_out sums = reverse_cumsum(c, mu_mul(c->b, c->gy[0], grad_out(c, 0)));

	c->gx[0] = grad_div_no_nan(c->b, sums, grad_in(c, 0));
}

const struct op_grad grads_of_reductions[] = {
    {"Cumprod", g_cumprod, GRAD_FIRST},
    {"Cumsum", g_cumsum, GRAD_FIRST},
    {"EuclideanNorm", g_norm, GRAD_FIRST},
    {"L2Loss", g_l2_loss, GRAD_FIRST},
    {"Max", g_min_max, GRAD_FIRST},
    {"Mean", g_mean, GRAD_FIRST},
    {"Min", g_min_max, GRAD_FIRST},
    {"Prod", g_prod, GRAD_FIRST},
    {"Sum", g_sum, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
