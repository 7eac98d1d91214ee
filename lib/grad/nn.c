/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of neural network ops. Gradients of convolutions are in second.c, with their second
 * derivatives. */
#include "lib/grad/op_grads.h"

GRAD_UNARY(g_relu, mu_op(b, "ReluGrad", MU_IN(g, y)))
GRAD_UNARY(g_relu6, mu_op(b, "Relu6Grad", MU_IN(g, y)))
GRAD_UNARY(g_leaky_relu, GRAD_OP(c, "LeakyReluGrad", g, x))
GRAD_UNARY(g_elu, mu_op(b, "EluGrad", MU_IN(g, y)))
GRAD_UNARY(g_selu, mu_op(b, "SeluGrad", MU_IN(g, y)))
GRAD_UNARY(g_softplus, mu_op(b, "SoftplusGrad", MU_IN(g, x)))
GRAD_UNARY(g_softsign, mu_op(b, "SoftsignGrad", MU_IN(g, x)))
GRAD_UNARY(g_avg_pool, GRAD_OP(c, "AvgPoolGrad", grad_shape(b, x), g))
GRAD_UNARY(g_avg_pool_3d, GRAD_OP(c, "AvgPool3DGrad", grad_shape(b, x), g))
GRAD_UNARY(g_max_pool_3d, GRAD_OP(c, "MaxPool3DGrad", x, y, g))
GRAD_UNARY(g_max_pool, GRAD_OP(c, "MaxPoolGrad", x, y, g))
GRAD_UNARY(g_max_pool_v2, GRAD_OP(c, "MaxPoolGradV2", x, y, g, grad_in(c, 1), grad_in(c, 2)))
GRAD_UNARY(g_lrn, GRAD_OP(c, "LRNGrad", g, x, y))

/* Returns the sum over the last axis with keep_dims. */
static struct mu_out sum_last(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Sum", MU_IN(x, mu_const_ints(b, (int32_t[]){-1}, 1)),
		     MU_ATTRS(MU_A_BOOL("keep_dims", true)));
}

GRAD_UNARY(g_softmax, mu_mul(b, mu_sub(b, g, sum_last(b, mu_mul(b, g, y))), y))
GRAD_UNARY(g_log_softmax, mu_sub(b, g, mu_mul(b, sum_last(b, g), mu_exp(b, y))))

static void g_bias_add(struct grad_call *c)
{
	c->gx[0] = c->gy[0];
	c->gx[1] = GRAD_OP(c, "BiasAddGrad", c->gy[0]);
}

/* The gradient of fake quantization is that of Identity for values in range. The gradient of a
 * limit is the sum over the values beyond it. */
GRAD_UNARY(g_fake_args, GRAD_OP(c, "FakeQuantWithMinMaxArgsGradient", g, x))
GRAD_UNARY(g_straight_through, g)

static void grad_three_inputs(struct grad_call *c, const char *op)
{
	struct mu_out grads = GRAD_OP(c, op, c->gy[0], grad_in(c, 0), grad_in(c, 1), grad_in(c, 2));

	for (int i = 0; i < 3; i++)
		c->gx[i] = mu_port(grads, i);
}

static void g_fake_vars(struct grad_call *c)
{
	grad_three_inputs(c, "FakeQuantWithMinMaxVarsGradient");
}

static void g_fake_channels(struct grad_call *c)
{
	grad_three_inputs(c, "FakeQuantWithMinMaxVarsPerChannelGradient");
}

static void g_quantize_and_dequantize(struct grad_call *c)
{
	grad_three_inputs(c, "QuantizeAndDequantizeV4Grad");
}

/* Returns the gradients of the losses as a column. */
static struct mu_out loss_column(struct grad_call *c)
{
	return mu_op(c->b, "ExpandDims", MU_IN(c->gy[0], mu_const_int(c->b, MU_INT32, -1)));
}

static struct mu_out sum_of(struct mu_builder *b, struct mu_out x, struct mu_out y)
{
	return x.node && y.node ? mu_add(b, x, y) : x.node ? x : y;
}

/* Output 1 of both cross-entropy ops is the gradient of each row's loss: softmax(logits) - labels.
 */
static void g_sparse_xent(struct grad_call *c)
{
	struct mu_builder *b = c->b;

	if (c->gy[0].node)
		c->gx[0] = mu_mul(b, loss_column(c), grad_out(c, 1));
	if (c->gy[1].node) {
		struct mu_out softmax = mu_softmax(b, grad_in(c, 0));
		struct mu_out row_sums =
		    mu_op(b, "Sum", MU_IN(mu_mul(b, softmax, c->gy[1]), grad_int(b, -1)),
			  MU_ATTRS(MU_A_BOOL("keep_dims", true)));
		c->gx[0] = sum_of(b, c->gx[0], mu_mul(b, softmax, mu_sub(b, c->gy[1], row_sums)));
	}
}

/* As g_sparse_xent, with a gradient of the labels: the loss and its gradient are linear in them. */
static void g_xent(struct grad_call *c)
{
	struct mu_builder *b = c->b;

	g_sparse_xent(c);
	if (c->gy[0].node)
		c->gx[1] = mu_neg(
		    b, mu_mul(b, loss_column(c), mu_op(b, "LogSoftmax", MU_IN(grad_in(c, 0)))));
	if (c->gy[1].node)
		c->gx[1] = sum_of(b, c->gx[1], mu_neg(b, c->gy[1]));
}

/* Output 1 is the gradient of each loss. The batch is its dimension 1, after the time. */
static void g_ctc_loss(struct grad_call *c)
{
	if (c->gy[1].node)
		grad_unsupported(c, "of its gradient");
	else
		c->gx[0] = mu_mul(c->b, loss_column(c), grad_out(c, 1));
}

/* The reserve outputs hold the batch statistics that the gradient needs. In inference, the gradient
 * needs the mean and variance inputs instead. */
static void g_batch_norm(struct grad_call *c)
{
	static const char *const ops[] = {"FusedBatchNormGrad", "FusedBatchNormGradV2",
					  "FusedBatchNormGradV3"};
	int version = strcmp(c->node->op, "FusedBatchNorm") == 0     ? 0
		      : strcmp(c->node->op, "FusedBatchNormV2") == 0 ? 1
								     : 2;
	bool training = true;
	struct mu_out in[6] = {c->gy[0], grad_in(c, 0), grad_in(c, 1)}, out;

	mu_node_attr_bool(c->node, "is_training", &training, NULL);
	in[3] = training ? grad_out(c, 3) : grad_in(c, 3);
	in[4] = training ? grad_out(c, 4) : grad_in(c, 4);
	if (version == 2)
		in[5] = grad_out(c, 5);
	out = grad_op(c, ops[version], in, version == 2 ? 6 : 5);
	for (int i = 0; i < 3; i++)
		c->gx[i] = mu_port(out, i);
}

/* Outputs 1 and 2 are the windows of the pool. */
static void g_fractional_max_pool(struct grad_call *c)
{
	c->gx[0] = GRAD_OP(c, "FractionalMaxPoolGrad", grad_in(c, 0), grad_out(c, 0), c->gy[0],
			   grad_out(c, 1), grad_out(c, 2));
}

static void g_fractional_avg_pool(struct grad_call *c)
{
	struct mu_out shape =
	    mu_op(c->b, "Shape", MU_IN(grad_in(c, 0)), MU_ATTRS(MU_A_TYPE("out_type", MU_INT64)));

	c->gx[0] =
	    GRAD_OP(c, "FractionalAvgPoolGrad", shape, c->gy[0], grad_out(c, 1), grad_out(c, 2));
}

static void g_max_pool_with_argmax(struct grad_call *c)
{
	c->gx[0] = GRAD_OP(c, "MaxPoolGradWithArgmax", grad_in(c, 0), c->gy[0], grad_out(c, 1));
}

static void g_batch_norm_global(struct grad_call *c)
{
	struct mu_out in[] = {grad_in(c, 0), grad_in(c, 1), grad_in(c, 2), grad_in(c, 4), c->gy[0]};
	struct mu_out out = grad_op(c, "BatchNormWithGlobalNormalizationGrad", in, 5);

	for (int i = 0; i < 5; i++)
		c->gx[i] = mu_port(out, i);
}

/* Only outputs 1 (cs) and 6 (h) may have gradients. The other outputs are inputs of the gradient
 * op. */
static void g_block_lstm(struct grad_call *c)
{
	bool is_v2 = strcmp(c->node->op, "BlockLSTMV2") == 0;
	enum { INPUTS = 9, OUTPUTS = 7, CS = 1, H = 6 };
	struct mu_out in[INPUTS + OUTPUTS + 2], out;

	for (unsigned i = 0; i < INPUTS; i++)
		in[i] = grad_in(c, i);
	for (int i = 0; i < OUTPUTS; i++) {
		in[INPUTS + i] = grad_out(c, i);
		if (c->gy[i].node && i != CS && i != H) {
			grad_unsupported(c, "for its gate outputs: only for cs and h");
			return;
		}
	}
	for (int i = 0; i < 2; i++) {
		int port = i ? H : CS;
		in[INPUTS + OUTPUTS + i] =
		    c->gy[port].node ? c->gy[port] : grad_zeros(c->b, grad_out(c, port));
	}
	out = grad_op(c, is_v2 ? "BlockLSTMGradV2" : "BlockLSTMGrad", in, MU_COUNT(in));
	for (unsigned i = 1; i < INPUTS; i++)
		c->gx[i] = mu_port(out, (int)i - 1);
}

static void g_dilation(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 0), filter = grad_in(c, 1);

	c->gx[0] = GRAD_OP(c, "Dilation2DBackpropInput", x, filter, c->gy[0]);
	c->gx[1] = GRAD_OP(c, "Dilation2DBackpropFilter", x, filter, c->gy[0]);
}

const struct op_grad grads_of_nn[] = {
    {"AvgPool", g_avg_pool, GRAD_FIRST},
    {"AvgPool3D", g_avg_pool_3d, GRAD_FIRST},
    {"BatchNormWithGlobalNormalization", g_batch_norm_global, GRAD_FIRST},
    {"BiasAdd", g_bias_add, GRAD_FIRST},
    {"BiasAddV1", g_bias_add, GRAD_FIRST},
    {"BlockLSTM", g_block_lstm, GRAD_ANY},
    {"BlockLSTMV2", g_block_lstm, GRAD_ANY},
    {"CTCLoss", g_ctc_loss, GRAD_ANY},
    {"Dilation2D", g_dilation, GRAD_FIRST},
    {"Elu", g_elu, GRAD_FIRST},
    {"FakeQuantWithMinMaxArgs", g_fake_args, GRAD_FIRST},
    {"FakeQuantWithMinMaxVars", g_fake_vars, GRAD_FIRST},
    {"FakeQuantWithMinMaxVarsPerChannel", g_fake_channels, GRAD_FIRST},
    {"FusedBatchNorm", g_batch_norm, GRAD_FIRST},
    {"FusedBatchNormV2", g_batch_norm, GRAD_FIRST},
    {"FusedBatchNormV3", g_batch_norm, GRAD_FIRST},
    {"LRN", g_lrn, GRAD_FIRST},
    {"LeakyRelu", g_leaky_relu, GRAD_FIRST},
    {"LogSoftmax", g_log_softmax, GRAD_FIRST},
    {"FractionalAvgPool", g_fractional_avg_pool, GRAD_FIRST},
    {"FractionalMaxPool", g_fractional_max_pool, GRAD_FIRST},
    {"MaxPool", g_max_pool, GRAD_FIRST},
    {"MaxPool3D", g_max_pool_3d, GRAD_FIRST},
    {"MaxPoolV2", g_max_pool_v2, GRAD_FIRST},
    {"MaxPoolWithArgmax", g_max_pool_with_argmax, GRAD_FIRST},
    {"QuantizeAndDequantizeV2", g_straight_through, GRAD_FIRST},
    {"QuantizeAndDequantizeV3", g_straight_through, GRAD_FIRST},
    {"QuantizeAndDequantizeV4", g_quantize_and_dequantize, GRAD_FIRST},
    {"Relu", g_relu, GRAD_FIRST},
    {"Relu6", g_relu6, GRAD_FIRST},
    {"Selu", g_selu, GRAD_FIRST},
    {"Softmax", g_softmax, GRAD_FIRST},
    {"SoftmaxCrossEntropyWithLogits", g_xent, GRAD_ANY},
    {"Softplus", g_softplus, GRAD_FIRST},
    {"Softsign", g_softsign, GRAD_FIRST},
    {"SparseSoftmaxCrossEntropyWithLogits", g_sparse_xent, GRAD_ANY},
    {NULL, NULL, GRAD_FIRST},
};
