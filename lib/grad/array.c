/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of ops that change shapes and join or repeat tensors, and of switches. */
#include "lib/grad/op_grads.h"

GRAD_UNARY(g_reshape, grad_like(b, g, x))
GRAD_UNARY(g_broadcast_to, grad_sum_to(b, g, x))
GRAD_UNARY(g_reverse, mu_op(b, "ReverseV2", MU_IN(g, grad_in(c, 1))))
GRAD_UNARY(g_transpose,
	   mu_op(b, "Transpose", MU_IN(g, mu_op(b, "InvertPermutation", MU_IN(grad_in(c, 1))))))

static void g_fill(struct grad_call *c)
{
	c->gx[1] = mu_sum(c->b, grad_flat(c->b, c->gy[0]), NULL, 0);
}

/* Each axis is reshaped to (repeats, size) and summed over the repeats. */
static void g_tile(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out sizes = grad_shape(b, grad_in(c, 0));
	struct mu_out repeats = mu_cast(b, grad_in(c, 1), MU_INT32);
	struct mu_out split_shape =
	    grad_flat(b, mu_op(b, "Pack", MU_IN(repeats, sizes), MU_ATTRS(MU_A_INT("axis", 1))));
	struct mu_out axes =
	    mu_op(b, "Range", MU_IN(grad_int(b, 0), grad_size(b, split_shape), grad_int(b, 2)));

	c->gx[0] = mu_reshape(b, mu_op(b, "Sum", MU_IN(mu_reshape(b, c->gy[0], split_shape), axes)),
			      sizes);
}

/* ---- Concat, Split, Pack and Unpack ---- */

/* Splits g along an axis into the gradients of inputs [first, first + n). */
static void split_gradient(struct grad_call *c, unsigned first, unsigned n, struct mu_out axis)
{
	struct mu_builder *b = c->b;
	struct mu_out *in = MU_NEW_ARRAY(struct mu_out, n + 2);
	struct mu_out sizes, offsets;

	for (unsigned i = 0; i < n; i++)
		in[i + 1] = grad_in(c, first + i);
	sizes = mu_op_add(b, &(struct mu_op_args){.op = "ShapeN", .in = in + 1, .n_in = n});
	/* ConcatOffset accepts no negative axis. */
	in[0] =
	    mu_op(b, "FloorMod",
		  MU_IN(mu_cast(b, axis, MU_INT32), mu_op(b, "Rank", MU_IN(grad_in(c, first)))));
	for (unsigned i = 0; i < n; i++)
		in[i + 1] = mu_port(sizes, (int)i);
	offsets = mu_op_add(b, &(struct mu_op_args){.op = "ConcatOffset", .in = in, .n_in = n + 1});
	for (unsigned i = 0; i < n; i++)
		c->gx[first + i] = mu_op(
		    b, "Slice", MU_IN(c->gy[0], mu_port(offsets, (int)i), mu_port(sizes, (int)i)));
	free(in);
}

static unsigned attr_count(const struct grad_call *c, const char *name)
{
	int64_t n = 0;

	mu_node_attr_int(c->node, name, &n, NULL);
	return n > 0 ? (unsigned)n : 0;
}

static void g_concat(struct grad_call *c)
{
	split_gradient(c, 1, attr_count(c, "N"), grad_in(c, 0));
}

static void g_concat_v2(struct grad_call *c)
{
	unsigned n = attr_count(c, "N");

	split_gradient(c, 0, n, grad_in(c, n));
}

/* Concatenates the gradients of all outputs. */
static struct mu_out concat_gradients(struct grad_call *c, struct mu_out axis)
{
	struct mu_out *in = MU_NEW_ARRAY(struct mu_out, c->n_gy + 1), out;

	memcpy(in, c->gy, c->n_gy * sizeof(*in));
	in[c->n_gy] = axis;
	out =
	    mu_op_add(c->b, &(struct mu_op_args){.op = "ConcatV2", .in = in, .n_in = c->n_gy + 1});
	free(in);
	return out;
}

static void g_split(struct grad_call *c)
{
	c->gx[1] = concat_gradients(c, grad_in(c, 0));
}

static void g_split_v(struct grad_call *c)
{
	c->gx[0] = concat_gradients(c, grad_in(c, 2));
}

static void g_pack(struct grad_call *c)
{
	unsigned n = attr_count(c, "N");
	int64_t axis = 0;
	struct mu_out parts;

	mu_node_attr_int(c->node, "axis", &axis, NULL);
	parts = mu_op(c->b, "Unpack", MU_IN(c->gy[0]),
		      MU_ATTRS(MU_A_INT("num", n), MU_A_INT("axis", axis)));
	for (unsigned i = 0; i < n; i++)
		c->gx[i] = mu_port(parts, (int)i);
}

static void g_unpack(struct grad_call *c)
{
	c->gx[0] = grad_op(c, "Pack", c->gy, c->n_gy);
}

static void g_identity_n(struct grad_call *c)
{
	memcpy(c->gx, c->gy, c->n_gy * sizeof(*c->gx));
}

/* A branch without a gradient has the gradient zeros if it is taken. */
static void g_switch(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out zeros = MU_NO_OUT, branches[2];

	if (!c->gy[0].node || !c->gy[1].node)
		zeros = mu_op(b, "Switch", MU_IN(grad_zeros(b, grad_in(c, 0)), grad_in(c, 1)));
	for (int i = 0; i < 2; i++)
		branches[i] = c->gy[i].node ? c->gy[i] : mu_port(zeros, i);
	c->gx[0] = mu_op(b, "Merge", MU_IN(branches[0], branches[1]));
}

/* Output 1 of a Merge is the index of the taken branch. */
static void g_merge(struct grad_call *c)
{
	struct mu_builder *b = c->b;

	for (unsigned i = 0; i < attr_count(c, "N"); i++) {
		struct mu_out is_taken = mu_equal(b, grad_out(c, 1), grad_int(b, i));

		c->gx[i] = mu_port(mu_op(b, "Switch", MU_IN(c->gy[0], is_taken)), 1);
	}
}

static void g_prevent(struct grad_call *c)
{
	const char *message = "";

	mu_node_attr_string(c->node, "message", &message, NULL);
	grad_unsupported(c, *message ? message : "because of a PreventGradient op");
}

const struct op_grad grads_of_arrays[] = {
    {"BroadcastTo", g_broadcast_to, GRAD_FIRST},
    {"Concat", g_concat, GRAD_FIRST},
    {"ConcatV2", g_concat_v2, GRAD_FIRST},
    {"ConjugateTranspose", g_transpose, GRAD_FIRST},
    {"ExpandDims", g_reshape, GRAD_FIRST},
    {"Fill", g_fill, GRAD_FIRST},
    {"IdentityN", g_identity_n, GRAD_ANY},
    {"Merge", g_merge, GRAD_FIRST},
    {"Pack", g_pack, GRAD_FIRST},
    {"PreventGradient", g_prevent, GRAD_FIRST},
    {"Reshape", g_reshape, GRAD_FIRST},
    {"RefMerge", g_merge, GRAD_FIRST},
    {"RefSwitch", g_switch, GRAD_ANY},
    {"ReverseV2", g_reverse, GRAD_FIRST},
    {"Split", g_split, GRAD_ALL},
    {"SplitV", g_split_v, GRAD_ALL},
    {"Squeeze", g_reshape, GRAD_FIRST},
    {"Switch", g_switch, GRAD_ANY},
    {"Tile", g_tile, GRAD_FIRST},
    {"Transpose", g_transpose, GRAD_FIRST},
    {"Unpack", g_unpack, GRAD_ALL},
    {NULL, NULL, GRAD_FIRST},
};
