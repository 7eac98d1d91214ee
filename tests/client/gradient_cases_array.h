/* SPDX-License-Identifier: Apache-2.0 */
/* Gradient cases: ops that reshape, join, cut, pad, rearrange or resize tensors, switches and
 * tensor arrays. */
#ifndef MU_TESTS_CLIENT_GRADIENT_CASES_ARRAY_H
#define MU_TESTS_CLIENT_GRADIENT_CASES_ARRAY_H

#include "tests/client/gradient.h"

CASE(y_identity, mu_identity(b, x))
CASE(y_reshape, mu_reshape(b, x, mu_const_ints(b, (int32_t[]){6, 2}, 2)))
CASE(y_broadcastto, mu_op(b, "BroadcastTo", MU_IN(x, ints(b, 2, (int32_t[]){3, 4}))))
CASE(y_checknumerics_v2, mu_op(b, "CheckNumericsV2", MU_IN(x), MU_ATTRS(MU_A_STR("message", "x"))))
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
CASE(y_expanddims, mu_op(b, "ExpandDims", MU_IN(x, mu_const_int(b, MU_INT32, 1))))
CASE(y_squeeze, mu_op(b, "Squeeze", MU_IN(x)))
CASE(y_fill,
     mu_op(b, "Fill", MU_IN(ints(b, 2, (int32_t[]){2, 3}), mu_reshape(b, x, ints(b, 0, NULL)))))
CASE(y_identityn, mu_port(mu_op(b, "IdentityN", MU_IN(mu_neg(b, x), mu_square(b, x))), 1))
CASE(y_pack,
     mu_op(b, "Pack", MU_IN(x, values(b, 3, 4, 1), mu_square(b, x)), MU_ATTRS(MU_A_INT("axis", 1))))
CASE(y_unpack,
     mu_port(mu_op(b, "Unpack", MU_IN(x), MU_ATTRS(MU_A_INT("num", 4), MU_A_INT("axis", -1))), 2))
CASE(y_split, first_two_outputs(b, mu_op(b, "Split", MU_IN(mu_const_int(b, MU_INT32, 1), x),
					 MU_ATTRS(MU_A_INT("num_split", 3)))))
CASE(y_splitv, first_two_outputs(b, mu_op(b, "SplitV",
					  MU_IN(x, ints(b, 3, (int32_t[]){1, 3, 2}),
						mu_const_int(b, MU_INT32, 0)),
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
CASE(y_tensorstridedsliceupdate,
     mu_op(b, "TensorStridedSliceUpdate",
	   MU_IN(x, ints(b, 2, (int32_t[]){0, 3}), ints(b, 2, (int32_t[]){3, 0}),
		 ints(b, 2, (int32_t[]){2, -2}), values(b, 2, 2, 1))))
CASE(y_tensorstridedsliceupdate_value,
     mu_op(b, "TensorStridedSliceUpdate",
	   MU_IN(values(b, 3, 4, 1), ints(b, 2, (int32_t[]){0, 3}), ints(b, 2, (int32_t[]){3, 0}),
		 ints(b, 2, (int32_t[]){2, -2}), x)))
CASE(y_switch_and_merge_taken, branch(b, x, true))
CASE(y_switch_and_merge_not_taken, branch(b, x, false))
CASE(y_switch_one_side, square_through_switch(b, x))
CASE(y_mirrorpadgrad_reflect,
     mu_op(b, "MirrorPadGrad", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 0, 2, 1})),
	   MU_ATTRS(MU_A_STR("mode", "REFLECT"))))
CASE(y_mirrorpadgrad_symmetric,
     mu_op(b, "MirrorPadGrad", MU_IN(x, table(b, 2, 2, (int32_t[]){1, 2, 2, 0})),
	   MU_ATTRS(MU_A_STR("mode", "SYMMETRIC"))))

/* Writes rows 2 and 0 of x² to an array, then reads elements 1, 0 and 1. */
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

/* Scatters the rows of x, gathers them in another order, concatenates and splits them. */
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

CASE(y_batch_to_space, mu_op(b, "BatchToSpace", MU_IN(x, table(b, 2, 2, (int32_t[]){0, 1, 1, 0})),
			     MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_batch_to_space_nd,
     mu_op(b, "BatchToSpaceND",
	   MU_IN(x, ints(b, 2, (int32_t[]){2, 2}), table(b, 2, 2, (int32_t[]){0, 1, 1, 0}))))
CASE(y_space_to_batch, mu_op(b, "SpaceToBatch", MU_IN(x, table(b, 2, 2, (int32_t[]){0, 1, 1, 0})),
			     MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_space_to_batch_nd,
     mu_op(b, "SpaceToBatchND",
	   MU_IN(x, ints(b, 2, (int32_t[]){2, 2}), table(b, 2, 2, (int32_t[]){0, 1, 1, 0}))))
CASE(y_depth_to_space, mu_op(b, "DepthToSpace", MU_IN(x), MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_space_to_depth, mu_op(b, "SpaceToDepth", MU_IN(x), MU_ATTRS(MU_A_INT("block_size", 2))))
CASE(y_reverse_sequence, mu_op(b, "ReverseSequence", MU_IN(x, ints(b, 3, (int32_t[]){3, 1, 4})),
			       MU_ATTRS(MU_A_INT("seq_dim", 1), MU_A_INT("batch_dim", 0))))
CASE(y_roll,
     mu_op(b, "Roll", MU_IN(x, ints(b, 2, (int32_t[]){1, -2}), ints(b, 2, (int32_t[]){0, 1}))))

#define RESIZED(op, high, wide, flag)                                                              \
	mu_op(b, op, MU_IN(x, ints(b, 2, (int32_t[]){high, wide})), MU_ATTRS(MU_A_BOOL(flag, true)))

CASE(y_bilinear, RESIZED("ResizeBilinear", 4, 2, "half_pixel_centers"))
CASE(y_bilinear_grad, mu_op(b, "ResizeBilinearGrad", MU_IN(x, IMAGES)))
CASE(y_bicubic, RESIZED("ResizeBicubic", 3, 5, "half_pixel_centers"))
CASE(y_bicubic_grad, mu_op(b, "ResizeBicubicGrad", MU_IN(x, IMAGES)))

#define SCALED(op, input)                                                                          \
	mu_op(b, op,                                                                               \
	      MU_IN(x, input, mu_cast(b, ints(b, 2, (int32_t[]){1, 2}), MU_FLOAT),                 \
		    mu_cast(b, ints(b, 2, (int32_t[]){0, -1}), MU_FLOAT)))

CASE(y_scaled, SCALED("ScaleAndTranslate", ints(b, 2, (int32_t[]){2, 4})))
CASE(y_scaled_grad, SCALED("ScaleAndTranslateGrad", IMAGES))
CASE(y_nearest, RESIZED("ResizeNearestNeighbor", 3, 5, "align_corners"))
CASE(y_nearest_grad, RESIZED("ResizeNearestNeighborGrad", 2, 3, "align_corners"))

#define CROPPED(picture, boxes)                                                                    \
	mu_op(b, "CropAndResize",                                                                  \
	      MU_IN(picture, boxes, ints(b, 2, (int32_t[]){1, 0}), ints(b, 2, (int32_t[]){3, 2})))

CASE(y_crop, CROPPED(x, mu_op(b, "Sigmoid", MU_IN(values(b, 2, 4, 0)))))
CASE(y_crop_nearest, mu_op(b, "CropAndResize",
			   MU_IN(x, mu_op(b, "Sigmoid", MU_IN(values(b, 2, 4, 0))),
				 ints(b, 2, (int32_t[]){1, 0}), ints(b, 2, (int32_t[]){3, 2})),
			   MU_ATTRS(MU_A_STR("method", "nearest"))))
CASE(y_crop_boxes, CROPPED(IMAGES, x))
CASE(y_patches,
     mu_op(b, "ExtractImagePatches", MU_IN(x),
	   MU_ATTRS(int_list("ksizes", 4, (int64_t[]){1, 2, 2, 1}),
		    int_list("strides", 4, (int64_t[]){1, 1, 2, 1}),
		    int_list("rates", 4, (int64_t[]){1, 2, 2, 1}), MU_A_STR("padding", "SAME"))))
CASE(y_volume_patches, mu_op(b, "ExtractVolumePatches", MU_IN(x),
			     MU_ATTRS(int_list("ksizes", 5, (int64_t[]){1, 2, 1, 2, 1}),
				      int_list("strides", 5, (int64_t[]){1, 1, 1, 1, 1}),
				      MU_A_STR("padding", "VALID"))))

static const struct gradient_case array_cases[] = {
    {"Identity", {2, {3, 4}}, y_identity, -1, 1},
    {"Reshape", {2, {3, 4}}, y_reshape, -1, 1},
    {"BroadcastTo", {2, {1, 4}}, y_broadcastto, -1, 1},
    {"CheckNumericsV2", {2, {3, 4}}, y_checknumerics_v2, -1, 1},
    {"CheckNumerics", {2, {3, 4}}, y_checknumerics, -1, 1},
    {"EnsureShape", {2, {3, 4}}, y_ensureshape, -1, 1},
    {"GuaranteeConst", {1, {3}}, y_guaranteeconst, -1, 1},
    {"Snapshot", {1, {3}}, y_snapshot, -1, 1},
    {"PlaceholderWithDefault", {2, {3, 4}}, y_placeholderwithdefault, -1, 1},
    {"Print", {1, {3}}, y_print, -1, 1},
    {"Concat", {2, {-1, 4}}, y_concat, -1, 1},
    {"ConcatV2", {2, {-1, 4}}, y_concatv2, -1, 1},
    {"ConcatV2, negative axis", {2, {3, 4}}, y_concatv2_axis_from_the_back, -1, 1},
    {"ConjugateTranspose", {3, {2, 3, 2}}, y_conjugatetranspose, -1, 1},
    {"Transpose", {3, {2, 3, 2}}, y_transpose, -1, 1},
    {"BatchToSpace", {4, {4, 2, 2, 1}}, y_batch_to_space, -1, 1},
    {"BatchToSpaceND", {4, {4, 2, 2, 1}}, y_batch_to_space_nd, -1, 1},
    {"DepthToSpace", {4, {1, 2, 1, 8}}, y_depth_to_space, -1, 1},
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
    {"PadV2, constant", {1, {1}}, y_padv2_the_constant, -1, 1},
    {"MirrorPad, reflect", {2, {3, 4}}, y_mirrorpad_reflect, -1, 1},
    {"MirrorPad, symmetric", {2, {3, 4}}, y_mirrorpad_symmetric, -1, 1},
    {"Slice", {2, {-1, 4}}, y_slice, -1, 1},
    {"TensorStridedSliceUpdate", {2, {3, 4}}, y_tensorstridedsliceupdate, -1, 1},
    {"TensorStridedSliceUpdate, value", {2, {2, 2}}, y_tensorstridedsliceupdate_value, -1, 1},
    {"TensorStridedSliceUpdate, broadcast", {1, {2}}, y_tensorstridedsliceupdate_value, -1, 1},
    {"StridedSlice", {3, {4, 5, 3}}, y_stridedslice, -1, 1},
    {"StridedSliceGrad", {2, {2, 2}}, y_stridedslicegrad, -1, 1},
    {"Switch and Merge, taken", {1, {3}}, y_switch_and_merge_taken, -1, 1},
    {"Switch and Merge, not taken", {1, {3}}, y_switch_and_merge_not_taken, -1, 1},
    {"Switch, one side", {1, {3}}, y_switch_one_side, -1, 1},
    {"MirrorPadGrad, reflect", {2, {5, 8}}, y_mirrorpadgrad_reflect, -1, 1},
    {"MirrorPadGrad, symmetric", {2, {6, 6}}, y_mirrorpadgrad_symmetric, -1, 1},
    {"TensorArray, written and read", {2, {3, 2}}, through_array, -1, 1},
    {"TensorArray, scattered and split", {2, {3, 2}}, through_arrays, -1, 1},
    {"ExtractImagePatches", {4, {2, 3, 4, 2}}, y_patches, -1, 1},
    {"ExtractVolumePatches", {5, {2, 3, 2, 2, 2}}, y_volume_patches, -1, 1},
    {"CropAndResize", {4, {2, 2, 3, 2}}, y_crop, -1, 1},
    {"CropAndResize, nearest", {4, {2, 2, 3, 2}}, y_crop_nearest, -1, 1},
    {"CropAndResize of boxes", {2, {2, 4}}, y_crop_boxes, 0.1f, 0.9f},
    {"ResizeBilinear", {4, {2, 2, 3, 2}}, y_bilinear, -1, 1},
    {"ResizeBilinearGrad", {4, {2, 4, 2, 2}}, y_bilinear_grad, -1, 1},
    {"ResizeBicubic", {4, {2, 2, 3, 2}}, y_bicubic, -1, 1},
    {"ResizeBicubicGrad", {4, {2, 3, 4, 2}}, y_bicubic_grad, -1, 1},
    {"ScaleAndTranslate", {4, {2, 2, 3, 2}}, y_scaled, -1, 1},
    {"ScaleAndTranslateGrad", {4, {2, 2, 4, 2}}, y_scaled_grad, -1, 1},
    {"ResizeNearestNeighbor", {4, {2, 2, 3, 2}}, y_nearest, -1, 1},
    {"ResizeNearestNeighborGrad", {4, {2, 3, 4, 2}}, y_nearest_grad, -1, 1},
};

#endif
