/* SPDX-License-Identifier: Apache-2.0 */
/* Second derivatives of ops whose first derivative is a single op. The first derivative is rebuilt
 * from simple ops, which are then differentiated.
 *
 * The inner differentiation ends at Identity copies of the inputs. Otherwise it would count
 * gradients that the outer differentiation also adds.
 */
#include "lib/grad/op_grads.h"

enum { MAX_OUTPUTS = 3 };

/* Adds Identity copies of the first `n` inputs of the node. */
static void copy_inputs(struct grad_call *c, unsigned n, struct mu_out *in)
{
	for (unsigned i = 0; i < n; i++)
		in[i] = mu_identity(c->b, grad_in(c, i));
}

/* ---- batch normalisation ---- */

static const int32_t reduced_axes[] = {0, 1, 2}; /* all axes except the channels */

static struct mu_out mean(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Mean", MU_IN(x, mu_const_ints(b, reduced_axes, MU_COUNT(reduced_axes))));
}

static struct mu_out sum_axes(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Sum", MU_IN(x, mu_const_ints(b, reduced_axes, MU_COUNT(reduced_axes))));
}

/* Inputs: (gradient of y, x, scale, mean, variance). In training, mean and variance are
 * computed from the batch. */
static void g_batch_norm_grad(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out in[MAX_OUTPUTS], out[MAX_OUTPUTS], dy, x, centred, normal, inverse;
	const char *format = "NHWC";
	bool training = true;
	float epsilon = 1e-4f;

	mu_node_attr_bool(c->node, "is_training", &training, NULL);
	mu_node_attr_float(c->node, "epsilon", &epsilon, NULL);
	mu_node_attr_string(c->node, "data_format", &format, NULL);
	if (mu_dtype_base(mu_out_dtype(b, grad_in(c, 0))) != MU_FLOAT ||
	    strcmp(format, "NHWC") != 0) {
		grad_unsupported(c, "except for floats in the format NHWC");
		return;
	}
	copy_inputs(c, 3, in);
	dy = in[0];
	x = in[1];
	centred = mu_sub(b, x, training ? mean(b, x) : grad_in(c, 3));
	inverse = mu_op(b, "Rsqrt",
			MU_IN(mu_add(b, training ? mean(b, mu_square(b, centred)) : grad_in(c, 4),
				     mu_const_float(b, epsilon))));
	normal = mu_mul(b, centred, inverse);
	out[0] = dy;
	if (training)
		out[0] = mu_sub(b, mu_sub(b, dy, mean(b, dy)),
				mu_mul(b, normal, mean(b, mu_mul(b, dy, normal))));
	out[0] = mu_mul(b, out[0], mu_mul(b, inverse, in[2]));
	out[1] = sum_axes(b, mu_mul(b, dy, normal));
	out[2] = sum_axes(b, dy);
	c->gradients(b, out, c->gy, 3, in, 3, c->gx);
}

/* ---- local response normalisation ---- */

/* Sums each channel with its neighbours within `radius`: a product with a band matrix of ones. */
static struct mu_out window_sum(struct mu_builder *b, struct mu_out x, struct mu_out band)
{
	struct mu_out depth =
	    mu_op(b, "Gather", MU_IN(grad_shape(b, x), mu_const_ints(b, (int32_t[]){3}, 1)));
	struct mu_out table_shape = mu_op(
	    b, "ConcatV2", MU_IN(mu_const_ints(b, (int32_t[]){-1}, 1), depth, grad_int(b, 0)));

	return grad_like(b, mu_matmul(b, mu_reshape(b, x, table_shape), band), x);
}

static struct mu_out band_of(struct mu_builder *b, struct mu_out x, int64_t radius)
{
	struct mu_out depth = mu_op(b, "Gather", MU_IN(grad_shape(b, x), grad_int(b, 3)));
	struct mu_out i = mu_op(b, "Range", MU_IN(grad_int(b, 0), depth, grad_int(b, 1)));
	struct mu_out distance =
	    mu_op(b, "Abs", MU_IN(mu_sub(b, mu_op(b, "ExpandDims", MU_IN(i, grad_int(b, 1))), i)));

	return grad_indicator(b, mu_op(b, "LessEqual", MU_IN(distance, grad_int(b, radius))), x);
}

/* Inputs: (dy, x, y). y = x s^-beta with s = bias + alpha · window sum of x². The gradient is dy
 * s^-beta - 2 alpha beta x · window sum of dy x s^(-beta - 1). */
static void g_lrn_grad(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	int64_t radius = 5;
	float bias = 1, alpha = 1, beta = 0.5f;
	struct mu_out in[2], out, s, band, correction;

	mu_node_attr_int(c->node, "depth_radius", &radius, NULL);
	mu_node_attr_float(c->node, "bias", &bias, NULL);
	mu_node_attr_float(c->node, "alpha", &alpha, NULL);
	mu_node_attr_float(c->node, "beta", &beta, NULL);
	copy_inputs(c, 2, in);
	band = band_of(b, in[1], radius);
	s = grad_scale(b, window_sum(b, mu_square(b, in[1]), band), (double)alpha);
	s = mu_add(b, s, grad_number(b, s, (double)bias));
	correction = mu_mul(b, mu_mul(b, in[0], in[1]),
			    mu_op(b, "Pow", MU_IN(s, grad_number(b, s, -(double)beta - 1))));
	correction = mu_mul(b, in[1], window_sum(b, correction, band));
	out = mu_mul(b, in[0], mu_op(b, "Pow", MU_IN(s, grad_number(b, s, -(double)beta))));
	out = mu_sub(b, out, grad_scale(b, correction, 2 * (double)alpha * (double)beta));
	c->gradients(b, &out, c->gy, 1, in, 2, c->gx);
}

const struct op_grad grads_composed[] = {
    {"FusedBatchNormGrad", g_batch_norm_grad, GRAD_ANY},
    {"FusedBatchNormGradV2", g_batch_norm_grad, GRAD_ANY},
    {"FusedBatchNormGradV3", g_batch_norm_grad, GRAD_ANY},
    {"LRNGrad", g_lrn_grad, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
