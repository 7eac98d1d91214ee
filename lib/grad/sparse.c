/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of sparse tensors (indices, values, shape) with respect to their values. */
#include "lib/grad/op_grads.h"

/* Reorders 0, 1, 2, … in the same way, which shows the new position of each value. */
static void g_reorder(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out values = grad_in(c, 1), order;
	struct mu_out numbers =
	    mu_op(b, "Range", MU_IN(grad_int(b, 0), grad_size(b, values), grad_int(b, 1)));

	if (!c->gy[1].node)
		return;
	order = mu_port(mu_op(b, "SparseReorder", MU_IN(grad_in(c, 0), numbers, grad_in(c, 2))), 1);
	c->gx[1] = mu_op(b, "Gather", MU_IN(c->gy[1], mu_op(b, "InvertPermutation", MU_IN(order))));
}

static struct mu_out transpose_if(struct mu_builder *b, struct mu_out matrix, bool transposed)
{
	return transposed
		   ? mu_op(b, "Transpose", MU_IN(matrix, mu_const_ints(b, (int32_t[]){1, 0}, 2)))
		   : matrix;
}

/* Inputs: (indices, values, shape of A, B). The product of A and B, each optionally transposed. */
static void g_dense_matmul(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	bool adjoint_a = grad_attr_bool(c, "adjoint_a"), adjoint_b = grad_attr_bool(c, "adjoint_b");
	struct mu_out g = c->gy[0], right = transpose_if(b, grad_in(c, 3), adjoint_b), rows,
		      columns, at;
	struct mu_out product = mu_op(b, "SparseTensorDenseMatMul",
				      MU_IN(grad_in(c, 0), grad_in(c, 1), grad_in(c, 2), g),
				      MU_ATTRS(MU_A_BOOL("adjoint_a", !adjoint_a)));

	c->gx[3] = transpose_if(b, product, adjoint_b);
	at = mu_op(b, "Unpack", MU_IN(grad_in(c, 0)),
		   MU_ATTRS(MU_A_INT("num", 2), MU_A_INT("axis", 1)));
	rows = mu_op(b, "Gather", MU_IN(g, mu_port(at, adjoint_a)));
	columns = mu_op(b, "Gather", MU_IN(right, mu_port(at, !adjoint_a)));
	c->gx[1] = mu_sum(b, mu_mul(b, rows, columns), (int32_t[]){1}, 1);
}

static struct mu_out to_int64(struct mu_builder *b, struct mu_out x)
{
	return mu_cast(b, x, MU_INT64);
}

/* Sets the indices of summed or broadcast dimensions, which have size 1 in `shape` (int64), to 0.
 */
static struct mu_out clamp_indices(struct mu_builder *b, struct mu_out indices, struct mu_out shape)
{
	struct mu_out last = mu_sub(b, shape, to_int64(b, grad_int(b, 1)));

	return mu_op(b, "Minimum", MU_IN(indices, last));
}

/* Returns `shape` with size 1 on these axes; negative axes count from the end. */
static struct mu_out keep_dims_shape(struct mu_builder *b, struct mu_out shape, struct mu_out axes)
{
	struct mu_out rank = grad_size(b, shape), flat = grad_flat(b, axes);
	struct mu_out all_axes = mu_op(b, "Range", MU_IN(grad_int(b, 0), rank, grad_int(b, 1)));
	struct mu_out summed_axes = mu_op(b, "FloorMod", MU_IN(mu_add(b, flat, rank), rank));
	struct mu_out ones =
	    mu_op(b, "Fill", MU_IN(grad_shape(b, flat), to_int64(b, grad_int(b, 1))));

	return mu_op(b, "DynamicStitch", MU_IN(all_axes, summed_axes, shape, ones),
		     MU_ATTRS(MU_A_INT("N", 2)));
}

/* Inputs: (indices, values, shape, axes). */
static void g_reduce_sum(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out shape = keep_dims_shape(b, grad_in(c, 2), grad_in(c, 3));

	c->gx[1] =
	    mu_op(b, "GatherNd",
		  MU_IN(mu_reshape(b, c->gy[0], shape), clamp_indices(b, grad_in(c, 0), shape)));
}

/* Inputs: (indices, values, shape). The softmax is over the values of each row of the last
 * dimension. */
static void g_softmax(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out indices = grad_in(c, 0), y = grad_out(c, 0), g = c->gy[0];
	struct mu_out last = mu_const_ints(b, (int32_t[]){-1}, 1);
	struct mu_out sums =
	    mu_op(b, "SparseReduceSum", MU_IN(indices, mu_mul(b, g, y), grad_in(c, 2), last),
		  MU_ATTRS(MU_A_BOOL("keep_dims", true)));
	struct mu_out shape = keep_dims_shape(b, grad_in(c, 2), last);
	struct mu_out row_sums =
	    mu_op(b, "GatherNd", MU_IN(sums, clamp_indices(b, indices, shape)));

	c->gx[1] = mu_mul(b, mu_sub(b, g, row_sums), y);
}

/* Inputs: two sparse tensors of three inputs each. Output 1 is the values of the sum. */
static void g_add(struct grad_call *c)
{
	struct mu_out grads;

	if (!c->gy[1].node)
		return;
	grads = mu_op(c->b, "SparseAddGrad",
		      MU_IN(c->gy[1], grad_in(c, 0), grad_in(c, 3), grad_out(c, 0)));
	c->gx[1] = grads;
	c->gx[4] = mu_port(grads, 1);
}

/* Inputs: (indices, values, shape, dense). */
static void g_dense_add(struct grad_call *c)
{
	c->gx[1] = mu_op(c->b, "GatherNd", MU_IN(c->gy[0], grad_in(c, 0)));
	c->gx[3] = c->gy[0];
}

/* Inputs: (indices, values, shape, dense), where dense is broadcast. Each value is combined with
 * one element of dense. No tensor of the full shape is created. */
static void g_with_dense(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 1), dense = grad_in(c, 3), g = c->gy[0], gd = g;
	struct mu_out n_missing_axes =
	    mu_sub(b, grad_size(b, grad_in(c, 2)), mu_op(b, "Rank", MU_IN(dense)));
	struct mu_out ones =
	    mu_op(b, "Fill",
		  MU_IN(mu_reshape(b, n_missing_axes, mu_const_ints(b, (int32_t[]){1}, 1)),
			grad_int(b, 1)));
	struct mu_out shape =
	    mu_op(b, "ConcatV2", MU_IN(ones, grad_shape(b, dense), grad_int(b, 0)),
		  MU_ATTRS(MU_A_INT("N", 2)));
	struct mu_out indices = clamp_indices(b, grad_in(c, 0), to_int64(b, shape));
	struct mu_out z = mu_op(b, "GatherNd", MU_IN(mu_reshape(b, dense, shape), indices));

	if (strcmp(c->node->op, "SparseDenseCwiseMul") == 0) {
		c->gx[1] = mu_mul(b, g, z);
		gd = mu_mul(b, g, x);
	} else if (strcmp(c->node->op, "SparseDenseCwiseDiv") == 0) {
		c->gx[1] = mu_div(b, g, z);
		gd = mu_neg(b, mu_div(b, mu_mul(b, g, grad_out(c, 0)), z));
	} else {
		c->gx[1] = g;
	}
	c->gx[3] =
	    grad_like(b, mu_op(b, "ScatterNd", MU_IN(indices, gd, to_int64(b, shape))), dense);
}

const struct op_grad grads_of_sparse[] = {
    {"SparseAdd", g_add, GRAD_ANY},
    {"SparseDenseCwiseAdd", g_with_dense, GRAD_FIRST},
    {"SparseDenseCwiseDiv", g_with_dense, GRAD_FIRST},
    {"SparseDenseCwiseMul", g_with_dense, GRAD_FIRST},
    {"SparseReduceSum", g_reduce_sum, GRAD_FIRST},
    {"SparseReorder", g_reorder, GRAD_ANY},
    {"SparseSoftmax", g_softmax, GRAD_FIRST},
    {"SparseTensorDenseAdd", g_dense_add, GRAD_FIRST},
    {"SparseTensorDenseMatMul", g_dense_matmul, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
