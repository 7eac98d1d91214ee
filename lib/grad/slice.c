/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of slices, padding and diagonals. */
#include "lib/grad/op_grads.h"

/* Pads with `before` and `after` zeros on each axis. */
static struct mu_out pad(struct mu_builder *b, struct mu_out g, struct mu_out before,
			 struct mu_out after)
{
	struct mu_out paddings =
	    mu_op(b, "Pack", MU_IN(before, after), MU_ATTRS(MU_A_INT("axis", 1)));

	return mu_op(b, "Pad", MU_IN(g, paddings));
}

static void g_slice(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out begin = mu_cast(b, grad_in(c, 1), MU_INT32), g = c->gy[0];
	struct mu_out padding = mu_sub(b, grad_shape(b, grad_in(c, 0)), grad_shape(b, g));

	c->gx[0] = pad(b, g, begin, mu_sub(b, padding, begin));
}

/* The gradient of PadV2's constant is the sum of g outside of the unpadded part. */
static void g_pad(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), g = c->gy[0];
	struct mu_out paddings = mu_cast(b, grad_in(c, 1), MU_INT32);
	struct mu_out before = mu_port(
	    mu_op(b, "Unpack", MU_IN(paddings), MU_ATTRS(MU_A_INT("num", 2), MU_A_INT("axis", 1))),
	    0);

	c->gx[0] = mu_op(b, "Slice", MU_IN(g, before, grad_shape(b, x)));
	if (c->node->n_inputs > 2 && strcmp(c->node->op, "PadV2") == 0)
		c->gx[2] = mu_sub(b, mu_sum(b, grad_flat(b, g), NULL, 0),
				  mu_sum(b, grad_flat(b, c->gx[0]), NULL, 0));
}

/* MirrorPad copies elements and MirrorPadGrad sums the copies. Each is the gradient of the other.
 */
static void g_mirror_pad(struct grad_call *c)
{
	bool is_grad = strcmp(c->node->op, "MirrorPadGrad") == 0;

	c->gx[0] = GRAD_OP(c, is_grad ? "MirrorPad" : "MirrorPadGrad", c->gy[0], grad_in(c, 1));
}

static void g_strided_slice(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	enum mu_dtype t = mu_dtype_base(mu_out_dtype(b, grad_in(c, 1)));
	struct mu_out shape = mu_cast(b, grad_shape(b, grad_in(c, 0)), t);

	c->gx[0] = GRAD_OP(c, "StridedSliceGrad", shape, grad_in(c, 1), grad_in(c, 2),
			   grad_in(c, 3), c->gy[0]);
}

/* Inputs: (shape, begin, end, strides, dy). */
static void g_strided_slice_grad(struct grad_call *c)
{
	c->gx[4] =
	    GRAD_OP(c, "StridedSlice", c->gy[0], grad_in(c, 1), grad_in(c, 2), grad_in(c, 3));
}

/* Inputs: (x, begin, end, strides, value).  The value is broadcast to the slice. */
static void g_strided_slice_update(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out g = c->gy[0], value = grad_in(c, 4);
	struct mu_out begin = grad_in(c, 1), end = grad_in(c, 2), strides = grad_in(c, 3);

	c->gx[0] =
	    GRAD_OP(c, "TensorStridedSliceUpdate", g, begin, end, strides, grad_zeros(b, value));
	c->gx[4] = grad_sum_to(b, GRAD_OP(c, "StridedSlice", g, begin, end, strides), value);
}

/* Element i of a diagonal of n elements is element i (n + 1) of the flat matrix. */
static void g_tensor_diag_part(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), n = grad_size(b, c->gy[0]), one = grad_int(b, 1);
	struct mu_out i = mu_op(b, "Range", MU_IN(grad_int(b, 0), n, one));
	struct mu_out positions = mu_mul(b, i, mu_add(b, n, one));
	struct mu_out sums = mu_op(b, "UnsortedSegmentSum",
				   MU_IN(grad_flat(b, c->gy[0]), positions, grad_size(b, x)));

	c->gx[0] = grad_like(b, sums, x);
}

const struct op_grad grads_of_slices[] = {
    {"DiagPart", g_tensor_diag_part, GRAD_FIRST},
    {"MirrorPad", g_mirror_pad, GRAD_FIRST},
    {"MirrorPadGrad", g_mirror_pad, GRAD_FIRST},
    {"Pad", g_pad, GRAD_FIRST},
    {"PadV2", g_pad, GRAD_FIRST},
    {"Slice", g_slice, GRAD_FIRST},
    {"StridedSlice", g_strided_slice, GRAD_FIRST},
    {"StridedSliceGrad", g_strided_slice_grad, GRAD_FIRST},
    {"TensorStridedSliceUpdate", g_strided_slice_update, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
