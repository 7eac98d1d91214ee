/* SPDX-License-Identifier: Apache-2.0 */
/* More of what the gradient test differentiates: second derivatives of layers, diagonals, sparse
 * tensors, tensor arrays. */
#ifndef TESTS_CLIENT_GRADIENT_CASES_MORE_H
#define TESTS_CLIENT_GRADIENT_CASES_MORE_H

#include "tests/client/gradient_cases.h"

/* Of an image of `side` by `side` pixels and two channels, pooled by windows of `size`, two apart.
 * What it was pooled to is really that: TensorFlow's MaxPoolGradGrad looks for it in the image. */
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
	bool newer = op[strlen(op) - 1] == '2'; /* windows are inputs */

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
/* Input `at` of the gradient of a batch normalisation is x, the others are fixed. */
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
	if (training) { /* what the layer would have handed on */
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
/* Input `at` is x, the others are fixed. */
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
CASE(y_polygamma, mu_op(b, "Polygamma", MU_IN(mu_const_float(b, 2), x)))
CASE(y_zeta, mu_op(b, "Zeta", MU_IN(mu_const_float(b, 2.5f), x)))
CASE(y_matrixdiag, mu_op(b, "MatrixDiag", MU_IN(x)))
CASE(y_matrixdiagpart, mu_op(b, "MatrixDiagPart", MU_IN(x)))
CASE(y_matrixsetdiag, mu_op(b, "MatrixSetDiag", MU_IN(x, values(b, 2, 3, 0))))
CASE(y_matrixsetdiag_diagonal,
     mu_op(b, "MatrixSetDiag",
	   MU_IN(mu_reshape(b, values(b, 6, 4, 0), ints(b, 3, (int32_t[]){2, 3, 4})), x)))
CASE(y_matrixdiagv3, mu_op(b, "MatrixDiagV3",
			   MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_int(b, MU_INT32, 3),
				 mu_const_int(b, MU_INT32, 4), mu_const_float(b, 7))))
CASE(y_matrixdiagv3_filling,
     mu_op(b, "MatrixDiagV3",
	   MU_IN(values(b, 3, 3, 0), ints(b, 2, (int32_t[]){-1, 1}), mu_const_int(b, MU_INT32, 3),
		 mu_const_int(b, MU_INT32, 4), mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_matrixdiagpartv3,
     mu_op(b, "MatrixDiagPartV3", MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_float(b, 7)),
	   MU_ATTRS(MU_A_STR("align", "LEFT_RIGHT"))))
CASE(y_matrixdiagpartv3_filling, mu_op(b, "MatrixDiagPartV3",
				       MU_IN(values(b, 3, 4, 0), ints(b, 2, (int32_t[]){-1, 1}),
					     mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_matrixsetdiagv3,
     mu_op(b, "MatrixSetDiagV3", MU_IN(x, values(b, 2, 3, 0), ints(b, 2, (int32_t[]){0, 1}))))
CASE(y_matrixsetdiagv3_diagonal,
     mu_op(b, "MatrixSetDiagV3", MU_IN(values(b, 3, 4, 0), x, ints(b, 2, (int32_t[]){0, 1}))))
CASE(y_matrixdiagv2, mu_op(b, "MatrixDiagV2",
			   MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_int(b, MU_INT32, 3),
				 mu_const_int(b, MU_INT32, 4), mu_const_float(b, 7))))
CASE(y_matrixdiagpartv2,
     mu_op(b, "MatrixDiagPartV2", MU_IN(x, ints(b, 2, (int32_t[]){-1, 1}), mu_const_float(b, 7))))
CASE(y_matrixsetdiagv2,
     mu_op(b, "MatrixSetDiagV2", MU_IN(x, values(b, 2, 3, 0), ints(b, 2, (int32_t[]){0, 1}))))
CASE(y_mirrorpadgrad_reflect,
     mu_op(b, "MirrorPadGrad", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 0, 2, 1})),
	   MU_ATTRS(MU_A_STR("mode", "REFLECT"))))
CASE(y_mirrorpadgrad_symmetric,
     mu_op(b, "MirrorPadGrad", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 2, 2, 0})),
	   MU_ATTRS(MU_A_STR("mode", "SYMMETRIC"))))
CASE(y_cross, mu_op(b, "Cross", MU_IN(x, values(b, 4, 3, 0))))
CASE(y_cross_second, mu_op(b, "Cross", MU_IN(values(b, 4, 3, 0), x)))
CASE(y_topk, mu_op(b, "TopK", MU_IN(x), MU_ATTRS(MU_A_INT("k", 2))))
CASE(y_nthelement, mu_op(b, "NthElement", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_sparsesegmentsqrtnwithnumsegments,
     mu_op(b, "SparseSegmentSqrtNWithNumSegments",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}),
		 mu_const_int(b, MU_INT32, 3))))
CASE(y_scatterndnonaliasingadd,
     mu_op(b, "ScatterNdNonAliasingAdd",
	   MU_IN(x, table(b, 2, 1, (int32_t[]){2, 2}), values(b, 2, 2, 0))))
CASE(y_scatterndnonaliasingadd_updates,
     mu_op(b, "ScatterNdNonAliasingAdd",
	   MU_IN(values(b, 3, 2, 0), table(b, 2, 1, (int32_t[]){2, 0}), x)))
CASE(y_sparsereorder,
     mu_port(mu_op(b, "SparseReorder",
		   MU_IN(long_ints(b, table(b, 3, 2, (int32_t[]){2, 0, 0, 1, 1, 3})), x,
			 long_ints(b, ints(b, 2, (int32_t[]){3, 4})))),
	     1))
/* A is 3 by 4 and has x, or values of its own, at (0, 1), (2, 3) and (2, 0). */
static struct mu_out sparse_product(struct mu_builder *b, struct mu_out values_of_a,
				    struct mu_out right, bool turn_a, bool turn_b)
{
	return mu_op(b, "SparseTensorDenseMatMul",
		     MU_IN(long_ints(b, table(b, 3, 2, (int32_t[]){0, 1, 2, 3, 2, 0})), values_of_a,
			   long_ints(b, ints(b, 2, (int32_t[]){3, 4})), right),
		     MU_ATTRS(MU_A_BOOL("adjoint_a", turn_a), MU_A_BOOL("adjoint_b", turn_b)));
}
CASE(y_sparseproduct, sparse_product(b, x, values(b, 4, 2, 0), false, false))
CASE(y_sparseproduct_turned, sparse_product(b, x, values(b, 2, 3, 0), true, true))
CASE(y_sparseproduct_right, sparse_product(b, row(b, 3), x, false, false))
CASE(y_sparseproduct_right_turned, sparse_product(b, row(b, 3), x, true, true))
CASE(y_gatherv2_behind_batches,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){1, 1, 2, 0}), mu_const_int(b, MU_INT32, 2)),
	   MU_ATTRS(MU_A_INT("batch_dims", 1))))
/* Reads 1, 0 and 1 again of an array that rows 2 and 0 of x² were written to. */
static struct mu_out through_array(struct mu_builder *b, struct mu_out x)
{
	struct mu_out y = mu_square(b, x), parts[3];
	struct mu_out array =
	    mu_op(b, "TensorArrayV3", MU_IN(mu_const_int(b, MU_INT32, 2)),
		  MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT), MU_A_BOOL("clear_after_read", false)));
	struct mu_out flow = mu_port(array, 1);

	for (int i = 0; i < 2; i++)
		flow =
		    mu_op(b, "TensorArrayWriteV3",
			  MU_IN(array, mu_const_int(b, MU_INT32, i),
				mu_op(b, "Gather", MU_IN(y, mu_const_int(b, MU_INT32, 2 - 2 * i))),
				flow));
	for (int i = 0; i < 3; i++)
		parts[i] = mu_op(b, "TensorArrayReadV3",
				 MU_IN(array, mu_const_int(b, MU_INT32, i != 1), flow),
				 MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	return mu_op(b, "Pack", MU_IN(parts[0], parts[1], parts[2]));
}
/* The rows of x are scattered and gathered in another order, then joined and split. */
static struct mu_out through_arrays(struct mu_builder *b, struct mu_out x)
{
	struct mu_out two = mu_const_int(b, MU_INT32, 2), array, flow, rows;

	array = mu_op(b, "TensorArrayV3", MU_IN(mu_const_int(b, MU_INT32, 3)),
		      MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	flow = mu_op(
	    b, "TensorArrayScatterV3",
	    MU_IN(array, ints(b, 3, (int32_t[]){2, 0, 1}), mu_square(b, x), mu_port(array, 1)));
	rows = mu_op(b, "TensorArrayGatherV3", MU_IN(array, ints(b, 3, (int32_t[]){0, 1, 2}), flow),
		     MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	array = mu_op(b, "TensorArrayV3", MU_IN(two), MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
	flow = mu_op(
	    b, "TensorArraySplitV3",
	    MU_IN(array, rows, long_ints(b, ints(b, 2, (int32_t[]){2, 1})), mu_port(array, 1)));
	return mu_op(b, "TensorArrayConcatV3", MU_IN(array, flow),
		     MU_ATTRS(MU_A_TYPE("dtype", MU_FLOAT)));
}

CASE(y_band, mu_op(b, "MatrixBandPart",
		   MU_IN(x, long_ints(b, mu_const_int(b, MU_INT32, 1)),
			 long_ints(b, mu_const_int(b, MU_INT32, 0)))))
#define SCATTER(fn, op, target, updates)                                                           \
	CASE(fn, mu_op(b, op, MU_IN(target, table(b, 3, 1, (int32_t[]){2, 0, 2}), updates)))
SCATTER(y_scatteradd, "TensorScatterAdd", x, values(b, 3, 2, 0))
SCATTER(y_scatteradd_updates, "TensorScatterAdd", values(b, 3, 2, 0), x)
SCATTER(y_scattersub, "TensorScatterSub", x, values(b, 3, 2, 0))
SCATTER(y_scattersub_updates, "TensorScatterSub", values(b, 3, 2, 0), x)
SCATTER(y_scattermax, "TensorScatterMax", x, values(b, 3, 2, 0))
SCATTER(y_scattermax_updates, "TensorScatterMax", values(b, 3, 2, 0), x)
SCATTER(y_scattermin, "TensorScatterMin", x, values(b, 3, 2, 0))
SCATTER(y_scattermin_updates, "TensorScatterMin", values(b, 3, 2, 0), x)
CASE(y_scatterupdate, mu_op(b, "TensorScatterUpdate",
			    MU_IN(x, table(b, 2, 1, (int32_t[]){2, 0}), values(b, 2, 2, 0))))
CASE(y_scatterupdate_updates,
     mu_op(b, "TensorScatterUpdate",
	   MU_IN(values(b, 3, 2, 0), table(b, 2, 1, (int32_t[]){2, 0}), x)))
CASE(y_cumsum, mu_op(b, "Cumsum", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_cumsum_exclusive, mu_op(b, "Cumsum", MU_IN(x, mu_const_int(b, MU_INT32, 0)),
			       MU_ATTRS(MU_A_BOOL("exclusive", true), MU_A_BOOL("reverse", true))))
CASE(y_cumprod, mu_op(b, "Cumprod", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_cumprod_exclusive, mu_op(b, "Cumprod", MU_IN(x, mu_const_int(b, MU_INT32, 0)),
				MU_ATTRS(MU_A_BOOL("exclusive", true), MU_A_BOOL("reverse", true))))

/* z = x + i y goes through an op, and a part of what comes is looked at. */
static struct mu_out complex_of(struct mu_builder *b, struct mu_out x, struct mu_out y)
{
	return mu_op(b, "Complex", MU_IN(x, y));
}
static struct mu_out imag(struct mu_builder *b, struct mu_out z)
{
	return mu_op(b, "Imag", MU_IN(z));
}
CASE(y_complex, mu_op(b, "Real", MU_IN(complex_of(b, mu_square(b, x), row(b, 4)))))
CASE(y_complex_row, imag(b, complex_of(b, values(b, 3, 4, 0), x)))
CASE(y_complex_abs, mu_op(b, "ComplexAbs", MU_IN(complex_of(b, x, values(b, 3, 4, 0)))))
CASE(y_complex_abs_imag, mu_op(b, "ComplexAbs", MU_IN(complex_of(b, values(b, 3, 4, 0), x))))
CASE(y_angle, mu_op(b, "Angle", MU_IN(complex_of(b, x, mu_add(b, x, values(b, 3, 4, 0))))))
static struct mu_out products(struct mu_builder *b, struct mu_out x, const char *part)
{
	struct mu_out z = complex_of(b, x, mu_square(b, x));
	struct mu_out w = complex_of(b, values(b, 3, 4, 0), values(b, 3, 4, 1));
	struct mu_out y = mu_sub(b, mu_mul(b, mu_mul(b, z, w), mu_neg(b, z)),
				 mu_op(b, "Conj", MU_IN(mu_add(b, z, mu_identity(b, z)))));

	return mu_op(b, part, MU_IN(y));
}
CASE(y_complex_products, products(b, x, "Real"))
CASE(y_complex_products_imag, products(b, x, "Imag"))
static struct mu_out wide_complex(struct mu_builder *b, struct mu_out x)
{
	struct mu_out d = mu_cast(b, x, MU_DOUBLE), y;
	struct mu_out z = mu_op(b, "Complex", MU_IN(d, mu_square(b, d)),
				MU_ATTRS(MU_A_TYPE("Tout", MU_COMPLEX128)));

	y = mu_op(b, "ComplexAbs", MU_IN(mu_mul(b, z, z)), MU_ATTRS(MU_A_TYPE("Tout", MU_DOUBLE)));
	return mu_cast(b, y, MU_FLOAT);
}
CASE(y_complex_wide, wide_complex(b, x))

/* Both parts of what a transform gives of complex numbers; of reals, cut to its length. */
static struct mu_out parts(struct mu_builder *b, struct mu_out z)
{
	return mu_add(b, mu_op(b, "Real", MU_IN(z)), mu_square(b, imag(b, z)));
}
#define TRANSFORMED(op) parts(b, mu_op(b, (op), MU_IN(complex_of(b, x, mu_square(b, x)))))
#define TO_HALF(op, ...)                                                                           \
	parts(b, mu_op(b, (op),                                                                    \
		       MU_IN(x, ints(b, MU_COUNT(((int32_t[]){__VA_ARGS__})),                      \
				     (int32_t[]){__VA_ARGS__}))))
#define TO_REALS(op, ...)                                                                          \
	mu_op(b, (op),                                                                             \
	      MU_IN(complex_of(b, x, mu_square(b, x)),                                             \
		    ints(b, MU_COUNT(((int32_t[]){__VA_ARGS__})), (int32_t[]){__VA_ARGS__})))
CASE(y_fft, TRANSFORMED("FFT"))
CASE(y_ifft, TRANSFORMED("IFFT"))
CASE(y_fft_2d, TRANSFORMED("FFT2D"))
CASE(y_ifft_2d, TRANSFORMED("IFFT2D"))
CASE(y_fft_3d, TRANSFORMED("FFT3D"))
CASE(y_ifft_3d, TRANSFORMED("IFFT3D"))
CASE(y_rfft, TO_HALF("RFFT", 4))
CASE(y_rfft_odd, TO_HALF("RFFT", 5))
CASE(y_rfft_short, TO_HALF("RFFT", 3))
CASE(y_rfft_2d, TO_HALF("RFFT2D", 2, 3))
CASE(y_rfft_3d, TO_HALF("RFFT3D", 2, 3, 2))
CASE(y_irfft, TO_REALS("IRFFT", 4))
CASE(y_irfft_odd, TO_REALS("IRFFT", 5))
CASE(y_irfft_cut, TO_REALS("IRFFT", 2))
CASE(y_irfft_one, TO_REALS("IRFFT", 1))
CASE(y_irfft_2d, TO_REALS("IRFFT2D", 2, 5))
CASE(y_irfft_3d, TO_REALS("IRFFT3D", 2, 3, 2))

/* What would be below the diagonal, or above it, is not looked at. */
static struct mu_out solved(struct mu_builder *b, struct mu_out a, struct mu_out x, bool lower,
			    bool adjoint)
{
	return mu_op(b, "MatrixTriangularSolve", MU_IN(a, x),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}
static struct mu_out of_bands(struct mu_builder *b, struct mu_out bands, struct mu_out right,
			      bool lower, bool adjoint)
{
	return mu_op(b, "BandedTriangularSolve", MU_IN(bands, right),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}
CASE(y_banded, of_bands(b, x, values(b, 4, 2, 0), true, false))
CASE(y_banded_upper, of_bands(b, x, values(b, 4, 2, 0), false, false))
CASE(y_banded_turned, of_bands(b, x, values(b, 4, 2, 0), true, true))
CASE(y_banded_upper_turned, of_bands(b, x, values(b, 4, 2, 0), false, true))
CASE(y_triangular, solved(b, x, values(b, 3, 2, 0), true, false))
CASE(y_triangular_upper, solved(b, x, values(b, 3, 2, 0), false, false))
CASE(y_triangular_turned, solved(b, x, values(b, 3, 2, 0), true, true))
CASE(y_triangular_upper_turned, solved(b, x, values(b, 3, 2, 0), false, true))
CASE(y_triangular_right,
     solved(b, mu_op(b, "MatrixSetDiag", MU_IN(values(b, 3, 3, 0), row(b, 3))), x, false, true))
/* One matrix for two right sides, and the other way round. */
CASE(y_triangular_many,
     solved(b, x, mu_reshape(b, values(b, 6, 2, 0), mu_const_ints(b, (int32_t[]){2, 3, 2}, 3)),
	    true, false))
CASE(y_triangular_many_right,
     solved(b,
	    mu_op(b, "MatrixSetDiag",
		  MU_IN(mu_reshape(b, values(b, 6, 3, 0),
				   mu_const_ints(b, (int32_t[]){2, 3, 3}, 3)),
			values(b, 2, 3, 0))),
	    x, true, false))
/* With something on the diagonal, so that no column is near another. */
static struct mu_out qr(struct mu_builder *b, struct mu_out x, int diagonal, int output)
{
	struct mu_out eye = mu_op(b, "MatrixDiagPart", MU_IN(x));
	struct mu_out far =
	    mu_op(b, "MatrixSetDiag", MU_IN(x, mu_add(b, eye, mu_const_float(b, (float)diagonal))));

	far = mu_op(b, "EnsureShape", MU_IN(far),
		    MU_ATTRS(MU_A_SHAPE("shape", (void *)mu_out_shape(b, x))));
	return mu_port(mu_op(b, "Qr", MU_IN(far)), output);
}
CASE(y_qr_q, qr(b, x, 3, 0))
CASE(y_qr_r, qr(b, x, 3, 1))
static struct mu_out qr_both(struct mu_builder *b, struct mu_out x)
{
	struct mu_out q = qr(b, x, 3, 0);

	return mu_op(b, "BatchMatMulV2", MU_IN(mu_square(b, q), mu_tanh(b, mu_port(q, 1))));
}
CASE(y_qr_both, qr_both(b, x))

/* ---- three dimensions: a cube of one channel, a filter to two, steps of two ---- */
#define STEPS int_list("strides", 5, (int64_t[]){1, 2, 2, 2, 1}), MU_A_STR("padding", "SAME")
#define POOL  MU_ATTRS(int_list("ksize", 5, (int64_t[]){1, 2, 2, 2, 1}), STEPS)
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

static const struct gradient_case more_cases[] = {
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
    {"BandedTriangularSolve", {2, {2, 4}}, y_banded, 1, 2},
    {"BandedTriangularSolve, upper", {2, {2, 4}}, y_banded_upper, 1, 2},
    {"BandedTriangularSolve, turned", {2, {3, 4}}, y_banded_turned, 1, 2},
    {"BandedTriangularSolve, of many", {3, {2, 2, 4}}, y_banded_upper_turned, 1, 2},
    {"MatrixTriangularSolve", {2, {3, 3}}, y_triangular, 1, 2},
    {"MatrixTriangularSolve, upper", {2, {3, 3}}, y_triangular_upper, 1, 2},
    {"MatrixTriangularSolve, turned", {2, {3, 3}}, y_triangular_turned, 1, 2},
    {"MatrixTriangularSolve, upper, turned", {2, {3, 3}}, y_triangular_upper_turned, 1, 2},
    {"MatrixTriangularSolve, right", {2, {3, 2}}, y_triangular_right, -1, 1},
    {"MatrixTriangularSolve, of many", {2, {3, 3}}, y_triangular_many, 1, 2},
    {"MatrixTriangularSolve, many, right", {2, {3, 2}}, y_triangular_many_right, -1, 1},
    {"Qr, q of a square", {2, {3, 3}}, y_qr_q, -1, 1},
    {"Qr, r of a square", {2, {3, 3}}, y_qr_r, -1, 1},
    {"Qr, q, higher than wide", {2, {4, 3}}, y_qr_q, -1, 1},
    {"Qr, r, higher than wide", {2, {4, 3}}, y_qr_r, -1, 1},
    {"Qr, both, higher than wide", {2, {4, 2}}, y_qr_both, -1, 1},
    {"Qr, q, wider than high", {2, {2, 4}}, y_qr_q, -1, 1},
    {"Qr, r, wider than high", {2, {2, 4}}, y_qr_r, -1, 1},
    {"Qr, both, wider than high", {2, {2, 3}}, y_qr_both, -1, 1},
    {"Qr, both, of a batch", {3, {2, 3, 2}}, y_qr_both, -1, 1},
    {"Complex", {2, {3, 4}}, y_complex, -1, 1},
    {"Complex, its imaginary part from a row", {1, {4}}, y_complex_row, -1, 1},
    {"ComplexAbs", {2, {3, 4}}, y_complex_abs, 0.5f, 2},
    {"ComplexAbs, imaginary", {2, {3, 4}}, y_complex_abs_imag, 0.5f, 2},
    {"Angle", {2, {3, 4}}, y_angle, 1, 2},
    {"complex products and sums", {2, {3, 4}}, y_complex_products, -1, 1},
    {"complex products and sums, imaginary", {2, {3, 4}}, y_complex_products_imag, -1, 1},
    {"complex numbers of doubles", {2, {3, 4}}, y_complex_wide, 0.5f, 1},
    {"FFT", {2, {2, 4}}, y_fft, -1, 1},
    {"IFFT", {2, {2, 4}}, y_ifft, -1, 1},
    {"FFT2D", {3, {2, 2, 3}}, y_fft_2d, -1, 1},
    {"IFFT2D", {2, {3, 4}}, y_ifft_2d, -1, 1},
    {"FFT3D", {3, {2, 2, 2}}, y_fft_3d, -1, 1},
    {"IFFT3D", {3, {2, 2, 2}}, y_ifft_3d, -1, 1},
    {"RFFT", {2, {2, 4}}, y_rfft, -1, 1},
    {"RFFT, odd", {2, {-1, 5}}, y_rfft_odd, -1, 1},
    {"RFFT, cut", {2, {2, 4}}, y_rfft_short, -1, 1},
    {"RFFT2D, cut", {3, {2, 3, 4}}, y_rfft_2d, -1, 1},
    {"RFFT3D", {3, {2, 3, 2}}, y_rfft_3d, -1, 1},
    {"IRFFT", {2, {2, 3}}, y_irfft, -1, 1},
    {"IRFFT, odd", {2, {2, 3}}, y_irfft_odd, -1, 1},
    {"IRFFT, cut", {2, {-1, 3}}, y_irfft_cut, -1, 1},
    {"IRFFT, of one", {2, {2, 3}}, y_irfft_one, -1, 1},
    {"IRFFT2D, cut", {3, {2, 3, 3}}, y_irfft_2d, -1, 1},
    {"IRFFT3D", {3, {2, 3, 2}}, y_irfft_3d, -1, 1},
    {"MatrixBandPart", {2, {3, 4}}, y_band, -1, 1},
    {"TensorScatterAdd", {2, {3, 2}}, y_scatteradd, -1, 1},
    {"TensorScatterAdd, updates", {2, {3, 2}}, y_scatteradd_updates, -1, 1},
    {"TensorScatterSub", {2, {3, 2}}, y_scattersub, -1, 1},
    {"TensorScatterSub, updates", {2, {3, 2}}, y_scattersub_updates, -1, 1},
    {"TensorScatterMax", {2, {3, 2}}, y_scattermax, 0.5f, 2.3f},
    {"TensorScatterMax, updates", {2, {3, 2}}, y_scattermax_updates, 0.5f, 2.3f},
    {"TensorScatterMin", {2, {3, 2}}, y_scattermin, 0.5f, 2.3f},
    {"TensorScatterMin, updates", {2, {3, 2}}, y_scattermin_updates, 0.5f, 2.3f},
    {"TensorScatterUpdate", {2, {3, 2}}, y_scatterupdate, -1, 1},
    {"TensorScatterUpdate, updates", {2, {2, 2}}, y_scatterupdate_updates, -1, 1},
    {"Cumsum", {2, {3, 4}}, y_cumsum, -1, 1},
    {"Cumsum, exclusive and from the back", {2, {3, 4}}, y_cumsum_exclusive, -1, 1},
    {"Cumprod", {2, {3, 4}}, y_cumprod, 0.5f, 2},
    {"Cumprod, exclusive and from the back", {2, {3, 4}}, y_cumprod_exclusive, 0.5f, 2},
    {"MaxPoolGrad", {4, {1, 3, 3, 2}}, y_maxpoolgrad, -1, 1},
    {"MaxPoolGradV2", {4, {1, 2, 2, 2}}, y_maxpoolgradv2, -1, 1},
    {"MaxPoolGradGrad", {4, {1, 5, 5, 2}}, y_maxpoolgradgrad, -1, 1},
    {"MaxPoolGradGradV2", {4, {1, 4, 4, 2}}, y_maxpoolgradgradv2, -1, 1},
    {"FusedBatchNormGrad, dy", {4, {1, 2, 3, 2}}, y_bn1, -1, 1},
    {"FusedBatchNormGradV2, x", {4, {1, 2, 3, 2}}, y_bn2, -1, 1},
    {"FusedBatchNormGradV3, scale's by dy", {4, {1, 2, 3, 2}}, y_bn3_dy, -1, 1},
    {"FusedBatchNormGradV3, x's by x", {4, {1, 2, 3, 2}}, y_bn3_x, -1, 1},
    {"FusedBatchNormGradV3, scale's by x", {4, {1, 2, 3, 2}}, y_bn3_x_scale, -1, 1},
    {"FusedBatchNormGradV3, offset's by dy", {4, {1, 2, 3, 2}}, y_bn3_offset, -1, 1},
    {"FusedBatchNormGradV3, x's by scale", {1, {2}}, y_bn3_scale, 0.5f, 1},
    {"FusedBatchNormGradV3, inference", {4, {1, 2, 3, 2}}, y_bn3_fixed, -1, 1},
    {"FusedBatchNormGradV3, inference, by x", {4, {1, 2, 3, 2}}, y_bn3_fixed_x, -1, 1},
    {"LRNGrad, dy", {4, {1, 2, 2, 4}}, y_lrngrad_dy, -1, 1},
    {"LRNGrad, x", {4, {1, 2, 2, 4}}, y_lrngrad_x, 0.5f, 2},
    {"Polygamma", {2, {3, 4}}, y_polygamma, 1.5f, 4},
    {"Zeta", {2, {3, 4}}, y_zeta, 1, 4},
    {"MatrixDiag", {2, {2, 3}}, y_matrixdiag, -1, 1},
    {"MatrixDiagPart", {3, {2, 3, 4}}, y_matrixdiagpart, -1, 1},
    {"MatrixSetDiag", {3, {2, 3, 4}}, y_matrixsetdiag, -1, 1},
    {"MatrixSetDiag, diagonal", {2, {2, 3}}, y_matrixsetdiag_diagonal, -1, 1},
    {"MatrixDiagV2", {2, {3, 3}}, y_matrixdiagv2, -1, 1},
    {"MatrixDiagPartV2", {2, {3, 4}}, y_matrixdiagpartv2, -1, 1},
    {"MatrixSetDiagV2", {2, {3, 4}}, y_matrixsetdiagv2, -1, 1},
    {"MirrorPadGrad, reflect", {2, {5, 8}}, y_mirrorpadgrad_reflect, -1, 1},
    {"MirrorPadGrad, symmetric", {2, {6, 6}}, y_mirrorpadgrad_symmetric, -1, 1},
    {"Cross", {2, {4, 3}}, y_cross, -1, 1},
    {"Cross, the second", {2, {4, 3}}, y_cross_second, -1, 1},
    {"TopK", {2, {3, 4}}, y_topk, -1, 1},
    {"NthElement", {2, {3, 4}}, y_nthelement, -1, 1},
    {"SparseSegmentSqrtNWithNumSegments", {2, {4, 2}}, y_sparsesegmentsqrtnwithnumsegments, -1, 1},
    {"MatrixDiagV3", {2, {3, 3}}, y_matrixdiagv3, -1, 1},
    {"MatrixDiagV3, filling", {1, {1}}, y_matrixdiagv3_filling, -1, 1},
    {"MatrixDiagPartV3", {2, {3, 4}}, y_matrixdiagpartv3, -1, 1},
    {"MatrixDiagPartV3, filling", {1, {1}}, y_matrixdiagpartv3_filling, -1, 1},
    {"MatrixSetDiagV3", {2, {3, 4}}, y_matrixsetdiagv3, -1, 1},
    {"MatrixSetDiagV3, diagonal", {2, {2, 3}}, y_matrixsetdiagv3_diagonal, -1, 1},
    {"ScatterNdNonAliasingAdd", {2, {3, 2}}, y_scatterndnonaliasingadd, -1, 1},
    {"ScatterNdNonAliasingAdd, updates", {2, {2, 2}}, y_scatterndnonaliasingadd_updates, -1, 1},
    {"SparseReorder", {1, {3}}, y_sparsereorder, -1, 1},
    {"SparseTensorDenseMatMul", {1, {3}}, y_sparseproduct, -1, 1},
    {"SparseTensorDenseMatMul, turned", {1, {3}}, y_sparseproduct_turned, -1, 1},
    {"SparseTensorDenseMatMul, right", {2, {4, 2}}, y_sparseproduct_right, -1, 1},
    {"SparseTensorDenseMatMul, right turned", {2, {2, 3}}, y_sparseproduct_right_turned, -1, 1},
    {"GatherV2, behind batches", {3, {2, 2, 3}}, y_gatherv2_behind_batches, -1, 1},
    {"TensorArray, written and read", {2, {3, 2}}, through_array, -1, 1},
    {"TensorArray, scattered and split", {2, {3, 2}}, through_arrays, -1, 1},
};

#endif
