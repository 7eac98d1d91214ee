/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of reductions and cumulative sums. */
#include "lib/grad/op_grads.h"

static struct mu_out reduce_keep_dims(struct mu_builder *b, const char *op, struct mu_out x,
				      struct mu_out axes)
{
	return mu_op(b, op, MU_IN(x, axes), MU_ATTRS(MU_A_BOOL("keep_dims", true)));
}

/* Restores the axes that the reduction removed, with size 1; in ascending order, so that each
 * insertion index is right. */
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
	for (int at = 0; at < rank; at++)
		for (int64_t i = 0; i < axes->shape.count; i++) {
			int64_t a = mu_tensor_int(axes, i);

			if ((a < 0 ? a + rank : a) != at)
				continue;
			g = mu_op(c->b, "ExpandDims", MU_IN(g, grad_int(c->b, at)));
			break;
		}
	return g;
}

/* The gradient of a sum: gy broadcast over the summed axes, by adding it to zeros like the input.
 */
static struct mu_out broadcast_gradient(struct grad_call *c)
{
	return mu_add(c->b, grad_zeros(c->b, grad_in(c, 0)), keep_axes(c, c->gy[0]));
}

static void g_sum(struct grad_call *c)
{
	c->gx[0] = broadcast_gradient(c);
}

/* Divides by the number of elements of each mean. The quotient is computed in integers: a half
 * cannot hold the size of a large input. */
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
	struct mu_out hit = grad_indicator(b, mu_equal(b, y, x), x);
	struct mu_out hits = reduce_keep_dims(b, "Sum", hit, grad_in(c, 1));

	c->gx[0] = mu_mul(b, mu_div(b, hit, hits), keep_axes(c, c->gy[0]));
}

/* The gradient is the product of the other elements. Without zeros it is P / x. With one zero it is
 * P without the zero at that position and 0 elsewhere. With more zeros it is 0. */
static void g_prod(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), axes = grad_in(c, 1),
		      zero = mu_equal(b, x, grad_zeros(b, x));
	struct mu_out safe = mu_op(b, "Select", MU_IN(zero, mu_op(b, "OnesLike", MU_IN(x)), x));
	struct mu_out p = mu_div(b, reduce_keep_dims(b, "Prod", safe, axes), safe);
	struct mu_out zeros = reduce_keep_dims(b, "Sum", grad_indicator(b, zero, x), axes);
	/* number of zeros among the other elements */
	struct mu_out left =
	    mu_sub(b, mu_add(b, grad_zeros(b, x), zeros), grad_indicator(b, zero, x));
	struct mu_out others = grad_where(b, mu_equal(b, left, grad_zeros(b, x)), p);

	c->gx[0] = mu_mul(b, others, keep_axes(c, c->gy[0]));
}

static void g_norm(struct grad_call *c)
{
	struct mu_out over = keep_axes(c, mu_div(c->b, c->gy[0], grad_out(c, 0)));

	c->gx[0] = mu_mul(c->b, grad_in(c, 0), over);
}

GRAD_UNARY(g_l2_loss, mu_mul(b, x, g))

/* The gradient of a cumulative sum is the cumulative sum in the other direction. */
static struct mu_out sum_back(struct grad_call *c, struct mu_out g)
{
	return mu_op(c->b, "Cumsum", MU_IN(g, grad_in(c, 1)),
		     MU_ATTRS(MU_A_BOOL("exclusive", grad_attr_bool(c, "exclusive")),
			      MU_A_BOOL("reverse", !grad_attr_bool(c, "reverse"))));
}

static void g_cumsum(struct grad_call *c)
{
	c->gx[0] = sum_back(c, c->gy[0]);
}

/* Each product has x as a factor once. Where x is 0 the gradient is 0, as in TensorFlow. */
static void g_cumprod(struct grad_call *c)
{
	struct mu_out sums = sum_back(c, mu_mul(c->b, c->gy[0], grad_out(c, 0)));

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
