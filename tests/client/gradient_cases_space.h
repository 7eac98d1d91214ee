/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of ops that only put elements elsewhere. */
#ifndef TESTS_CLIENT_GRADIENT_CASES_SPACE_H
#define TESTS_CLIENT_GRADIENT_CASES_SPACE_H

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
CASE(y_diag, mu_op(b, "Diag", MU_IN(x)))
CASE(y_reverse_sequence, mu_op(b, "ReverseSequence", MU_IN(x, ints(b, 3, (int32_t[]){3, 1, 4})),
			       MU_ATTRS(MU_A_INT("seq_dim", 1), MU_A_INT("batch_dim", 0))))
CASE(y_roll,
     mu_op(b, "Roll", MU_IN(x, ints(b, 2, (int32_t[]){1, -2}), ints(b, 2, (int32_t[]){0, 1}))))
#define RESIZED(op, high, wide, flag)                                                              \
	mu_op(b, op, MU_IN(x, ints(b, 2, (int32_t[]){high, wide})), MU_ATTRS(MU_A_BOOL(flag, true)))
#define PICTURES mu_reshape(b, values(b, 4, 6, 0), ints(b, 4, (int32_t[]){2, 2, 3, 2}))
CASE(y_bilinear, RESIZED("ResizeBilinear", 4, 2, "half_pixel_centers"))
CASE(y_bilinear_grad, mu_op(b, "ResizeBilinearGrad", MU_IN(x, PICTURES)))
CASE(y_bicubic, RESIZED("ResizeBicubic", 3, 5, "half_pixel_centers"))
CASE(y_bicubic_grad, mu_op(b, "ResizeBicubicGrad", MU_IN(x, PICTURES)))
CASE(y_nearest, RESIZED("ResizeNearestNeighbor", 3, 5, "align_corners"))
CASE(y_nearest_grad, RESIZED("ResizeNearestNeighborGrad", 2, 3, "align_corners"))

#define CROPPED(picture, boxes)                                                                    \
	mu_op(b, "CropAndResize",                                                                  \
	      MU_IN(picture, boxes, ints(b, 2, (int32_t[]){1, 0}), ints(b, 2, (int32_t[]){3, 2})))
CASE(y_crop, CROPPED(x, mu_op(b, "Sigmoid", MU_IN(values(b, 2, 4, 0)))))
CASE(y_crop_boxes, CROPPED(PICTURES, x))

static int64_t two_by_two[] = {1, 2, 2, 1}, every_second[] = {1, 1, 2, 1}, deep[] = {1, 2, 1, 2, 1},
	       ones[] = {1, 1, 1, 1, 1};
#define LIST(k, v, count)                                                                          \
	((struct mu_node_attr){(k), {.kind = MU_ATTR_LIST + MU_ATTR_INT, .is = (v), .n = (count)}})
CASE(y_patches, mu_op(b, "ExtractImagePatches", MU_IN(x),
		      MU_ATTRS(LIST("ksizes", two_by_two, 4), LIST("strides", every_second, 4),
			       LIST("rates", two_by_two, 4), MU_A_STR("padding", "SAME"))))
CASE(y_volume_patches, mu_op(b, "ExtractVolumePatches", MU_IN(x),
			     MU_ATTRS(LIST("ksizes", deep, 5), LIST("strides", ones, 5),
				      MU_A_STR("padding", "VALID"))))

#define DILATED(x, filter)                                                                         \
	mu_op(b, "Dilation2D", MU_IN(x, filter),                                                   \
	      MU_ATTRS(LIST("strides", every_second, 4), LIST("rates", ones, 4),                   \
		       MU_A_STR("padding", "SAME")))
CASE(y_dilation, DILATED(x, mu_reshape(b, values(b, 6, 2, 0), ints(b, 3, (int32_t[]){2, 3, 2}))))
CASE(y_dilation_filter, DILATED(PICTURES, x))

#define RESIZE_CASES                                                                               \
	{"Dilation2D", {4, {2, 3, 4, 2}}, y_dilation, -1, 1},                                      \
	    {"Dilation2D of filters", {3, {2, 3, 2}}, y_dilation_filter, -1, 1},                   \
	    {"ExtractImagePatches", {4, {2, 3, 4, 2}}, y_patches, -1, 1},                          \
	    {"ExtractVolumePatches", {5, {2, 3, 2, 2, 2}}, y_volume_patches, -1, 1},               \
	    {"CropAndResize", {4, {2, 2, 3, 2}}, y_crop, -1, 1},                                   \
	    {"CropAndResize of boxes", {2, {2, 4}}, y_crop_boxes, 0.1f, 0.9f},                     \
	    {"ResizeBilinear", {4, {2, 2, 3, 2}}, y_bilinear, -1, 1},                              \
	    {"ResizeBilinearGrad", {4, {2, 4, 2, 2}}, y_bilinear_grad, -1, 1},                     \
	    {"ResizeBicubic", {4, {2, 2, 3, 2}}, y_bicubic, -1, 1},                                \
	    {"ResizeBicubicGrad", {4, {2, 3, 4, 2}}, y_bicubic_grad, -1, 1},                       \
	    {"ResizeNearestNeighbor", {4, {2, 2, 3, 2}}, y_nearest, -1, 1},                        \
	    {"ResizeNearestNeighborGrad", {4, {2, 3, 4, 2}}, y_nearest_grad, -1, 1},

#endif
