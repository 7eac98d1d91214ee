/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of what goes through a tensor array: the array of gradients beside it is written where
 * the array was read, and read where it was written.
 *
 * What orders these is the flow, a number without meaning that each op hands on: the gradient of a
 * flow is the flow of the gradients.  Several readings of an element are summed by the array.  Each
 * mu_gradients has an array of its own, known by the name of its scope.
 */
#include "client/grad/op_grads.h"

struct array {
	struct mu_out handle, flow;
};

/* The array of gradients, once what `flow` stands for has happened. */
static struct array gradients_of(struct grad_call *c, struct mu_out flow)
{
	struct mu_builder *b = c->b;
	struct mu_out handle = mu_op(b, "TensorArrayGradV3", MU_IN(grad_in(c, 0), flow),
				     MU_ATTRS(MU_A_STR("source", b->gradients)));

	return (struct array){handle, mu_port(handle, 1)};
}

static struct mu_node_attr type_of(struct grad_call *c, unsigned input)
{
	return MU_A_TYPE("dtype", mu_dtype_base(mu_out_dtype(c->b, grad_in(c, input))));
}

/* Of (handle, index or indices, flow). */
static void g_read(struct grad_call *c)
{
	struct array g = gradients_of(c, grad_in(c, 2));
	const char *op = strcmp(c->node->op, "TensorArrayReadV3") == 0 ? "TensorArrayWriteV3"
								       : "TensorArrayScatterV3";

	c->gx[2] = mu_op(c->b, op, MU_IN(g.handle, grad_in(c, 1), c->gy[0], g.flow));
}

/* Of (handle, index or indices, value, flow). */
static void g_write(struct grad_call *c)
{
	struct array g = gradients_of(c, c->gy[0]);
	const char *op = strcmp(c->node->op, "TensorArrayWriteV3") == 0 ? "TensorArrayReadV3"
									: "TensorArrayGatherV3";

	c->gx[2] = mu_op(c->b, op, MU_IN(g.handle, grad_in(c, 1), g.flow), MU_ATTRS(type_of(c, 2)));
	c->gx[3] = c->gy[0];
}

/* Of (handle, flow); output 1 is the lengths. */
static void g_concat(struct grad_call *c)
{
	struct array g = gradients_of(c, grad_in(c, 1));

	c->gx[1] =
	    mu_op(c->b, "TensorArraySplitV3", MU_IN(g.handle, c->gy[0], grad_out(c, 1), g.flow));
}

/* Of (handle, value, lengths, flow). */
static void g_split(struct grad_call *c)
{
	struct array g = gradients_of(c, c->gy[0]);

	c->gx[1] =
	    mu_op(c->b, "TensorArrayConcatV3", MU_IN(g.handle, g.flow), MU_ATTRS(type_of(c, 1)));
	c->gx[3] = c->gy[0];
}

const struct op_grad grads_of_tensor_arrays[] = {
    {"TensorArrayConcatV3", g_concat, GRAD_FIRST},
    {"TensorArrayGatherV3", g_read, GRAD_FIRST},
    {"TensorArrayReadV3", g_read, GRAD_FIRST},
    {"TensorArrayScatterV3", g_write, GRAD_FIRST},
    {"TensorArraySplitV3", g_split, GRAD_FIRST},
    {"TensorArrayWriteV3", g_write, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
