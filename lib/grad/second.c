/* SPDX-License-Identifier: Apache-2.0 */
/* Second derivatives: gradients of the gradient ops of element-wise ops, pooling and convolution.
 */
#include "lib/grad/op_grads.h"

/* Defines a gradient function of inputs x and z, without broadcasting. */
#define GRAD_SECOND(fn, expr_x, expr_z)                                                            \
	static void fn(struct grad_call *c)                                                        \
	{                                                                                          \
		struct mu_builder *b __attribute__((unused)) = c->b;                               \
		struct mu_out x __attribute__((unused)) = grad_in(c, 0);                           \
		struct mu_out z __attribute__((unused)) = grad_in(c, 1);                           \
		struct mu_out g = c->gy[0];                                                        \
		c->gx[0] = expr_x;                                                                 \
		c->gx[1] = expr_z;                                                                 \
	}
#define OP2(op, x, y) mu_op(b, op, MU_IN(x, y))

static struct mu_out mul3(struct mu_builder *b, struct mu_out x, struct mu_out y, struct mu_out z)
{
	return mu_mul(b, mu_mul(b, x, y), z);
}

static struct mu_out below_zero(struct mu_builder *b, struct mu_out x)
{
	return OP2("Less", x, grad_zeros(b, x));
}

/* 1 - 2 x */
static struct mu_out one_minus_2x(struct mu_builder *b, struct mu_out x)
{
	return mu_sub(b, grad_number(b, x, 1), grad_scale(b, x, 2));
}

/* -2 sign(x) / (1 + |x|)³ */
static struct mu_out softsign_second(struct mu_builder *b, struct mu_out x)
{
	struct mu_out one = mu_add(b, mu_op(b, "Abs", MU_IN(x)), grad_number(b, x, 1));

	return grad_scale(b, mu_div(b, mu_op(b, "Sign", MU_IN(x)), mul3(b, one, one, one)), -2);
}

static struct mu_out sigmoid_second(struct mu_builder *b, struct mu_out x)
{
	struct mu_out s = mu_sigmoid(b, x);

	return mu_mul(b, s, mu_sub(b, grad_number(b, x, 1), s));
}

/* Inputs: (y, dy); y is the output of the forward op. */
GRAD_SECOND(g_sigmoid_grad, mul3(b, g, z, one_minus_2x(b, x)), OP2("SigmoidGrad", x, g))
GRAD_SECOND(g_tanh_grad, grad_scale(b, mul3(b, g, z, x), -2), OP2("TanhGrad", x, g))
GRAD_SECOND(g_sqrt_grad, grad_scale(b, mu_div(b, mu_mul(b, g, z), mu_square(b, x)), -0.5),
	    OP2("SqrtGrad", x, g))
GRAD_SECOND(g_rsqrt_grad, grad_scale(b, mul3(b, g, z, mu_square(b, x)), -1.5),
	    OP2("RsqrtGrad", x, g))
GRAD_SECOND(g_inv_grad, grad_scale(b, mul3(b, g, z, x), -2),
	    mu_neg(b, mu_mul(b, g, mu_square(b, x))))
/* Inputs: (dy, x) or (dy, y). */
GRAD_SECOND(g_relu_grad, OP2("ReluGrad", g, z), grad_zeros(b, z))
GRAD_SECOND(g_relu6_grad, OP2("Relu6Grad", g, z), grad_zeros(b, z))
GRAD_SECOND(g_leaky_relu_grad, GRAD_OP(c, "LeakyReluGrad", g, z), grad_zeros(b, z))
GRAD_SECOND(g_elu_grad, OP2("EluGrad", g, z), grad_where(b, below_zero(b, z), mu_mul(b, g, x)))
GRAD_SECOND(g_selu_grad, OP2("SeluGrad", g, z), grad_where(b, below_zero(b, z), mu_mul(b, g, x)))
GRAD_SECOND(g_softplus_grad, OP2("SoftplusGrad", g, z), mul3(b, g, x, sigmoid_second(b, z)))
GRAD_SECOND(g_softsign_grad, OP2("SoftsignGrad", g, z), mul3(b, g, x, softsign_second(b, z)))

static void g_bias_add_grad(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 0), g = c->gy[0];
	const char *format = "NHWC";
	int rank = mu_out_shape(c->b, x)->rank;

	mu_node_attr_string(c->node, "data_format", &format, NULL);
	if (strcmp(format, "NHWC") != 0) {
		if (rank != 4) {
			grad_unsupported(
			    c, "in the format NCHW, except for inputs of four dimensions");
			return;
		}
		g = mu_reshape(c->b, g, mu_const_ints(c->b, (int32_t[]){-1, 1, 1}, 3));
	}
	c->gx[0] = mu_op(c->b, "BroadcastTo", MU_IN(g, grad_shape(c->b, x)));
}

/* Inputs: (shape of x, gradient of y). Linear in the gradient of y. */
static void g_avg_pool_grad(struct grad_call *c)
{
	c->gx[1] = GRAD_OP(c, strstr(c->node->op, "3D") ? "AvgPool3D" : "AvgPool", c->gy[0]);
}

/* Inputs: (x, y, g[, sizes, strides]).  The index of the maximum is constant almost everywhere, so
 * only g has a gradient. It is `op` of the same inputs, or `op_v2` with sizes and strides. */
static void grad_of_max_pool(struct grad_call *c, const char *op, const char *op_v2)
{
	struct mu_out x = grad_in(c, 0), y = grad_in(c, 1), g = c->gy[0];

	c->gx[0] = grad_zeros(c->b, x);
	c->gx[1] = grad_zeros(c->b, y);
	c->gx[2] = c->node->n_inputs == 3
		       ? GRAD_OP(c, op, x, y, g)
		       : GRAD_OP(c, op_v2, x, y, g, grad_in(c, 3), grad_in(c, 4));
}

static void g_max_pool_grad(struct grad_call *c)
{
	grad_of_max_pool(c, "MaxPoolGradGrad", "MaxPoolGradGradV2");
}

static void g_max_pool3d_grad(struct grad_call *c)
{
	grad_of_max_pool(c, "MaxPool3DGradGrad", NULL);
}

static void g_max_pool3d_grad_grad(struct grad_call *c)
{
	grad_of_max_pool(c, "MaxPool3DGrad", NULL);
}

static void g_max_pool_grad_grad(struct grad_call *c)
{
	grad_of_max_pool(c, "MaxPoolGrad", "MaxPoolGradV2");
}

/* The three ops of each kind of convolution. */
struct convolution {
	const char *forward, *to_input, *to_filter;
};
static const struct convolution convolutions[] = {
    {"Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter"},
    {"DepthwiseConv2dNative", "DepthwiseConv2dNativeBackpropInput",
     "DepthwiseConv2dNativeBackpropFilter"},
    {"Conv3D", "Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"},
};

static const struct convolution *find_convolution(const struct grad_call *c)
{
	const struct convolution *conv = convolutions;

	while (strncmp(c->node->op, conv->forward, strlen(conv->forward)) != 0)
		conv++;
	return conv;
}

static void g_conv(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 0), w = grad_in(c, 1), g = c->gy[0];

	c->gx[0] = GRAD_OP(c, find_convolution(c)->to_input, grad_shape(c->b, x), w, g);
	c->gx[1] = GRAD_OP(c, find_convolution(c)->to_filter, x, grad_shape(c->b, w), g);
}

/* Inputs: (shape of x, filter, gradient of y). */
static void g_conv_to_input(struct grad_call *c)
{
	struct mu_out w = grad_in(c, 1), dy = grad_in(c, 2), g = c->gy[0];

	c->gx[1] = GRAD_OP(c, find_convolution(c)->to_filter, g, grad_shape(c->b, w), dy);
	c->gx[2] = GRAD_OP(c, find_convolution(c)->forward, g, w);
}

/* Inputs: (x, shape of the filter, gradient of y). */
static void g_conv_to_filter(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 0), dy = grad_in(c, 2), g = c->gy[0];

	c->gx[0] = GRAD_OP(c, find_convolution(c)->to_input, grad_shape(c->b, x), g, dy);
	c->gx[2] = GRAD_OP(c, find_convolution(c)->forward, x, g);
}

const struct op_grad grads_of_grads[] = {
    {"AvgPool3DGrad", g_avg_pool_grad, GRAD_FIRST},
    {"AvgPoolGrad", g_avg_pool_grad, GRAD_FIRST},
    {"BiasAddGrad", g_bias_add_grad, GRAD_FIRST},
    {"Conv2D", g_conv, GRAD_FIRST},
    {"Conv2DBackpropFilter", g_conv_to_filter, GRAD_FIRST},
    {"Conv2DBackpropInput", g_conv_to_input, GRAD_FIRST},
    {"Conv3D", g_conv, GRAD_FIRST},
    {"Conv3DBackpropFilterV2", g_conv_to_filter, GRAD_FIRST},
    {"Conv3DBackpropInputV2", g_conv_to_input, GRAD_FIRST},
    {"DepthwiseConv2dNative", g_conv, GRAD_FIRST},
    {"DepthwiseConv2dNativeBackpropFilter", g_conv_to_filter, GRAD_FIRST},
    {"DepthwiseConv2dNativeBackpropInput", g_conv_to_input, GRAD_FIRST},
    {"EluGrad", g_elu_grad, GRAD_FIRST},
    {"InvGrad", g_inv_grad, GRAD_FIRST},
    {"LeakyReluGrad", g_leaky_relu_grad, GRAD_FIRST},
    {"MaxPool3DGrad", g_max_pool3d_grad, GRAD_FIRST},
    {"MaxPool3DGradGrad", g_max_pool3d_grad_grad, GRAD_FIRST},
    {"MaxPoolGrad", g_max_pool_grad, GRAD_FIRST},
    {"MaxPoolGradGrad", g_max_pool_grad_grad, GRAD_FIRST},
    {"MaxPoolGradGradV2", g_max_pool_grad_grad, GRAD_FIRST},
    {"MaxPoolGradV2", g_max_pool_grad, GRAD_FIRST},
    {"ReciprocalGrad", g_inv_grad, GRAD_FIRST},
    {"Relu6Grad", g_relu6_grad, GRAD_FIRST},
    {"ReluGrad", g_relu_grad, GRAD_FIRST},
    {"RsqrtGrad", g_rsqrt_grad, GRAD_FIRST},
    {"SeluGrad", g_selu_grad, GRAD_FIRST},
    {"SigmoidGrad", g_sigmoid_grad, GRAD_FIRST},
    {"SoftplusGrad", g_softplus_grad, GRAD_FIRST},
    {"SoftsignGrad", g_softsign_grad, GRAD_FIRST},
    {"SqrtGrad", g_sqrt_grad, GRAD_FIRST},
    {"TanhGrad", g_tanh_grad, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
