/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of ops that only rearrange elements (the inverse op), and of resizing and patches. */
#include "lib/grad/op_grads.h"

/* Applies the inverse op to g, with all inputs of the node except the first. */
static struct mu_out inverse_op(struct grad_call *c, const char *op)
{
	struct mu_out in[3] = {c->gy[0]};

	for (unsigned i = 1; i < c->node->n_inputs; i++)
		in[i] = grad_in(c, i);
	return grad_op(c, op, in, c->node->n_inputs);
}

GRAD_UNARY(g_batch_to_space, inverse_op(c, "SpaceToBatch"))
GRAD_UNARY(g_batch_to_space_nd, inverse_op(c, "SpaceToBatchND"))
GRAD_UNARY(g_space_to_batch, inverse_op(c, "BatchToSpace"))
GRAD_UNARY(g_space_to_batch_nd, inverse_op(c, "BatchToSpaceND"))
GRAD_UNARY(g_depth_to_space, GRAD_OP(c, "SpaceToDepth", g))
GRAD_UNARY(g_space_to_depth, GRAD_OP(c, "DepthToSpace", g))
GRAD_UNARY(g_reverse_sequence, GRAD_OP(c, "ReverseSequence", g, grad_in(c, 1)))
GRAD_UNARY(g_roll, mu_op(b, "Roll", MU_IN(g, mu_neg(b, grad_in(c, 1)), grad_in(c, 2))))
GRAD_UNARY(g_diag, mu_op(b, "DiagPart", MU_IN(g)))

/* Returns the size of images. Resize ops are linear: each is the gradient of its Grad op, and the
 * Grad op is the gradient of the resize op. */
static struct mu_out size_of(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "Slice", MU_IN(grad_shape(b, x), grad_single(b, 1), grad_single(b, 2)));
}

GRAD_UNARY(g_bilinear, GRAD_OP(c, "ResizeBilinearGrad", g, x))
GRAD_UNARY(g_bilinear_grad, GRAD_OP(c, "ResizeBilinear", g, size_of(b, x)))
GRAD_UNARY(g_bicubic, GRAD_OP(c, "ResizeBicubicGrad", g, x))
GRAD_UNARY(g_bicubic_grad, GRAD_OP(c, "ResizeBicubic", g, size_of(b, x)))
GRAD_UNARY(g_scaled, GRAD_OP(c, "ScaleAndTranslateGrad", g, x, grad_in(c, 2), grad_in(c, 3)))
GRAD_UNARY(g_scaled_grad,
	   GRAD_OP(c, "ScaleAndTranslate", g, size_of(b, x), grad_in(c, 2), grad_in(c, 3)))
GRAD_UNARY(g_nearest, GRAD_OP(c, "ResizeNearestNeighborGrad", g, size_of(b, x)))
GRAD_UNARY(g_nearest_grad, GRAD_OP(c, "ResizeNearestNeighbor", g, size_of(b, x)))

/* Inputs: (image, boxes, box indices, size). The image and the box coordinates have gradients. As
 * in TensorFlow, the gradient of the boxes is always that of bilinear sampling. */
static void g_crop(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 0), boxes = grad_in(c, 1), box_indices = grad_in(c, 2);

	const struct mu_attr *method = mu_node_attr(c->node, "method");
	enum mu_dtype t = mu_dtype_base(mu_out_dtype(c->b, x));

	if (grad_is_trainable(t))
		c->gx[0] =
		    mu_op(c->b, "CropAndResizeGradImage",
			  MU_IN(c->gy[0], boxes, box_indices, grad_shape(c->b, x)),
			  MU_ATTRS(MU_A_TYPE("T", t),
				   MU_A_STR("method", method ? method->s.data : "bilinear")));
	c->gx[1] = mu_op(c->b, "CropAndResizeGradBoxes", MU_IN(c->gy[0], x, boxes, box_indices));
}

/* Adds the gradient of each patch element to its source element. To find the source, the same op
 * extracts patches of the element numbers, which start at 1. The number 0 is padding; it becomes
 * segment id -1, which UnsortedSegmentSum ignores. */
static void patches_gradient(struct grad_call *c, int32_t n_axes)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), shape = grad_shape(b, x), one = grad_int(b, 1);
	struct mu_out sides =
	    mu_op(b, "Slice", MU_IN(shape, grad_single(b, 1), grad_single(b, n_axes)));
	struct mu_out depth =
	    mu_op(b, "Slice", MU_IN(shape, grad_single(b, n_axes + 1), grad_single(b, 1)));
	struct mu_out batch = mu_op(b, "Slice", MU_IN(shape, grad_single(b, 0), grad_single(b, 1)));
	struct mu_out positions = mu_op(b, "Prod", MU_IN(sides, grad_int(b, 0)));
	struct mu_out numbers = mu_op(b, "Range", MU_IN(one, mu_add(b, positions, one), one));
	struct mu_out image_shape = mu_op(
	    b, "ConcatV2", MU_IN(grad_single(b, 1), sides, grad_single(b, 1), grad_int(b, 0)));
	struct mu_out element_numbers =
	    GRAD_OP(c, c->node->op, mu_reshape(b, numbers, image_shape));
	struct mu_out rows =
	    mu_op(b, "ConcatV2", MU_IN(batch, grad_single(b, -1), depth, grad_int(b, 0)));
	struct mu_out order = mu_const_ints(b, (int32_t[]){1, 0, 2}, 3);
	struct mu_out g = mu_op(b, "Transpose", MU_IN(mu_reshape(b, c->gy[0], rows), order));

	g = mu_op(b, "UnsortedSegmentSum",
		  MU_IN(g, mu_sub(b, mu_reshape(b, element_numbers, grad_single(b, -1)), one),
			positions));
	c->gx[0] = mu_reshape(b, mu_op(b, "Transpose", MU_IN(g, order)), shape);
}

static void g_image_patches(struct grad_call *c)
{
	patches_gradient(c, 2);
}

static void g_volume_patches(struct grad_call *c)
{
	patches_gradient(c, 3);
}

const struct op_grad grads_of_spaces[] = {
    {"BatchToSpace", g_batch_to_space, GRAD_FIRST},
    {"BatchToSpaceND", g_batch_to_space_nd, GRAD_FIRST},
    {"CropAndResize", g_crop, GRAD_FIRST},
    {"DepthToSpace", g_depth_to_space, GRAD_FIRST},
    {"Diag", g_diag, GRAD_FIRST},
    {"ExtractImagePatches", g_image_patches, GRAD_FIRST},
    {"ExtractVolumePatches", g_volume_patches, GRAD_FIRST},
    {"ResizeBicubic", g_bicubic, GRAD_FIRST},
    {"ResizeBicubicGrad", g_bicubic_grad, GRAD_FIRST},
    {"ResizeBilinear", g_bilinear, GRAD_FIRST},
    {"ResizeBilinearGrad", g_bilinear_grad, GRAD_FIRST},
    {"ResizeNearestNeighbor", g_nearest, GRAD_FIRST},
    {"ResizeNearestNeighborGrad", g_nearest_grad, GRAD_FIRST},
    {"ReverseSequence", g_reverse_sequence, GRAD_FIRST},
    {"Roll", g_roll, GRAD_FIRST},
    {"ScaleAndTranslate", g_scaled, GRAD_FIRST},
    {"ScaleAndTranslateGrad", g_scaled_grad, GRAD_FIRST},
    {"SpaceToBatch", g_space_to_batch, GRAD_FIRST},
    {"SpaceToBatchND", g_space_to_batch_nd, GRAD_FIRST},
    {"SpaceToDepth", g_space_to_depth, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
