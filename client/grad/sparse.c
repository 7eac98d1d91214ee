// SPDX-License-Identifier: Apache-2.0
/* Gradients by the values of sparse tensors: (indices, values, shape). */
#include "client/grad/op_grads.h"

/* 0, 1, 2, … are put in the same order and tell where each value went. */
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

static struct mu_out turned(struct mu_builder *b, struct mu_out matrix, bool turn)
{
	return turn ? mu_op(b, "Transpose", MU_IN(matrix, mu_const_ints(b, (int32_t[]){1, 0}, 2)))
		    : matrix;
}

/* Of (indices, values, shape of A, B): the product of A and B, either of them turned. */
static void g_dense_matmul(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	bool turn_a = grad_attr_bool(c, "adjoint_a"), turn_b = grad_attr_bool(c, "adjoint_b");
	struct mu_out g = c->gy[0], right = turned(b, grad_in(c, 3), turn_b), rows, columns, at;
	struct mu_out back = mu_op(b, "SparseTensorDenseMatMul",
				   MU_IN(grad_in(c, 0), grad_in(c, 1), grad_in(c, 2), g),
				   MU_ATTRS(MU_A_BOOL("adjoint_a", !turn_a)));

	c->gx[3] = turned(b, back, turn_b);
	at = mu_op(b, "Unpack", MU_IN(grad_in(c, 0)),
		   MU_ATTRS(MU_A_INT("num", 2), MU_A_INT("axis", 1)));
	rows = mu_op(b, "Gather", MU_IN(g, mu_port(at, turn_a)));
	columns = mu_op(b, "Gather", MU_IN(right, mu_port(at, !turn_a)));
	c->gx[1] = mu_sum(b, mu_mul(b, rows, columns), (int32_t[]){1}, 1);
}

const struct op_grad grads_of_sparse[] = {
    {"SparseReorder", g_reorder, GRAD_ANY},
    {"SparseTensorDenseMatMul", g_dense_matmul, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
