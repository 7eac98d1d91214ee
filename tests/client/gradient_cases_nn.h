/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: neural network ops and their second derivatives. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_NN_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_NN_H

#include "tests/client/gradient.h"

CASE(y_bias_add, mu_bias_add(b, x, row(b, 4)))
CASE(y_bias, mu_bias_add(b, values(b, 3, 4, 1), x))
CASE(y_relu, mu_relu(b, x))
CASE(y_softmax, mu_softmax(b, x))
CASE(y_xent, mu_softmax_xent(b, x, mu_softmax(b, values(b, 3, 4, 1))))
/* The loss and its gradient. */
static struct mu_out xent_outputs(struct mu_builder *b, const char *op, struct mu_out x,
				  struct mu_out labels)
{
	struct mu_out y = mu_op(b, op, MU_IN(x, labels));

	return mu_add(
	    b, mu_port(y, 1),
	    mu_op(b, "ExpandDims", MU_IN(mu_square(b, y), mu_const_int(b, MU_INT32, -1))));
}
CASE(y_xent_outputs,
     xent_outputs(b, "SoftmaxCrossEntropyWithLogits", x, mu_softmax(b, values(b, 3, 4, 1))))
CASE(y_xent_outputs_labels, xent_outputs(b, "SoftmaxCrossEntropyWithLogits", values(b, 3, 4, 1), x))
CASE(y_sparse_xent_outputs, xent_outputs(b, "SparseSoftmaxCrossEntropyWithLogits", x,
					 mu_const_ints(b, (int32_t[]){2, 0, 3}, 3)))
CASE(y_sparse_xent_gradient, mu_port(mu_op(b, "SparseSoftmaxCrossEntropyWithLogits",
					   MU_IN(x, mu_const_ints(b, (int32_t[]){2, 0, 3}, 3))),
				     1))
CASE(y_sparse_xent, mu_sparse_softmax_xent(b, x, mu_const_ints(b, (int32_t[]){2, 0, 3}, 3)))
CASE(y_conv2d_input,
     mu_op(b, "Conv2D",
	   MU_IN(x, mu_reshape(b, values(b, 9, 4, 0), ints(b, 4, (int32_t[]){3, 3, 2, 2}))),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_conv2d_filter,
     mu_op(b, "Conv2D",
	   MU_IN(mu_reshape(b, values(b, 10, 5, 0), ints(b, 4, (int32_t[]){1, 5, 5, 2})), x),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 1, 1, 1}), MU_A_STR("padding", "VALID"))))
CASE(y_conv2dbackpropinput_filter,
     mu_op(b, "Conv2DBackpropInput",
	   MU_IN(ints(b, 4, (int32_t[]){1, 5, 5, 2}), x,
		 mu_reshape(b, values(b, 9, 2, 0), ints(b, 4, (int32_t[]){1, 3, 3, 2}))),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_conv2dbackpropinput_gradient,
     mu_op(b, "Conv2DBackpropInput",
	   MU_IN(ints(b, 4, (int32_t[]){1, 5, 5, 2}),
		 mu_reshape(b, values(b, 9, 4, 0), ints(b, 4, (int32_t[]){3, 3, 2, 2})), x),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_conv2dbackpropfilter_input,
     mu_op(b, "Conv2DBackpropFilter",
	   MU_IN(x, ints(b, 4, (int32_t[]){3, 3, 2, 2}),
		 mu_reshape(b, values(b, 9, 2, 0), ints(b, 4, (int32_t[]){1, 3, 3, 2}))),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_conv2dbackpropfilter_gradient,
     mu_op(b, "Conv2DBackpropFilter",
	   MU_IN(mu_reshape(b, values(b, 10, 5, 0), ints(b, 4, (int32_t[]){1, 5, 5, 2})),
		 ints(b, 4, (int32_t[]){3, 3, 2, 2}), x),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_depthwiseconv2dnative_input,
     mu_op(b, "DepthwiseConv2dNative",
	   MU_IN(x, mu_reshape(b, values(b, 9, 2, 0), ints(b, 4, (int32_t[]){3, 3, 2, 1}))),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_depthwiseconv2dnative_filter,
     mu_op(b, "DepthwiseConv2dNative",
	   MU_IN(mu_reshape(b, values(b, 10, 5, 0), ints(b, 4, (int32_t[]){1, 5, 5, 2})), x),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_depthwiseconv2dnativebackpropinput_filter,
     mu_op(b, "DepthwiseConv2dNativeBackpropInput",
	   MU_IN(ints(b, 4, (int32_t[]){1, 5, 5, 2}), x,
		 mu_reshape(b, values(b, 9, 2, 0), ints(b, 4, (int32_t[]){1, 3, 3, 2}))),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_depthwiseconv2dnativebackpropinput_gradient,
     mu_op(b, "DepthwiseConv2dNativeBackpropInput",
	   MU_IN(ints(b, 4, (int32_t[]){1, 5, 5, 2}),
		 mu_reshape(b, values(b, 9, 2, 0), ints(b, 4, (int32_t[]){3, 3, 2, 1})), x),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_depthwiseconv2dnativebackpropfilter_input,
     mu_op(b, "DepthwiseConv2dNativeBackpropFilter",
	   MU_IN(x, ints(b, 4, (int32_t[]){3, 3, 2, 1}),
		 mu_reshape(b, values(b, 9, 2, 0), ints(b, 4, (int32_t[]){1, 3, 3, 2}))),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_depthwiseconv2dnativebackpropfilter_gradient,
     mu_op(b, "DepthwiseConv2dNativeBackpropFilter",
	   MU_IN(mu_reshape(b, values(b, 10, 5, 0), ints(b, 4, (int32_t[]){1, 5, 5, 2})),
		 ints(b, 4, (int32_t[]){3, 3, 2, 1}), x),
	   MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_maxpool,
     mu_op(b, "MaxPool", MU_IN(x),
	   MU_ATTRS(int_list("ksize", 4, (int64_t[]){1, 2, 2, 1}),
		    int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_avgpool,
     mu_op(b, "AvgPool", MU_IN(x),
	   MU_ATTRS(int_list("ksize", 4, (int64_t[]){1, 2, 2, 1}),
		    int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_avgpoolgrad,
     mu_op(b, "AvgPoolGrad", MU_IN(ints(b, 4, (int32_t[]){1, 5, 5, 2}), x),
	   MU_ATTRS(int_list("ksize", 4, (int64_t[]){1, 2, 2, 1}),
		    int_list("strides", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_maxpoolv2,
     mu_op(b, "MaxPoolV2",
	   MU_IN(x, ints(b, 4, (int32_t[]){1, 2, 2, 1}), ints(b, 4, (int32_t[]){1, 2, 2, 1})),
	   MU_ATTRS(MU_A_STR("padding", "VALID"))))
CASE(y_lrn, mu_op(b, "LRN", MU_IN(x), MU_ATTRS(MU_A_INT("depth_radius", 1))))
CASE(y_fusedbatchnorm_x,
     mu_op(b, "FusedBatchNorm",
	   MU_IN(x, row(b, 2), row(b, 2),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0))),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0)))),
	   MU_ATTRS(MU_A_BOOL("is_training", true), MU_A_FLOAT("epsilon", 0.1f))))
CASE(y_fusedbatchnormv2_x,
     mu_op(b, "FusedBatchNormV2",
	   MU_IN(x, row(b, 2), row(b, 2),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0))),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0)))),
	   MU_ATTRS(MU_A_BOOL("is_training", true), MU_A_FLOAT("epsilon", 0.1f))))
CASE(y_fusedbatchnormv3_x,
     mu_op(b, "FusedBatchNormV3",
	   MU_IN(x, row(b, 2), row(b, 2),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0))),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0)))),
	   MU_ATTRS(MU_A_BOOL("is_training", true), MU_A_FLOAT("epsilon", 0.1f))))
CASE(y_fusedbatchnormv3_scale,
     mu_op(b, "FusedBatchNormV3",
	   MU_IN(mu_reshape(b, values(b, 6, 2, 0), ints(b, 4, (int32_t[]){1, 2, 3, 2})), x,
		 row(b, 2),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0))),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0)))),
	   MU_ATTRS(MU_A_BOOL("is_training", true), MU_A_FLOAT("epsilon", 0.1f))))
CASE(y_fusedbatchnormv3_offset,
     mu_op(b, "FusedBatchNormV3",
	   MU_IN(mu_reshape(b, values(b, 6, 2, 0), ints(b, 4, (int32_t[]){1, 2, 3, 2})), row(b, 2),
		 x, mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0))),
		 mu_op(b, "Fill", MU_IN(ints(b, 1, (int32_t[]){0}), mu_const_float(b, 0)))),
	   MU_ATTRS(MU_A_BOOL("is_training", true), MU_A_FLOAT("epsilon", 0.1f))))
CASE(y_fusedbatchnormv3_inference,
     mu_op(b, "FusedBatchNormV3", MU_IN(x, row(b, 2), row(b, 2), row(b, 2), row(b, 2)),
	   MU_ATTRS(MU_A_BOOL("is_training", false), MU_A_FLOAT("epsilon", 0.1f))))
CASE(y_logsoftmax, mu_op(b, "LogSoftmax", MU_IN(x)))
CASE(y_softmaxcrossentropywithlogits_labels, mu_softmax_xent(b, values(b, 3, 4, 1), x))
CASE(y_leakyrelu, mu_op(b, "LeakyRelu", MU_IN(x), MU_ATTRS(MU_A_FLOAT("alpha", 0.1f))))
CASE(y_leakyrelugrad,
     mu_op(b, "LeakyReluGrad", MU_IN(x, values(b, 3, 4, 1)), MU_ATTRS(MU_A_FLOAT("alpha", 0.1f))))
CASE(y_bias_v1, mu_op(b, "BiasAddV1", MU_IN(values(b, 3, 4, 1), x)))
CASE(y_biasaddgrad, mu_op(b, "BiasAddGrad", MU_IN(x)))

/* Adds a pooling gradient op for a side x side image of two channels, with window `size` and stride
 * 2. The pooled tensor is the real output: TensorFlow's MaxPoolGradGrad searches it in the image.
 */
static struct mu_out pooled_grad(struct mu_builder *b, const char *op, int side, int size,
				 const char *padding, struct mu_out x)
{
	struct mu_out image =
	    mu_reshape(b, values(b, side * 2, side, 0), ints(b, 4, (int32_t[]){1, side, side, 2}));
	struct mu_node_attr attrs[] = {int_list("ksize", 4, (int64_t[]){1, size, size, 1}),
				       int_list("strides", 4, (int64_t[]){1, 2, 2, 1}),
				       MU_A_STR("padding", padding)};
	struct mu_out in[] = {image, image, x, ints(b, 4, (int32_t[]){1, size, size, 1}),
			      ints(b, 4, (int32_t[]){1, 2, 2, 1})};
	bool newer = op[strlen(op) - 1] == '2'; /* the window is an input */

	in[1] =
	    mu_op_add(b, &(struct mu_op_args){
			     .op = "MaxPool", .in = in, .n_in = 1, .attrs = attrs, .n_attrs = 3});
	return mu_op_add(b, &(struct mu_op_args){.op = op,
						 .in = in,
						 .n_in = newer ? 5 : 3,
						 .attrs = newer ? attrs + 2 : attrs,
						 .n_attrs = newer ? 1 : 3});
}

CASE(y_maxpoolgrad, pooled_grad(b, "MaxPoolGrad", 5, 2, "SAME", x))
CASE(y_maxpoolgradv2, pooled_grad(b, "MaxPoolGradV2", 4, 2, "VALID", x))
CASE(y_maxpoolgradgrad, pooled_grad(b, "MaxPoolGradGrad", 5, 3, "SAME", x))
CASE(y_maxpoolgradgradv2, pooled_grad(b, "MaxPoolGradGradV2", 4, 2, "VALID", x))

/* A batch normalisation gradient op whose input `at` is x; the other inputs are constants. */
static struct mu_out batch_norm_grad(struct mu_builder *b, const char *op, struct mu_out x, int at,
				     bool training, int output)
{
	struct mu_out shape = ints(b, 4, (int32_t[]){1, 2, 3, 2});
	struct mu_out in[6] = {mu_reshape(b, values(b, 6, 2, 0), shape),
			       mu_reshape(b, values(b, 6, 2, 4), shape),
			       row(b, 2),
			       row(b, 2),
			       row(b, 2),
			       mu_const_float(b, 0)};
	struct mu_node_attr attrs[] = {MU_A_BOOL("is_training", training),
				       MU_A_FLOAT("epsilon", 0.1f)};

	in[at] = x;
	if (training) { /* reserve outputs of the layer */
		struct mu_out over = ints(b, 3, (int32_t[]){0, 1, 2});
		struct mu_out copy = mu_op(b, "StopGradient", MU_IN(in[1]));

		in[3] = mu_op(b, "Mean", MU_IN(copy, over));
		in[4] = mu_sub(b, mu_op(b, "Mean", MU_IN(mu_square(b, copy), over)),
			       mu_square(b, in[3]));
	}
	return mu_port(mu_op_add(b, &(struct mu_op_args){.op = op,
							 .in = in,
							 .n_in = op[strlen(op) - 1] == '3' ? 6 : 5,
							 .attrs = attrs,
							 .n_attrs = 2}),
		       output);
}

#define BATCH_NORM_GRAD(fn, op, at, training, output)                                              \
	CASE(fn, batch_norm_grad(b, op, x, at, training, output))

BATCH_NORM_GRAD(y_bn1, "FusedBatchNormGrad", 0, true, 0)

BATCH_NORM_GRAD(y_bn2, "FusedBatchNormGradV2", 1, true, 0)

BATCH_NORM_GRAD(y_bn3_dy, "FusedBatchNormGradV3", 0, true, 1)

BATCH_NORM_GRAD(y_bn3_x, "FusedBatchNormGradV3", 1, true, 0)

BATCH_NORM_GRAD(y_bn3_x_scale, "FusedBatchNormGradV3", 1, true, 1)

BATCH_NORM_GRAD(y_bn3_offset, "FusedBatchNormGradV3", 0, true, 2)

BATCH_NORM_GRAD(y_bn3_scale, "FusedBatchNormGradV3", 2, true, 0)

BATCH_NORM_GRAD(y_bn3_fixed, "FusedBatchNormGradV3", 0, false, 0)

BATCH_NORM_GRAD(y_bn3_fixed_x, "FusedBatchNormGradV3", 1, false, 1)

/* BatchNormWithGlobalNormalization whose input `at` is x; the other inputs are constants. */
static struct mu_out global_norm(struct mu_builder *b, struct mu_out x, int at, bool scaled)
{
	struct mu_out in[] = {
	    mu_reshape(b, values(b, 6, 2, 0), ints(b, 4, (int32_t[]){1, 2, 3, 2})), row(b, 2),
	    mu_square(b, row(b, 2)), row(b, 2), row(b, 2)};
	struct mu_node_attr attrs[] = {MU_A_FLOAT("variance_epsilon", 0.5f),
				       MU_A_BOOL("scale_after_normalization", scaled)};

	in[at] = x;
	return mu_op_add(b, &(struct mu_op_args){.op = "BatchNormWithGlobalNormalization",
						 .in = in,
						 .n_in = 5,
						 .attrs = attrs,
						 .n_attrs = 2});
}

CASE(y_global_norm_t, global_norm(b, x, 0, true))
CASE(y_global_norm_m, global_norm(b, x, 1, true))
CASE(y_global_norm_v, global_norm(b, x, 2, true))
CASE(y_global_norm_beta, global_norm(b, x, 3, true))
CASE(y_global_norm_gamma, global_norm(b, x, 4, true))
CASE(y_global_norm_unscaled, global_norm(b, x, 2, false))
CASE(
    y_lrngrad_dy,
    mu_op(b, "LRNGrad",
	  MU_IN(x, mu_reshape(b, values(b, 4, 4, 0), ints(b, 4, (int32_t[]){1, 2, 2, 4})),
		mu_op(b, "LRN",
		      MU_IN(mu_reshape(b, values(b, 4, 4, 0), ints(b, 4, (int32_t[]){1, 2, 2, 4}))),
		      MU_ATTRS(MU_A_INT("depth_radius", 1)))),
	  MU_ATTRS(MU_A_INT("depth_radius", 1))))
CASE(y_lrngrad_x,
     mu_op(b, "LRNGrad",
	   MU_IN(mu_reshape(b, values(b, 4, 4, 0), ints(b, 4, (int32_t[]){1, 2, 2, 4})), x,
		 mu_op(b, "LRN", MU_IN(mu_op(b, "StopGradient", MU_IN(x))),
		       MU_ATTRS(MU_A_INT("depth_radius", 2), MU_A_FLOAT("alpha", 0.5f)))),
	   MU_ATTRS(MU_A_INT("depth_radius", 2), MU_A_FLOAT("alpha", 0.5f))))

/* ---- 3-D: a cube of one channel, a filter with two output channels, stride 2 ---- */
#define STEPS int_list("strides", 5, (int64_t[]){1, 2, 2, 2, 1}), MU_A_STR("padding", "SAME")

#define POOL MU_ATTRS(int_list("ksize", 5, (int64_t[]){1, 2, 2, 2, 1}), STEPS)

static struct mu_out sizes(struct mu_builder *b, int d, int in, int out)
{
	return ints(b, 5, in ? (int32_t[]){d, d, d, in, out} : (int32_t[]){1, d, d, d, out});
}

static struct mu_out of_sizes(struct mu_builder *b, int n, struct mu_out shape)
{
	return mu_reshape(b, values(b, n, 1, 0), shape);
}

CASE(y_conv3d, mu_op(b, "Conv3D", MU_IN(x, of_sizes(b, 16, sizes(b, 2, 1, 2))), MU_ATTRS(STEPS)))
CASE(y_conv3d_filter,
     mu_op(b, "Conv3D", MU_IN(of_sizes(b, 27, sizes(b, 3, 0, 1)), x), MU_ATTRS(STEPS)))
CASE(y_conv3d_to_input,
     mu_op(b, "Conv3DBackpropInputV2",
	   MU_IN(sizes(b, 3, 0, 1), x, of_sizes(b, 16, sizes(b, 2, 0, 2))), MU_ATTRS(STEPS)))
CASE(y_conv3d_to_input_dy,
     mu_op(b, "Conv3DBackpropInputV2",
	   MU_IN(sizes(b, 3, 0, 1), of_sizes(b, 16, sizes(b, 2, 1, 2)), x), MU_ATTRS(STEPS)))
CASE(y_conv3d_to_filter,
     mu_op(b, "Conv3DBackpropFilterV2",
	   MU_IN(x, sizes(b, 2, 1, 2), of_sizes(b, 16, sizes(b, 2, 0, 2))), MU_ATTRS(STEPS)))
CASE(y_conv3d_to_filter_dy,
     mu_op(b, "Conv3DBackpropFilterV2",
	   MU_IN(of_sizes(b, 27, sizes(b, 3, 0, 1)), sizes(b, 2, 1, 2), x), MU_ATTRS(STEPS)))
CASE(y_avgpool3d, mu_op(b, "AvgPool3D", MU_IN(x), POOL))
CASE(y_avgpool3dgrad, mu_op(b, "AvgPool3DGrad", MU_IN(sizes(b, 3, 0, 1), x), POOL))
CASE(y_maxpool3d, mu_op(b, "MaxPool3D", MU_IN(x), POOL))

/* A gradient op of MaxPool3D for a volume of 3 x 3 x 3 elements, with the real output. */
static struct mu_out pooled3d_grad(struct mu_builder *b, const char *op, struct mu_out x)
{
	struct mu_out volume = of_sizes(b, 27, sizes(b, 3, 0, 1));

	return mu_op(b, op, MU_IN(volume, mu_op(b, "MaxPool3D", MU_IN(volume), POOL), x), POOL);
}
CASE(y_maxpool3dgrad, pooled3d_grad(b, "MaxPool3DGrad", x))
CASE(y_maxpool3dgradgrad, pooled3d_grad(b, "MaxPool3DGradGrad", x))

#define FRACTIONAL(op, x, more)                                                                    \
	mu_op(b, op, MU_IN(x),                                                                     \
	      MU_ATTRS(((struct mu_node_attr){"pooling_ratio",                                     \
					      {.kind = MU_ATTR_LIST + MU_ATTR_FLOAT,               \
					       .n = 4,                                             \
					       .fs = (float[]){1, 1.5f, 1.3f, 1}}}),               \
		       MU_A_BOOL("deterministic", true), MU_A_INT("seed", 3), more))
CASE(y_fractional_max, FRACTIONAL("FractionalMaxPool", x, MU_A_BOOL("overlapping", true)))
CASE(y_fractional_avg, FRACTIONAL("FractionalAvgPool", x, MU_A_BOOL("overlapping", true)))
CASE(y_fractional_avg_apart, FRACTIONAL("FractionalAvgPool", x, MU_A_BOOL("pseudo_random", true)))

#define DILATED(x, filter)                                                                         \
	mu_op(b, "Dilation2D", MU_IN(x, filter),                                                   \
	      MU_ATTRS(int_list("strides", 4, (int64_t[]){1, 1, 2, 1}),                            \
		       int_list("rates", 4, (int64_t[]){1, 1, 1, 1}),                              \
		       MU_A_STR("padding", "SAME")))

CASE(y_dilation, DILATED(x, mu_reshape(b, values(b, 6, 2, 0), ints(b, 3, (int32_t[]){2, 3, 2}))))
CASE(y_dilation_filter, DILATED(IMAGES, x))

static const struct gradient_case nn_cases[] = {
    {"BiasAdd", {2, {-1, 4}}, y_bias_add, -1, 1},
    {"BiasAddV1", {1, {4}}, y_bias_v1, -1, 1},
    {"BiasAdd, bias", {1, {4}}, y_bias, -1, 1},
    {"Relu", {2, {3, 4}}, y_relu, -1, 1},
    {"Softmax", {2, {3, 4}}, y_softmax, -1, 1},
    {"SoftmaxCrossEntropyWithLogits", {2, {3, 4}}, y_xent, -1, 1},
    {"SparseSoftmaxCrossEntropyWithLogits", {2, {-1, 4}}, y_sparse_xent, -1, 1},
    {"SoftmaxCrossEntropyWithLogits, both outputs", {2, {3, 4}}, y_xent_outputs, -1, 1},
    {"SoftmaxCrossEntropyWithLogits, both outputs by labels",
     {2, {3, 4}},
     y_xent_outputs_labels,
     0.1f,
     1},
    {"SparseSoftmaxCrossEntropyWithLogits, both outputs",
     {2, {3, 4}},
     y_sparse_xent_outputs,
     -1,
     1},
    {"SparseSoftmaxCrossEntropyWithLogits, output 1", {2, {3, 4}}, y_sparse_xent_gradient, -1, 1},
    {"Conv2D, input", {4, {1, 5, 5, 2}}, y_conv2d_input, -1, 1},
    {"Conv2D, filter", {4, {3, 3, 2, 2}}, y_conv2d_filter, -1, 1},
    {"Conv2DBackpropInput, filter", {4, {3, 3, 2, 2}}, y_conv2dbackpropinput_filter, -1, 1},
    {"Conv2DBackpropInput, gradient", {4, {1, 3, 3, 2}}, y_conv2dbackpropinput_gradient, -1, 1},
    {"Conv2DBackpropFilter, input", {4, {1, 5, 5, 2}}, y_conv2dbackpropfilter_input, -1, 1},
    {"Conv2DBackpropFilter, gradient", {4, {1, 3, 3, 2}}, y_conv2dbackpropfilter_gradient, -1, 1},
    {"DepthwiseConv2dNative, input", {4, {1, 5, 5, 2}}, y_depthwiseconv2dnative_input, -1, 1},
    {"DepthwiseConv2dNative, filter", {4, {3, 3, 2, 1}}, y_depthwiseconv2dnative_filter, -1, 1},
    {"DepthwiseConv2dNativeBackpropInput, filter",
     {4, {3, 3, 2, 1}},
     y_depthwiseconv2dnativebackpropinput_filter,
     -1,
     1},
    {"DepthwiseConv2dNativeBackpropInput, gradient",
     {4, {1, 3, 3, 2}},
     y_depthwiseconv2dnativebackpropinput_gradient,
     -1,
     1},
    {"DepthwiseConv2dNativeBackpropFilter, input",
     {4, {1, 5, 5, 2}},
     y_depthwiseconv2dnativebackpropfilter_input,
     -1,
     1},
    {"DepthwiseConv2dNativeBackpropFilter, gradient",
     {4, {1, 3, 3, 2}},
     y_depthwiseconv2dnativebackpropfilter_gradient,
     -1,
     1},
    {"MaxPool", {4, {1, 5, 5, 2}}, y_maxpool, -1, 1},
    {"AvgPool", {4, {1, 5, 5, 2}}, y_avgpool, -1, 1},
    {"AvgPoolGrad", {4, {1, 3, 3, 2}}, y_avgpoolgrad, -1, 1},
    {"MaxPoolV2", {4, {1, 4, 4, 2}}, y_maxpoolv2, -1, 1},
    {"LRN", {4, {1, 2, 2, 4}}, y_lrn, 0.5f, 2},
    {"FusedBatchNorm, x", {4, {1, 2, 3, 2}}, y_fusedbatchnorm_x, -1, 1},
    {"FusedBatchNormV2, x", {4, {1, 2, 3, 2}}, y_fusedbatchnormv2_x, -1, 1},
    {"FusedBatchNormV3, x", {4, {1, 2, 3, 2}}, y_fusedbatchnormv3_x, -1, 1},
    {"FusedBatchNormV3, scale", {1, {2}}, y_fusedbatchnormv3_scale, 0.5f, 1},
    {"FusedBatchNormV3, offset", {1, {2}}, y_fusedbatchnormv3_offset, 0.5f, 1},
    {"FusedBatchNormV3, inference", {4, {1, 2, 3, 2}}, y_fusedbatchnormv3_inference, -1, 1},
    {"LogSoftmax", {2, {3, 4}}, y_logsoftmax, -1, 1},
    {"SoftmaxCrossEntropyWithLogits, labels",
     {2, {3, 4}},
     y_softmaxcrossentropywithlogits_labels,
     0.1f,
     1},
    {"LeakyRelu", {2, {3, 4}}, y_leakyrelu, -1, 1},
    {"LeakyReluGrad", {2, {3, 4}}, y_leakyrelugrad, -1, 1},
    {"BiasAddGrad", {2, {3, 4}}, y_biasaddgrad, -1, 1},
    {"BatchNormWithGlobalNormalization, t", {4, {1, 2, 3, 2}}, y_global_norm_t, -1, 1},
    {"BatchNormWithGlobalNormalization, m", {1, {2}}, y_global_norm_m, -1, 1},
    {"BatchNormWithGlobalNormalization, v", {1, {2}}, y_global_norm_v, 0.5, 2},
    {"BatchNormWithGlobalNormalization, beta", {1, {2}}, y_global_norm_beta, -1, 1},
    {"BatchNormWithGlobalNormalization, gamma", {1, {2}}, y_global_norm_gamma, -1, 1},
    {"BatchNormWithGlobalNormalization, unscaled", {1, {2}}, y_global_norm_unscaled, 0.5, 2},
    {"Conv3D", {5, {1, 3, 3, 3, 1}}, y_conv3d, -1, 1},
    {"Conv3D, filter", {5, {2, 2, 2, 1, 2}}, y_conv3d_filter, -1, 1},
    {"Conv3DBackpropInputV2, filter", {5, {2, 2, 2, 1, 2}}, y_conv3d_to_input, -1, 1},
    {"Conv3DBackpropInputV2, dy", {5, {1, 2, 2, 2, 2}}, y_conv3d_to_input_dy, -1, 1},
    {"Conv3DBackpropFilterV2, x", {5, {1, 3, 3, 3, 1}}, y_conv3d_to_filter, -1, 1},
    {"Conv3DBackpropFilterV2, dy", {5, {1, 2, 2, 2, 2}}, y_conv3d_to_filter_dy, -1, 1},
    {"AvgPool3D", {5, {1, 3, 3, 3, 1}}, y_avgpool3d, -1, 1},
    {"AvgPool3DGrad", {5, {1, 2, 2, 2, 1}}, y_avgpool3dgrad, -1, 1},
    {"MaxPool3D", {5, {1, 3, 3, 3, 1}}, y_maxpool3d, -1, 1},
    {"MaxPool3DGrad", {5, {1, 2, 2, 2, 1}}, y_maxpool3dgrad, -1, 1},
    {"MaxPool3DGradGrad", {5, {1, 3, 3, 3, 1}}, y_maxpool3dgradgrad, -1, 1},
    {"FractionalMaxPool", {4, {1, 5, 5, 2}}, y_fractional_max, -1, 1},
    {"FractionalAvgPool, overlapping", {4, {1, 5, 5, 2}}, y_fractional_avg, -1, 1},
    {"FractionalAvgPool", {4, {1, 5, 5, 2}}, y_fractional_avg_apart, -1, 1},
    {"MaxPoolGrad", {4, {1, 3, 3, 2}}, y_maxpoolgrad, -1, 1},
    {"MaxPoolGradV2", {4, {1, 2, 2, 2}}, y_maxpoolgradv2, -1, 1},
    {"MaxPoolGradGrad", {4, {1, 5, 5, 2}}, y_maxpoolgradgrad, -1, 1},
    {"MaxPoolGradGradV2", {4, {1, 4, 4, 2}}, y_maxpoolgradgradv2, -1, 1},
    {"FusedBatchNormGrad, dy", {4, {1, 2, 3, 2}}, y_bn1, -1, 1},
    {"FusedBatchNormGradV2, x", {4, {1, 2, 3, 2}}, y_bn2, -1, 1},
    {"FusedBatchNormGradV3, scale by dy", {4, {1, 2, 3, 2}}, y_bn3_dy, -1, 1},
    {"FusedBatchNormGradV3, x by x", {4, {1, 2, 3, 2}}, y_bn3_x, -1, 1},
    {"FusedBatchNormGradV3, scale by x", {4, {1, 2, 3, 2}}, y_bn3_x_scale, -1, 1},
    {"FusedBatchNormGradV3, offset by dy", {4, {1, 2, 3, 2}}, y_bn3_offset, -1, 1},
    {"FusedBatchNormGradV3, x by scale", {1, {2}}, y_bn3_scale, 0.5f, 1},
    {"FusedBatchNormGradV3, inference", {4, {1, 2, 3, 2}}, y_bn3_fixed, -1, 1},
    {"FusedBatchNormGradV3, inference, by x", {4, {1, 2, 3, 2}}, y_bn3_fixed_x, -1, 1},
    {"LRNGrad, dy", {4, {1, 2, 2, 4}}, y_lrngrad_dy, -1, 1},
    {"LRNGrad, x", {4, {1, 2, 2, 4}}, y_lrngrad_x, 0.5f, 2},
    {"Dilation2D", {4, {2, 3, 4, 2}}, y_dilation, -1, 1},
    {"Dilation2D of filters", {3, {2, 3, 2}}, y_dilation_filter, -1, 1},
};

#endif
