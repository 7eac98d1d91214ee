/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of TensorArray ops. The gradient of a read is a write of the gradient array, and the
 * gradient of a write is a read.
 *
 * The flow tensor, which each op returns, orders the ops; its value has no meaning. The gradient of
 * a flow is the flow of the gradient array. The gradient array sums several reads of an element.
 * Each mu_gradients call has its own gradient array, named by its scope.
 */
#include "lib/grad/op_grads.h"

struct array {
	struct mu_out handle, flow;
};

/* Returns the gradient array, ordered after the ops that produce `flow`. */
static struct array gradients_of(struct grad_call *c, struct mu_out flow)
{
	struct mu_builder *b = c->b;
	struct mu_out handle = mu_op(b, "TensorArrayGradV3", MU_IN(grad_in(c, 0), flow),
				     MU_ATTRS(MU_A_STR("source", b->gradients)));

	return (struct array){handle, mu_port(handle, 1)};
}

static struct mu_node_attr element_type(struct grad_call *c, unsigned input)
{
	return MU_A_TYPE("dtype", mu_dtype_base(mu_out_dtype(c->b, grad_in(c, input))));
}

/* Inputs: (handle, index or indices, flow). */
static void g_read(struct grad_call *c)
{
	struct array g = gradients_of(c, grad_in(c, 2));
	const char *op = strcmp(c->node->op, "TensorArrayReadV3") == 0 ? "TensorArrayWriteV3"
								       : "TensorArrayScatterV3";

	c->gx[2] = mu_op(c->b, op, MU_IN(g.handle, grad_in(c, 1), c->gy[0], g.flow));
}

/* Inputs: (handle, index or indices, value, flow). */
static void g_write(struct grad_call *c)
{
	struct array g = gradients_of(c, c->gy[0]);
	const char *op = strcmp(c->node->op, "TensorArrayWriteV3") == 0 ? "TensorArrayReadV3"
									: "TensorArrayGatherV3";

	c->gx[2] =
	    mu_op(c->b, op, MU_IN(g.handle, grad_in(c, 1), g.flow), MU_ATTRS(element_type(c, 2)));
	c->gx[3] = c->gy[0];
}

/* Inputs: (handle, flow). Output 1 is the lengths. */
static void g_array_concat(struct grad_call *c)
{
	struct array g = gradients_of(c, grad_in(c, 1));

	c->gx[1] =
	    mu_op(c->b, "TensorArraySplitV3", MU_IN(g.handle, c->gy[0], grad_out(c, 1), g.flow));
}

/* Inputs: (handle, value, lengths, flow). */
static void g_array_split(struct grad_call *c)
{
	struct array g = gradients_of(c, c->gy[0]);

	c->gx[1] = mu_op(c->b, "TensorArrayConcatV3", MU_IN(g.handle, g.flow),
			 MU_ATTRS(element_type(c, 1)));
	c->gx[3] = c->gy[0];
}

const struct op_grad grads_of_tensor_arrays[] = {
    {"TensorArrayConcatV3", g_array_concat, GRAD_FIRST},
    {"TensorArrayGatherV3", g_read, GRAD_FIRST},
    {"TensorArrayReadV3", g_read, GRAD_FIRST},
    {"TensorArrayScatterV3", g_write, GRAD_FIRST},
    {"TensorArraySplitV3", g_array_split, GRAD_FIRST},
    {"TensorArrayWriteV3", g_write, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
