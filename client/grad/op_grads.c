// SPDX-License-Identifier: Apache-2.0
/* Gradients of the ops, one function each.
 *
 * A function names the mathematics only: which inputs get what.  Broadcasting is undone in one
 * place (unbroadcast), with the static shapes when they settle it and at run time when they do not.
 */
#include "client/grad/op_grads.h"

static struct mu_out scale(struct mu_builder *b, struct mu_out x, double factor)
{
	struct mu_out f = mu_const_float(b, (float)factor);
	enum mu_dtype t = mu_dtype_base(mu_out_dtype(b, x));

	return mu_mul(b, x, t == MU_FLOAT ? f : mu_cast(b, f, t));
}

static struct mu_out shape_of(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Shape", MU_IN(x));
}

static bool same_static_shape(const struct mu_pshape *x, const struct mu_pshape *y)
{
	if (x->rank < 0 || x->rank != y->rank)
		return false;
	for (int i = 0; i < x->rank; i++)
		if (x->dim[i] < 0 || x->dim[i] != y->dim[i])
			return false;
	return true;
}

/* gx and gy, as large as the result, are summed down to the shapes of inputs 0 and 1. */
static void unbroadcast(struct grad_call *c, struct mu_out gx, struct mu_out gy)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), y = grad_in(c, 1), sx, sy, over;

	if (same_static_shape(mu_out_shape(b, x), mu_out_shape(b, y))) {
		c->gx[0] = gx;
		c->gx[1] = gy;
		return;
	}
	sx = shape_of(b, x);
	sy = shape_of(b, y);
	over = mu_op(b, "BroadcastGradientArgs", MU_IN(sx, sy));
	c->gx[0] = mu_reshape(b, mu_op(b, "Sum", MU_IN(gx, over)), sx);
	c->gx[1] = mu_reshape(b, mu_op(b, "Sum", MU_IN(gy, mu_port(over, 1))), sy);
}

static void grad_add(struct grad_call *c)
{
	unbroadcast(c, c->gy[0], c->gy[0]);
}

static void grad_sub(struct grad_call *c)
{
	unbroadcast(c, c->gy[0], mu_neg(c->b, c->gy[0]));
}

static void grad_mul(struct grad_call *c)
{
	unbroadcast(c, mu_mul(c->b, c->gy[0], grad_in(c, 1)),
		    mu_mul(c->b, c->gy[0], grad_in(c, 0)));
}

static void grad_div(struct grad_call *c)
{
	struct mu_out gx = mu_div(c->b, c->gy[0], grad_in(c, 1));

	unbroadcast(c, gx, mu_neg(c->b, mu_mul(c->b, gx, grad_out(c, 0))));
}

static void grad_matmul(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 0), y = grad_in(c, 1), g = c->gy[0];
	bool tx = false, ty = false;

	mu_node_attr_bool(c->node, "transpose_a", &tx, NULL);
	mu_node_attr_bool(c->node, "transpose_b", &ty, NULL);
	c->gx[0] = tx ? mu_matmul_t(c->b, y, ty, g, true) : mu_matmul_t(c->b, g, false, y, !ty);
	c->gx[1] = ty ? mu_matmul_t(c->b, g, true, x, tx) : mu_matmul_t(c->b, x, !tx, g, false);
}

static void grad_bias_add(struct grad_call *c)
{
	const char *format = "NHWC";

	mu_node_attr_string(c->node, "data_format", &format, NULL);
	c->gx[0] = c->gy[0];
	c->gx[1] =
	    mu_op(c->b, "BiasAddGrad", MU_IN(c->gy[0]), MU_ATTRS(MU_A_STR("data_format", format)));
}

static void grad_relu(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "ReluGrad", MU_IN(c->gy[0], grad_out(c, 0)));
}

static void grad_tanh(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TanhGrad", MU_IN(grad_out(c, 0), c->gy[0]));
}

static void grad_sigmoid(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "SigmoidGrad", MU_IN(grad_out(c, 0), c->gy[0]));
}

static void grad_softmax(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out y = grad_out(c, 0);
	struct mu_out dot =
	    mu_op(b, "Sum", MU_IN(mu_mul(b, c->gy[0], y), mu_const_ints(b, (int32_t[]){-1}, 1)),
		  MU_ATTRS(MU_A_BOOL("keep_dims", true)));

	c->gx[0] = mu_mul(b, mu_sub(b, c->gy[0], dot), y);
}

static void grad_exp(struct grad_call *c)
{
	c->gx[0] = mu_mul(c->b, c->gy[0], grad_out(c, 0));
}

static void grad_log(struct grad_call *c)
{
	c->gx[0] = mu_div(c->b, c->gy[0], grad_in(c, 0));
}

static void grad_neg(struct grad_call *c)
{
	c->gx[0] = mu_neg(c->b, c->gy[0]);
}

static void grad_square(struct grad_call *c)
{
	c->gx[0] = mu_mul(c->b, c->gy[0], scale(c->b, grad_in(c, 0), 2));
}

static void grad_identity(struct grad_call *c)
{
	c->gx[0] = c->gy[0];
}

static void grad_reshape(struct grad_call *c)
{
	c->gx[0] = mu_reshape(c->b, c->gy[0], shape_of(c->b, grad_in(c, 0)));
}

/* Puts the axes that a reduction dropped back as 1, lowest first so that each lands in its place.
 */
static struct mu_out expand_axes(struct grad_call *c, struct mu_out g)
{
	const struct mu_tensor *axes = builder_value(c->b, grad_in(c, 1));
	int rank = mu_out_shape(c->b, grad_in(c, 0))->rank;

	if (!axes || rank < 0) { /* known only at run time: ask the reduction itself */
		struct mu_out kept = mu_op(c->b, "Sum", MU_IN(grad_in(c, 0), grad_in(c, 1)),
					   MU_ATTRS(MU_A_BOOL("keep_dims", true)));

		return mu_reshape(c->b, g, shape_of(c->b, kept));
	}
	for (int at = 0; at < rank; at++)
		for (int64_t i = 0; i < axes->shape.count; i++) {
			int64_t a = mu_tensor_int(axes, i);

			if ((a < 0 ? a + rank : a) != at)
				continue;
			g = mu_op(c->b, "ExpandDims", MU_IN(g, mu_const_int(c->b, MU_INT32, at)));
			break;
		}
	return g;
}

/* The gradient of a sum: gy spread over the summed axes, by adding it to zeros like the input. */
static struct mu_out spread(struct grad_call *c)
{
	struct mu_out g = c->gy[0];
	bool keep = false;

	mu_node_attr_bool(c->node, "keep_dims", &keep, NULL);
	if (!keep && mu_out_shape(c->b, grad_out(c, 0))->rank != 0)
		g = expand_axes(c, g);
	return mu_add(c->b, mu_op(c->b, "ZerosLike", MU_IN(grad_in(c, 0))), g);
}

static void grad_sum(struct grad_call *c)
{
	c->gx[0] = spread(c);
}

static void grad_mean(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	enum mu_dtype t = mu_dtype_base(mu_out_dtype(b, grad_in(c, 0)));
	struct mu_out in = mu_cast(b, mu_op(b, "Size", MU_IN(grad_in(c, 0))), t);
	struct mu_out out = mu_cast(b, mu_op(b, "Size", MU_IN(grad_out(c, 0))), t);

	c->gx[0] = mu_div(b, spread(c), mu_div(b, in, out));
}

/* Both cross-entropy ops hand out the gradient of each row's loss as output 1. */
static void grad_xent(struct grad_call *c)
{
	struct mu_out rows =
	    mu_op(c->b, "ExpandDims", MU_IN(c->gy[0], mu_const_int(c->b, MU_INT32, -1)));

	c->gx[0] = mu_mul(c->b, rows, grad_out(c, 1));
}

static void grad_cast(struct grad_call *c)
{
	enum mu_dtype from = mu_dtype_base(mu_out_dtype(c->b, grad_in(c, 0)));

	if (from == MU_FLOAT || from == MU_DOUBLE)
		c->gx[0] = mu_cast(c->b, c->gy[0], from);
}

static void grad_add_n(struct grad_call *c)
{
	for (unsigned i = 0; i < c->node->n_inputs; i++)
		c->gx[i] = c->gy[0];
}

static const struct op_grad table[] = {
    {"Add", grad_add},
    {"AddN", grad_add_n},
    {"AddV2", grad_add},
    {"ArgMax", NULL},
    {"BiasAdd", grad_bias_add},
    {"Cast", grad_cast},
    {"Const", NULL},
    {"Equal", NULL},
    {"Exp", grad_exp},
    {"Identity", grad_identity},
    {"Log", grad_log},
    {"MatMul", grad_matmul},
    {"Mean", grad_mean},
    {"Mul", grad_mul},
    {"Neg", grad_neg},
    {"Placeholder", NULL},
    {"RealDiv", grad_div},
    {"Relu", grad_relu},
    {"Reshape", grad_reshape},
    {"Shape", NULL},
    {"Sigmoid", grad_sigmoid},
    {"Softmax", grad_softmax},
    {"SoftmaxCrossEntropyWithLogits", grad_xent},
    {"SparseSoftmaxCrossEntropyWithLogits", grad_xent},
    {"Square", grad_square},
    {"StopGradient", NULL},
    {"Sub", grad_sub},
    {"Sum", grad_sum},
    {"Tanh", grad_tanh},
    {"VariableV2", NULL},
};

const struct op_grad *op_grad_find(const char *op)
{
	for (size_t i = 0; i < MU_COUNT(table); i++)
		if (strcmp(table[i].op, op) == 0)
			return &table[i];
	return NULL;
}
