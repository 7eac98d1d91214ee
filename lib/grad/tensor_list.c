/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of tensor lists and optionals. The gradient of a list is a list of gradients of the
 * same length. ZerosLike returns a list of zeros, and AddN adds lists. */
#include "lib/grad/op_grads.h"

static struct mu_node_attr elements_like(struct grad_call *c, struct mu_out tensor)
{
	return MU_A_TYPE("element_dtype", mu_dtype_base(mu_out_dtype(c->b, tensor)));
}

/* Returns the shape of the rows of x. */
static struct mu_out row_shape(struct grad_call *c, struct mu_out x)
{
	return mu_op(c->b, "Slice",
		     MU_IN(grad_shape(c->b, x), mu_const_ints(c->b, (int32_t[]){1}, 1),
			   mu_const_ints(c->b, (int32_t[]){-1}, 1)));
}

/* Inputs: (list, x). */
static void g_push_back(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 1);

	c->gx[0] = mu_op(c->b, "TensorListPopBack", MU_IN(c->gy[0], grad_shape(c->b, x)),
			 MU_ATTRS(elements_like(c, x)));
	c->gx[1] = mu_port(c->gx[0], 1);
}

/* Inputs: (list, shape). Outputs: (list, tensor). */
static void g_pop_back(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TensorListPushBack", MU_IN(c->gy[0], c->gy[1]));
}

/* Inputs: (list, shape). */
static void g_stack(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TensorListFromTensor", MU_IN(c->gy[0], row_shape(c, c->gy[0])));
}

/* Inputs: (x, shape). */
static void g_from_tensor(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 0);

	c->gx[0] = mu_op(c->b, "TensorListStack", MU_IN(c->gy[0], row_shape(c, x)),
			 MU_ATTRS(elements_like(c, x)));
}

/* Inputs: (list, index, shape). */
static void g_get_item(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TensorListSetItem",
			 MU_IN(grad_zeros(c->b, grad_in(c, 0)), grad_in(c, 1), c->gy[0]));
}

/* Inputs: (list, index, x). */
static void g_set_item(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 2);

	c->gx[0] =
	    mu_op(c->b, "TensorListSetItem", MU_IN(c->gy[0], grad_in(c, 1), grad_zeros(c->b, x)));
	c->gx[2] =
	    mu_op(c->b, "TensorListGetItem", MU_IN(c->gy[0], grad_in(c, 1), grad_shape(c->b, x)),
		  MU_ATTRS(elements_like(c, x)));
}

/* Inputs: (list, size). */
static void g_resize(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TensorListResize",
			 MU_IN(c->gy[0], mu_op(c->b, "TensorListLength", MU_IN(grad_in(c, 0)))));
}

/* Inputs: (list, indices, shape). The gradients of an element that was gathered twice are summed.
 */
static void g_gather(struct grad_call *c)
{
	struct mu_out n = mu_op(c->b, "TensorListLength", MU_IN(grad_in(c, 0)));
	struct mu_out rows = mu_op(c->b, "UnsortedSegmentSum", MU_IN(c->gy[0], grad_in(c, 1), n));

	c->gx[0] = mu_op(c->b, "TensorListFromTensor", MU_IN(rows, row_shape(c, rows)));
}

static struct mu_out gather_elements(struct grad_call *c, struct mu_out x, struct mu_out indices)
{
	return mu_op(c->b, "TensorListGather", MU_IN(c->gy[0], indices, row_shape(c, x)),
		     MU_ATTRS(elements_like(c, x)));
}

/* Inputs: (x, indices, shape), and a length in V2. */
static void g_scatter(struct grad_call *c)
{
	c->gx[0] = gather_elements(c, grad_in(c, 0), grad_in(c, 1));
}

/* Inputs: (list, x, indices). */
static void g_scatter_into(struct grad_call *c)
{
	struct mu_out x = grad_in(c, 1), indices = grad_in(c, 2);

	c->gx[0] = mu_op(c->b, "TensorListScatterIntoExistingList",
			 MU_IN(c->gy[0], grad_zeros(c->b, x), indices));
	c->gx[1] = gather_elements(c, x, indices);
}

/* Inputs: (list, shape, lengths). Output 1 is the lengths. */
static void g_list_concat(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TensorListSplit", MU_IN(c->gy[0], grad_in(c, 1), grad_out(c, 1)));
}

/* Inputs: (x, shape, lengths). */
static void g_list_split(struct grad_call *c)
{
	c->gx[0] = mu_op(c->b, "TensorListConcatV2", MU_IN(c->gy[0], grad_in(c, 1), grad_in(c, 2)),
			 MU_ATTRS(elements_like(c, grad_in(c, 0))));
}

/* ---- optionals ---- */

static void g_from_value(struct grad_call *c)
{
	struct mu_node *n = c->node;
	enum mu_dtype *types = MU_ARENA_ARRAY(&c->b->graph->arena, enum mu_dtype, n->n_inputs + 1);
	struct mu_pshape *shapes =
	    MU_ARENA_ARRAY(&c->b->graph->arena, struct mu_pshape, n->n_inputs + 1);
	struct mu_out values;

	for (unsigned i = 0; i < n->n_inputs; i++) {
		types[i] = mu_dtype_base(mu_out_dtype(c->b, grad_in(c, i)));
		shapes[i] = *mu_out_shape(c->b, grad_in(c, i));
	}
	values = mu_op(
	    c->b, "OptionalGetValue", MU_IN(c->gy[0]),
	    MU_ATTRS(MU_A_TYPES("output_types", types, n->n_inputs),
		     {"output_shapes",
		      {.kind = MU_ATTR_LIST + MU_ATTR_SHAPE, .n = n->n_inputs, .shapes = shapes}}));
	for (unsigned i = 0; i < n->n_inputs; i++)
		c->gx[i] = mu_port(values, (int)i);
}

static void g_get_value(struct grad_call *c)
{
	c->gx[0] = mu_op_add(
	    c->b, &(struct mu_op_args){.op = "OptionalFromValue", .in = c->gy, .n_in = c->n_gy});
}

const struct op_grad grads_of_lists[] = {
    {"OptionalFromValue", g_from_value, GRAD_FIRST},
    {"OptionalGetValue", g_get_value, GRAD_ALL},
    {"TensorListConcatV2", g_list_concat, GRAD_FIRST},
    {"TensorListFromTensor", g_from_tensor, GRAD_FIRST},
    {"TensorListGather", g_gather, GRAD_FIRST},
    {"TensorListGetItem", g_get_item, GRAD_FIRST},
    {"TensorListPopBack", g_pop_back, GRAD_ALL},
    {"TensorListPushBack", g_push_back, GRAD_FIRST},
    {"TensorListResize", g_resize, GRAD_FIRST},
    {"TensorListScatter", g_scatter, GRAD_FIRST},
    {"TensorListScatterIntoExistingList", g_scatter_into, GRAD_FIRST},
    {"TensorListScatterV2", g_scatter, GRAD_FIRST},
    {"TensorListSetItem", g_set_item, GRAD_FIRST},
    {"TensorListSplit", g_list_split, GRAD_FIRST},
    {"TensorListStack", g_stack, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
