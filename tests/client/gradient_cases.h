/* SPDX-License-Identifier: Apache-2.0 */
/* What the gradient test differentiates: y from x, for each op that has a gradient.  Ops of one or
 * two tensors are named only; the others say how y is built. */
#ifndef TESTS_CLIENT_GRADIENT_CASES_H
#define TESTS_CLIENT_GRADIENT_CASES_H

#include "tests/client/gradient.h"

#define CASE(fn, expression)                                                                       \
	static struct mu_out fn(struct mu_builder *b, struct mu_out x)                             \
	{                                                                                          \
		return expression;                                                                 \
	}
CASE(y_matmul, mu_matmul(b, x, values(b, 4, 2, 0)))
CASE(y_sparse_matmul, mu_op(b, "SparseMatMul", MU_IN(x, values(b, 2, 4, 0)),
			    MU_ATTRS(MU_A_BOOL("transpose_b", true))))
CASE(y_matmul_right, mu_matmul(b, values(b, 2, 3, 0), x))
CASE(y_matmul_ta, mu_matmul_t(b, x, true, values(b, 3, 2, 0), false))
CASE(y_matmul_tb, mu_matmul_t(b, x, false, values(b, 2, 4, 0), true))
CASE(y_matmul_tab, mu_matmul_t(b, x, true, values(b, 2, 3, 0), true))
CASE(y_matmul_tab_right, mu_matmul_t(b, values(b, 4, 2, 0), true, x, true))
CASE(y_bias_add, mu_bias_add(b, x, row(b, 4)))
CASE(y_bias, mu_bias_add(b, values(b, 3, 4, 1), x))
CASE(y_add, mu_add(b, x, values(b, 3, 4, 1)))
CASE(y_add_row, mu_add(b, x, row(b, 4)))
CASE(y_row_add, mu_add(b, values(b, 3, 4, 1), x))
CASE(y_add_v1, mu_op(b, "Add", MU_IN(x, row(b, 4))))
CASE(y_add_n, mu_op(b, "AddN", MU_IN(x, mu_square(b, x), x)))
CASE(y_sub_row, mu_sub(b, row(b, 4), x))
CASE(y_sub_scalar, mu_sub(b, x, mu_const_float(b, 3)))
CASE(y_mul, mu_mul(b, x, x))
CASE(y_mul_row, mu_mul(b, values(b, 3, 4, 1), x))
CASE(y_div, mu_div(b, x, values(b, 3, 4, 1)))
CASE(y_div_by, mu_div(b, values(b, 3, 4, 1), x))
CASE(y_neg, mu_neg(b, x))
CASE(y_square, mu_square(b, x))
CASE(y_exp, mu_exp(b, x))
CASE(y_log, mu_ln(b, x))
CASE(y_relu, mu_relu(b, x))
CASE(y_tanh, mu_tanh(b, x))
CASE(y_sigmoid, mu_sigmoid(b, x))
CASE(y_softmax, mu_softmax(b, x))
CASE(y_identity, mu_identity(b, x))
CASE(y_reshape, mu_reshape(b, x, mu_const_ints(b, (int32_t[]){6, 2}, 2)))
CASE(y_sum, mu_sum(b, x, NULL, 0))
CASE(y_sum_rows, mu_sum(b, x, (int32_t[]){0}, 1))
CASE(y_sum_last, mu_sum(b, x, (int32_t[]){-1}, 1))
CASE(y_mean, mu_mean(b, x, NULL, 0))
CASE(y_mean_last, mu_mean(b, x, (int32_t[]){1}, 1))
CASE(y_cast, mu_cast(b, mu_square(b, mu_cast(b, x, MU_DOUBLE)), MU_FLOAT))
CASE(y_xent, mu_softmax_xent(b, x, mu_softmax(b, values(b, 3, 4, 1))))
CASE(y_sparse_xent, mu_sparse_softmax_xent(b, x, mu_const_ints(b, (int32_t[]){2, 0, 3}, 3)))

#include "tests/client/gradient_cases_einsum.h"
#include "tests/client/gradient_cases_space.h"

CASE(y_broadcastto, mu_op(b, "BroadcastTo", MU_IN(x, ints(b, 2, (int32_t[]){3, 4}))))
CASE(y_checknumerics, mu_op(b, "CheckNumerics", MU_IN(x), MU_ATTRS(MU_A_STR("message", "x"))))
CASE(y_ensureshape,
     mu_op(b, "EnsureShape", MU_IN(x), MU_ATTRS(MU_A_SHAPE("shape", &MU_SHAPE(-1, 4)))))
CASE(y_guaranteeconst, mu_op(b, "GuaranteeConst", MU_IN(x)))
CASE(y_snapshot, mu_op(b, "Snapshot", MU_IN(x)))
CASE(y_placeholderwithdefault,
     mu_op(b, "PlaceholderWithDefault", MU_IN(x), MU_ATTRS(MU_A_SHAPE("shape", &MU_SHAPE(3, 4)))))
CASE(y_print,
     mu_op(b, "Print", MU_IN(x), MU_ATTRS(MU_A_TYPES("U", NULL, 0), MU_A_INT("first_n", 0))))
CASE(y_concat, mu_op(b, "Concat",
		     MU_IN(mu_const_int(b, MU_INT32, 1), x, values(b, 3, 4, 1), mu_square(b, x))))
CASE(y_concatv2, mu_op(b, "ConcatV2",
		       MU_IN(values(b, 3, 4, 1), x, mu_square(b, x), mu_const_int(b, MU_INT32, 0))))
CASE(y_concatv2_axis_from_the_back,
     mu_op(b, "ConcatV2", MU_IN(x, values(b, 3, 4, 1), mu_const_int(b, MU_INT32, -1))))
CASE(y_conjugatetranspose,
     mu_op(b, "ConjugateTranspose", MU_IN(x, ints(b, 3, (int32_t[]){2, 0, 1}))))
CASE(y_transpose, mu_op(b, "Transpose", MU_IN(x, ints(b, 3, (int32_t[]){2, 0, 1}))))
CASE(y_diagpart, mu_op(b, "DiagPart", MU_IN(x)))
CASE(y_expanddims, mu_op(b, "ExpandDims", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_squeeze, mu_op(b, "Squeeze", MU_IN(x)))
CASE(y_fill,
     mu_op(b, "Fill", MU_IN(ints(b, 2, (int32_t[]){2, 3}), mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_identityn, mu_port(mu_op(b, "IdentityN", MU_IN(mu_neg(b, x), mu_square(b, x))), 1))
CASE(y_pack,
     mu_op(b, "Pack", MU_IN(x, values(b, 3, 4, 1), mu_square(b, x)), MU_ATTRS(MU_A_INT("axis", 1))))
CASE(y_unpack,
     mu_port(mu_op(b, "Unpack", MU_IN(x), MU_ATTRS(MU_A_INT("num", 4), MU_A_INT("axis", -1))), 2))
CASE(y_split, second(b, mu_op(b, "Split", MU_IN(mu_const_int(b, MU_INT32, 1), x),
			      MU_ATTRS(MU_A_INT("num_split", 3)))))
CASE(y_splitv,
     second(b, mu_op(b, "SplitV",
		     MU_IN(x, ints(b, 3, (int32_t[]){1, 3, 2}), mu_const_int(b, MU_INT32, 0)),
		     MU_ATTRS(MU_A_INT("num_split", 3)))))
CASE(y_reshape_1, mu_reshape(b, x, ints(b, 2, (int32_t[]){2, -1})))
CASE(y_reversev2, mu_op(b, "ReverseV2", MU_IN(x, ints(b, 1, (int32_t[]){1}))))
CASE(y_tile, mu_op(b, "Tile", MU_IN(x, ints(b, 2, (int32_t[]){2, 3}))))
CASE(y_pad, mu_op(b, "Pad", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 0, 2, 1}))))
CASE(y_padv2,
     mu_op(b, "PadV2", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 0, 2, 1}), mu_const_float(b, 7))))
CASE(y_padv2_the_constant, mu_op(b, "PadV2",
				 MU_IN(values(b, 3, 4, 1), table(b, 2, 2, (int32_t[]){1, 0, 2, 1}),
				       mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_mirrorpad_reflect, mu_op(b, "MirrorPad", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 0, 2, 1})),
				MU_ATTRS(MU_A_STR("mode", "REFLECT"))))
CASE(y_mirrorpad_symmetric, mu_op(b, "MirrorPad", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 2, 2, 0})),
				  MU_ATTRS(MU_A_STR("mode", "SYMMETRIC"))))
CASE(y_slice,
     mu_op(b, "Slice", MU_IN(x, ints(b, 2, (int32_t[]){1, 0}), ints(b, 2, (int32_t[]){2, 3}))))
CASE(y_stridedslice,
     mu_op(b, "StridedSlice",
	   MU_IN(x, ints(b, 3, (int32_t[]){0, 4, 1}), ints(b, 3, (int32_t[]){3, 0, 2}),
		 ints(b, 3, (int32_t[]){2, -2, 1})),
	   MU_ATTRS(MU_A_INT("begin_mask", 1), MU_A_INT("shrink_axis_mask", 4))))
CASE(y_stridedslicegrad,
     mu_op(b, "StridedSliceGrad",
	   MU_IN(ints(b, 3, (int32_t[]){4, 5, 3}), ints(b, 3, (int32_t[]){0, 4, 1}),
		 ints(b, 3, (int32_t[]){3, 0, 2}), ints(b, 3, (int32_t[]){2, -2, 1}), x),
	   MU_ATTRS(MU_A_INT("begin_mask", 1), MU_A_INT("shrink_axis_mask", 4))))
CASE(y_switch_and_merge_taken, branch(b, x, true))
CASE(y_switch_and_merge_not_taken, branch(b, x, false))
CASE(y_switch_one_side, one_side(b, x))
CASE(y_gather, mu_op(b, "Gather", MU_IN(x, ints(b, 3, (int32_t[]){2, 0, 2}))))
CASE(y_gatherv2,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){3, 0, 3, 3}), mu_const_int(b, MU_INT32, 0))))
CASE(y_gatherv2_batches,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 3, (int32_t[]){1, 1, 3, 0, 2, 1}), mu_const_int(b, MU_INT32, 1)),
	   MU_ATTRS(MU_A_INT("batch_dims", 1))))
CASE(y_gatherv2_batches_of_batches,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){1, 0, 2, 2}), mu_const_int(b, MU_INT32, 2)),
	   MU_ATTRS(MU_A_INT("batch_dims", 2))))
CASE(y_gatherv2_inner_axis,
     mu_op(b, "GatherV2",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){3, 0, 3, 1}), mu_const_int(b, MU_INT32, 1))))
CASE(y_gatherv2_last_axis,
     mu_op(b, "GatherV2",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), mu_const_int(b, MU_INT32, -1))))
CASE(y_gathernd, mu_op(b, "GatherNd", MU_IN(x, table(b, 3, 2, (int32_t[]){0, 1, 2, 3, 0, 1}))))
CASE(y_scatternd,
     mu_op(b, "ScatterNd",
	   MU_IN(table(b, 3, 1, (int32_t[]){4, 0, 4}), x, ints(b, 2, (int32_t[]){5, 2}))))
CASE(y_sparsetodense_list, mu_op(b, "SparseToDense",
				 MU_IN(ints(b, 3, (int32_t[]){1, 4, 5}), ints(b, 1, (int32_t[]){7}),
				       x, mu_const_float(b, 2))))
CASE(y_sparsetodense_table, mu_op(b, "SparseToDense",
				  MU_IN(table(b, 2, 2, (int32_t[]){0, 1, 2, 0}),
					ints(b, 2, (int32_t[]){3, 3}), x, mu_const_float(b, 2))))
CASE(y_sparsetodense_default, mu_op(b, "SparseToDense",
				    MU_IN(ints(b, 2, (int32_t[]){1, 4}), ints(b, 1, (int32_t[]){7}),
					  row(b, 2), mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_sparsefillemptyrows,
     mu_port(mu_op(b, "SparseFillEmptyRows",
		   MU_IN(long_ints(b, table(b, 3, 2, (int32_t[]){0, 0, 2, 0, 2, 1})), x,
			 long_ints(b, ints(b, 2, (int32_t[]){5, 2})), mu_const_float(b, 3))),
	     1))
CASE(y_topkv2, mu_op(b, "TopKV2", MU_IN(x, mu_const_int(b, MU_INT32, 2))))
CASE(y_dynamicpartition,
     second(b, mu_op(b, "DynamicPartition", MU_IN(x, ints(b, 4, (int32_t[]){1, 0, 1, 2})),
		     MU_ATTRS(MU_A_INT("num_partitions", 3)))))
CASE(y_dynamicstitch,
     mu_op(b, "DynamicStitch",
	   MU_IN(ints(b, 2, (int32_t[]){1, 3}), ints(b, 2, (int32_t[]){0, 2}), x, mu_square(b, x)),
	   MU_ATTRS(MU_A_INT("N", 2))))
CASE(y_paralleldynamicstitch,
     mu_op(b, "ParallelDynamicStitch",
	   MU_IN(ints(b, 2, (int32_t[]){1, 3}), ints(b, 2, (int32_t[]){0, 2}), x, mu_square(b, x)),
	   MU_ATTRS(MU_A_INT("N", 2))))
CASE(y_segmentsum, mu_op(b, "SegmentSum", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentmean, mu_op(b, "SegmentMean", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentmax, mu_op(b, "SegmentMax", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentmin, mu_op(b, "SegmentMin", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_segmentprod, mu_op(b, "SegmentProd", MU_IN(x, ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_unsortedsegmentsum,
     mu_op(b, "UnsortedSegmentSum",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentmax,
     mu_op(b, "UnsortedSegmentMax",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentmin,
     mu_op(b, "UnsortedSegmentMin",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentprod,
     mu_op(b, "UnsortedSegmentProd",
	   MU_IN(x, ints(b, 5, (int32_t[]){1, 0, -1, 1, 0}), mu_const_int(b, MU_INT32, 2))))
CASE(y_unsortedsegmentsum_table_of_ids,
     mu_op(b, "UnsortedSegmentSum",
	   MU_IN(x, table(b, 2, 2, (int32_t[]){2, 0, 1, -1}), mu_const_int(b, MU_INT32, 3))))
CASE(y_segmentprod_with_a_zero,
     mu_op(b, "SegmentProd",
	   MU_IN(mu_mul(b, x, mu_cast(b, ints(b, 5, (int32_t[]){1, 0, 1, 1, 1}), MU_FLOAT)),
		 ints(b, 5, (int32_t[]){0, 0, 2, 2, 2}))))
CASE(y_sparsesegmentsum,
     mu_op(b, "SparseSegmentSum",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}))))
CASE(y_sparsesegmentmean,
     mu_op(b, "SparseSegmentMean",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}))))
CASE(y_sparsesegmentsqrtn,
     mu_op(b, "SparseSegmentSqrtN",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}))))
CASE(y_sparsesegmentsumwithnumsegments,
     mu_op(b, "SparseSegmentSumWithNumSegments",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}),
		 mu_const_int(b, MU_INT32, 3))))
CASE(y_sparsesegmentmeanwithnumsegments,
     mu_op(b, "SparseSegmentMeanWithNumSegments",
	   MU_IN(x, ints(b, 3, (int32_t[]){3, 0, 3}), ints(b, 3, (int32_t[]){0, 0, 1}),
		 mu_const_int(b, MU_INT32, 3))))
CASE(y_max, mu_op(b, "Max", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_max_kept,
     mu_op(b, "Max", MU_IN(x, ints(b, 1, (int32_t[]){0})), MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_min, mu_op(b, "Min", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_min_kept,
     mu_op(b, "Min", MU_IN(x, ints(b, 1, (int32_t[]){0})), MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_prod, mu_op(b, "Prod", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_prod_kept,
     mu_op(b, "Prod", MU_IN(x, ints(b, 1, (int32_t[]){0})), MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_euclideannorm, mu_op(b, "EuclideanNorm", MU_IN(x, ints(b, 1, (int32_t[]){-1}))))
CASE(y_euclideannorm_kept, mu_op(b, "EuclideanNorm", MU_IN(x, ints(b, 1, (int32_t[]){0})),
				 MU_ATTRS(MU_A_BOOL("keep_dims", true))))
CASE(y_prod_with_a_zero,
     mu_op(b, "Prod",
	   MU_IN(mu_mul(b, x, mu_cast(b, table(b, 2, 3, (int32_t[]){1, 0, 1, 1, 1, 1}), MU_FLOAT)),
		 ints(b, 1, (int32_t[]){1}))))
CASE(y_l2loss, mu_op(b, "L2Loss", MU_IN(x)))
CASE(y_batchmatmul,
     mu_op(b, "BatchMatMul",
	   MU_IN(x, mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 4, 3}))),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", false))))
CASE(y_batchmatmul_transposed,
     mu_op(b, "BatchMatMul",
	   MU_IN(mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4})), x),
	   MU_ATTRS(MU_A_BOOL("adj_x", true), MU_A_BOOL("adj_y", true))))
CASE(y_batchmatmulv2_broadcast,
     mu_op(b, "BatchMatMulV2",
	   MU_IN(mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4})), x),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", false))))
CASE(y_batchmatmulv2_matrix,
     mu_op(b, "BatchMatMulV2",
	   MU_IN(x, mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 4, 3}))),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", false))))
CASE(y_batchmatmulv3,
     mu_op(b, "BatchMatMulV3",
	   MU_IN(x, mu_reshape(b, values(b, 4, 6, 0), ints(b, 3, (int32_t[]){2, 3, 4}))),
	   MU_ATTRS(MU_A_BOOL("adj_x", false), MU_A_BOOL("adj_y", true),
		    MU_A_TYPE("Tout", MU_FLOAT))))
CASE(y_select, mu_op(b, "Select",
		     MU_IN(mu_op(b, "Greater", MU_IN(values(b, 3, 4, 0), mu_const_float(b, 1.5f))),
			   x, mu_square(b, x))))
CASE(y_selectv2,
     mu_op(b, "SelectV2",
	   MU_IN(mu_op(b, "Greater", MU_IN(values(b, 3, 4, 0), mu_const_float(b, 1.5f))), x,
		 values(b, 3, 4, 1))))
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
CASE(y_biasaddgrad, mu_op(b, "BiasAddGrad", MU_IN(x)))
CASE(y_cast_half, mu_cast(b, mu_cast(b, x, MU_DOUBLE), MU_FLOAT))
CASE(y_accumulatenv2, mu_op(b, "AccumulateNV2", MU_IN(x, mu_square(b, x)),
			    MU_ATTRS(MU_A_SHAPE("shape", &MU_SHAPE(3, 4)))))
CASE(y_floormod, mu_op(b, "FloorMod", MU_IN(x, mu_const_float(b, 0.4f))))
CASE(y_floormod_divisor, mu_op(b, "FloorMod", MU_IN(mu_const_float(b, 5), x)))
CASE(y_mod, mu_op(b, "Mod", MU_IN(x, mu_const_float(b, 0.4f))))
CASE(y_mod_divisor, mu_op(b, "Mod", MU_IN(mu_const_float(b, 5), x)))
CASE(y_truncatemod, mu_op(b, "TruncateMod", MU_IN(x, mu_const_float(b, 0.4f))))
CASE(y_truncatemod_divisor, mu_op(b, "TruncateMod", MU_IN(mu_const_float(b, 5), x)))

static const struct gradient_case cases[] = {
    {"MatMul", {2, {3, 4}}, y_matmul, -1, 1},
    {"SparseMatMul", {2, {3, 4}}, y_sparse_matmul, -1, 1},
    {"MatMul, right", {2, {3, 4}}, y_matmul_right, -1, 1},
    {"MatMul, transpose_a", {2, {3, 4}}, y_matmul_ta, -1, 1},
    {"MatMul, transpose_b", {2, {3, 4}}, y_matmul_tb, -1, 1},
    {"MatMul, both transposed", {2, {3, 4}}, y_matmul_tab, -1, 1},
    {"MatMul, both transposed, right", {2, {3, 4}}, y_matmul_tab_right, -1, 1},
    {"BiasAdd", {2, {-1, 4}}, y_bias_add, -1, 1},
    {"BiasAdd, bias", {1, {4}}, y_bias, -1, 1},
    {"AddV2", {2, {3, 4}}, y_add, -1, 1},
    {"AddV2, broadcasts the other", {2, {-1, 4}}, y_add_row, -1, 1},
    {"AddV2, broadcast", {1, {4}}, y_row_add, -1, 1},
    {"Add", {2, {-1, 4}}, y_add_v1, -1, 1},
    {"AddN", {2, {3, 4}}, y_add_n, -1, 1},
    {"Sub", {2, {-1, 4}}, y_sub_row, -1, 1},
    {"Sub, scalar", {2, {3, 4}}, y_sub_scalar, -1, 1},
    {"Mul, twice the same", {2, {3, 4}}, y_mul, -1, 1},
    {"Mul, broadcast", {1, {4}}, y_mul_row, -1, 1},
    {"RealDiv", {2, {3, 4}}, y_div, -1, 1},
    {"RealDiv, divisor", {1, {4}}, y_div_by, 1, 2},
    {"Neg", {2, {3, 4}}, y_neg, -1, 1},
    {"Square", {2, {3, 4}}, y_square, -1, 1},
    {"Exp", {2, {3, 4}}, y_exp, -1, 1},
    {"Log", {2, {3, 4}}, y_log, 1, 2},
    {"Relu", {2, {3, 4}}, y_relu, -1, 1},
    {"Tanh", {2, {3, 4}}, y_tanh, -1, 1},
    {"Sigmoid", {2, {3, 4}}, y_sigmoid, -1, 1},
    {"Softmax", {2, {3, 4}}, y_softmax, -1, 1},
    {"Identity", {2, {3, 4}}, y_identity, -1, 1},
    {"Reshape", {2, {3, 4}}, y_reshape, -1, 1},
    {"Sum", {2, {-1, 4}}, y_sum, -1, 1},
    {"Sum, rows", {2, {-1, 4}}, y_sum_rows, -1, 1},
    {"Sum, last", {2, {-1, 4}}, y_sum_last, -1, 1},
    {"Mean", {2, {-1, 4}}, y_mean, -1, 1},
    {"Mean, last", {2, {-1, 4}}, y_mean_last, -1, 1},
    {"Cast", {2, {3, 4}}, y_cast, -1, 1},
    {"SoftmaxCrossEntropyWithLogits", {2, {3, 4}}, y_xent, -1, 1},
    {"SparseSoftmaxCrossEntropyWithLogits", {2, {-1, 4}}, y_sparse_xent, -1, 1},
    {"BroadcastTo", {2, {1, 4}}, y_broadcastto, -1, 1},
    {"CheckNumerics", {2, {3, 4}}, y_checknumerics, -1, 1},
    {"EnsureShape", {2, {3, 4}}, y_ensureshape, -1, 1},
    {"GuaranteeConst", {1, {3}}, y_guaranteeconst, -1, 1},
    {"Snapshot", {1, {3}}, y_snapshot, -1, 1},
    {"PlaceholderWithDefault", {2, {3, 4}}, y_placeholderwithdefault, -1, 1},
    {"Print", {1, {3}}, y_print, -1, 1},
    {"Concat", {2, {-1, 4}}, y_concat, -1, 1},
    {"ConcatV2", {2, {-1, 4}}, y_concatv2, -1, 1},
    {"ConcatV2, axis from the back", {2, {3, 4}}, y_concatv2_axis_from_the_back, -1, 1},
    {"ConjugateTranspose", {3, {2, 3, 2}}, y_conjugatetranspose, -1, 1},
    {"Transpose", {3, {2, 3, 2}}, y_transpose, -1, 1},
    {"DiagPart", {2, {4, 4}}, y_diagpart, -1, 1},
    {"BatchToSpace", {4, {4, 2, 2, 1}}, y_batch_to_space, -1, 1},
    {"BatchToSpaceND", {4, {4, 2, 2, 1}}, y_batch_to_space_nd, -1, 1},
    {"DepthToSpace", {4, {1, 2, 1, 8}}, y_depth_to_space, -1, 1},
    {"Diag", {1, {4}}, y_diag, -1, 1},
    {"ReverseSequence", {2, {3, 4}}, y_reverse_sequence, -1, 1},
    {"Roll", {2, {3, 4}}, y_roll, -1, 1},
    {"SpaceToBatch", {4, {1, 3, 3, 2}}, y_space_to_batch, -1, 1},
    {"SpaceToBatchND", {4, {1, 3, 3, 2}}, y_space_to_batch_nd, -1, 1},
    {"SpaceToDepth", {4, {1, 2, 4, 2}}, y_space_to_depth, -1, 1},
    {"ExpandDims", {2, {3, 4}}, y_expanddims, -1, 1},
    {"Squeeze", {3, {3, 1, 4}}, y_squeeze, -1, 1},
    {"Fill", {1, {1}}, y_fill, -1, 1},
    {"IdentityN", {2, {3, 4}}, y_identityn, -1, 1},
    {"Pack", {2, {3, 4}}, y_pack, -1, 1},
    {"Unpack", {2, {3, 4}}, y_unpack, -1, 1},
    {"Split", {2, {4, 6}}, y_split, -1, 1},
    {"SplitV", {2, {6, 2}}, y_splitv, -1, 1},
    {"Reshape, -1", {2, {3, 4}}, y_reshape_1, -1, 1},
    {"ReverseV2", {2, {3, 4}}, y_reversev2, -1, 1},
    {"Tile", {2, {2, 3}}, y_tile, -1, 1},
    {"Pad", {2, {2, 3}}, y_pad, -1, 1},
    {"PadV2", {2, {2, 3}}, y_padv2, -1, 1},
    {"PadV2, the constant", {1, {1}}, y_padv2_the_constant, -1, 1},
    {"MirrorPad, reflect", {2, {3, 4}}, y_mirrorpad_reflect, -1, 1},
    {"MirrorPad, symmetric", {2, {3, 4}}, y_mirrorpad_symmetric, -1, 1},
    {"Slice", {2, {-1, 4}}, y_slice, -1, 1},
    {"StridedSlice", {3, {4, 5, 3}}, y_stridedslice, -1, 1},
    {"StridedSliceGrad", {2, {2, 2}}, y_stridedslicegrad, -1, 1},
    {"Switch and Merge, taken", {1, {3}}, y_switch_and_merge_taken, -1, 1},
    {"Switch and Merge, not taken", {1, {3}}, y_switch_and_merge_not_taken, -1, 1},
    {"Switch, one side", {1, {3}}, y_switch_one_side, -1, 1},
    {"Gather", {2, {4, 3}}, y_gather, -1, 1},
    {"GatherV2", {2, {4, 3}}, y_gatherv2, -1, 1},
    {"GatherV2, batches", {3, {2, 4, 3}}, y_gatherv2_batches, -1, 1},
    {"GatherV2, batches of batches", {3, {2, 2, 3}}, y_gatherv2_batches_of_batches, -1, 1},
    {"GatherV2, inner axis", {3, {2, 4, 3}}, y_gatherv2_inner_axis, -1, 1},
    {"GatherV2, last axis", {2, {2, 4}}, y_gatherv2_last_axis, -1, 1},
    {"GatherNd", {2, {3, 4}}, y_gathernd, -1, 1},
    {"ScatterNd", {2, {3, 2}}, y_scatternd, -1, 1},
    {"SparseToDense, list", {1, {3}}, y_sparsetodense_list, -1, 1},
    {"SparseToDense, table", {1, {2}}, y_sparsetodense_table, -1, 1},
    {"SparseToDense, default", {1, {1}}, y_sparsetodense_default, -1, 1},
    {"SparseFillEmptyRows", {1, {3}}, y_sparsefillemptyrows, -1, 1},
    {"TopKV2", {2, {3, 4}}, y_topkv2, -1, 1},
    {"DynamicPartition", {2, {4, 2}}, y_dynamicpartition, -1, 1},
    {"DynamicStitch", {2, {2, 2}}, y_dynamicstitch, -1, 1},
    {"ParallelDynamicStitch", {2, {2, 2}}, y_paralleldynamicstitch, -1, 1},
    {"SegmentSum", {2, {5, 2}}, y_segmentsum, -1, 1},
    {"SegmentMean", {2, {5, 2}}, y_segmentmean, -1, 1},
    {"SegmentMax", {2, {5, 2}}, y_segmentmax, -1, 1},
    {"SegmentMin", {2, {5, 2}}, y_segmentmin, -1, 1},
    {"SegmentProd", {2, {5, 2}}, y_segmentprod, -1, 1},
    {"UnsortedSegmentSum", {2, {5, 2}}, y_unsortedsegmentsum, -1, 1},
    {"UnsortedSegmentMax", {2, {5, 2}}, y_unsortedsegmentmax, -1, 1},
    {"UnsortedSegmentMin", {2, {5, 2}}, y_unsortedsegmentmin, -1, 1},
    {"UnsortedSegmentProd", {2, {5, 2}}, y_unsortedsegmentprod, -1, 1},
    {"UnsortedSegmentSum, table of ids", {3, {2, 2, 2}}, y_unsortedsegmentsum_table_of_ids, -1, 1},
    {"SegmentProd, with a zero", {1, {5}}, y_segmentprod_with_a_zero, -1, 1},
    {"SparseSegmentSum", {2, {4, 2}}, y_sparsesegmentsum, -1, 1},
    {"SparseSegmentMean", {2, {4, 2}}, y_sparsesegmentmean, -1, 1},
    {"SparseSegmentSqrtN", {2, {4, 2}}, y_sparsesegmentsqrtn, -1, 1},
    {"SparseSegmentSumWithNumSegments", {2, {4, 2}}, y_sparsesegmentsumwithnumsegments, -1, 1},
    {"SparseSegmentMeanWithNumSegments", {2, {4, 2}}, y_sparsesegmentmeanwithnumsegments, -1, 1},
    {"Max", {2, {3, 4}}, y_max, 0.5f, 2},
    {"Max, kept", {2, {3, 4}}, y_max_kept, 0.5f, 2},
    {"Min", {2, {3, 4}}, y_min, 0.5f, 2},
    {"Min, kept", {2, {3, 4}}, y_min_kept, 0.5f, 2},
    {"Prod", {2, {3, 4}}, y_prod, 0.5f, 2},
    {"Prod, kept", {2, {3, 4}}, y_prod_kept, 0.5f, 2},
    {"EuclideanNorm", {2, {3, 4}}, y_euclideannorm, 0.5f, 2},
    {"EuclideanNorm, kept", {2, {3, 4}}, y_euclideannorm_kept, 0.5f, 2},
    {"Prod, with a zero", {2, {2, 3}}, y_prod_with_a_zero, 0.5f, 2},
    {"L2Loss", {2, {3, 4}}, y_l2loss, -1, 1},
    {"BatchMatMul", {3, {2, 3, 4}}, y_batchmatmul, -1, 1},
    {"BatchMatMul, transposed", {3, {2, 4, 3}}, y_batchmatmul_transposed, -1, 1},
    {"BatchMatMulV2, broadcast", {3, {1, 4, 3}}, y_batchmatmulv2_broadcast, -1, 1},
    {"BatchMatMulV2, matrix", {2, {3, 4}}, y_batchmatmulv2_matrix, -1, 1},
    {"BatchMatMulV3", {3, {2, 3, 4}}, y_batchmatmulv3, -1, 1},
    RESIZE_CASES EINSUM_CASES{"Select", {2, {3, 4}}, y_select, -1, 1},
    {"SelectV2", {1, {4}}, y_selectv2, -1, 1},
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
    {"Cast, half", {1, {3}}, y_cast_half, 0.5f, 2},
    {"AccumulateNV2", {2, {3, 4}}, y_accumulatenv2, -1, 1},
    {"FloorMod", {2, {3, 4}}, y_floormod, 0.85f, 1.15f},
    {"FloorMod, divisor", {2, {3, 4}}, y_floormod_divisor, 1.7f, 2.4f},
    {"Mod", {2, {3, 4}}, y_mod, 0.85f, 1.15f},
    {"Mod, divisor", {2, {3, 4}}, y_mod_divisor, 1.7f, 2.4f},
    {"TruncateMod", {2, {3, 4}}, y_truncatemod, 0.85f, 1.15f},
    {"TruncateMod, divisor", {2, {3, 4}}, y_truncatemod_divisor, 1.7f, 2.4f},
};

struct named_op {
	const char *op;
	float lowest, highest;
};
/* y = op(x) */
static const struct named_op unary[] = {
    {"Abs", -1, 1},      {"Acos", -0.8f, 0.8f}, {"Acosh", 1.3f, 2},      {"Asin", -0.8f, 0.8f},
    {"Asinh", -1, 1},    {"Atan", -1, 1},       {"Atanh", -0.8f, 0.8f},  {"Cos", -1, 1},
    {"Cosh", -1, 1},     {"Erf", -1, 1},        {"Erfc", -1, 1},         {"Expm1", -1, 1},
    {"Inv", 0.5f, 2},    {"Log1p", -0.5f, 1},   {"Reciprocal", 0.5f, 2}, {"Rsqrt", 0.5f, 2},
    {"Sin", -1, 1},      {"Sinh", -1, 1},       {"Sqrt", 0.5f, 2},       {"Tan", -1, 1},
    {"Relu6", 1, 8},     {"Elu", -1, 1},        {"Selu", -1, 1},         {"Softplus", -1, 1},
    {"Softsign", -1, 1}, {"Lgamma", 0.8f, 3},   {"Digamma", 0.8f, 3},
};
/* y = op(x, other) and op(other, x), of equal shapes and broadcast */
static const struct named_op binary[] = {
    {"Atan2", 0.5f, 2},      {"Div", 0.5f, 2},
    {"DivNoNan", 0.5f, 2},   {"Maximum", 0.5f, 2.3f},
    {"Minimum", 0.5f, 2.3f}, {"MulNoNan", 0.5f, 2},
    {"Pow", 0.5f, 2},        {"SquaredDifference", 0.5f, 2},
    {"Xdivy", 0.5f, 2},      {"Xlog1py", 0.5f, 2},
    {"Xlogy", 0.5f, 2},      {"Igamma", 0.6f, 2.5f},
    {"Igammac", 0.6f, 2.5f},
};
/* the same without broadcasting */
static const struct named_op seconds[] = {
    {"SigmoidGrad", 0.1f, 0.9f}, {"TanhGrad", -0.9f, 0.9f}, {"SqrtGrad", 0.5f, 2},
    {"RsqrtGrad", 0.5f, 2},      {"InvGrad", 0.5f, 2},      {"ReciprocalGrad", 0.5f, 2},
    {"ReluGrad", -1, 1},         {"Relu6Grad", -1, 1},      {"EluGrad", -1, 1},
    {"SeluGrad", -1, 1},         {"SoftplusGrad", -1, 1},   {"SoftsignGrad", -1, 1},
};

#endif
