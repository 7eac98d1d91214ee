/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of matrix products. */
#include "lib/grad/op_grads.h"

static struct mu_out matrix_product(struct mu_builder *b, const char *op, struct mu_out x, bool tx,
				    struct mu_out y, bool ty)
{
	return strcmp(op, "MatMul") == 0
		   ? mu_matmul_t(b, x, tx, y, ty)
		   : mu_op(b, op, MU_IN(x, y),
			   MU_ATTRS(MU_A_BOOL("adj_x", tx), MU_A_BOOL("adj_y", ty)));
}

static void grad_matmul(struct grad_call *c, const char *op, bool tx, bool ty)
{
	struct mu_builder *b = c->b;
	struct mu_out x = grad_in(c, 0), y = grad_in(c, 1), g = c->gy[0];

	c->gx[0] =
	    tx ? matrix_product(b, op, y, ty, g, true) : matrix_product(b, op, g, false, y, !ty);
	c->gx[1] =
	    ty ? matrix_product(b, op, g, true, x, tx) : matrix_product(b, op, x, !tx, g, false);
}

static void g_matmul(struct grad_call *c)
{
	grad_matmul(c, "MatMul", grad_attr_bool(c, "transpose_a"),
		    grad_attr_bool(c, "transpose_b"));
}

static void g_batch_matmul(struct grad_call *c)
{
	grad_matmul(c, "BatchMatMul", grad_attr_bool(c, "adj_x"), grad_attr_bool(c, "adj_y"));
}

/* Only the batch dimensions may have been broadcast. */
static void g_batch_matmul_v2(struct grad_call *c)
{
	grad_matmul(c, "BatchMatMulV2", grad_attr_bool(c, "adj_x"), grad_attr_bool(c, "adj_y"));
	for (unsigned i = 0; i < 2; i++)
		c->gx[i] = grad_sum_to(c->b, c->gx[i], grad_in(c, i));
}

const struct op_grad grads_of_matmul[] = {
    {"BatchMatMul", g_batch_matmul, GRAD_FIRST},
    {"BatchMatMulV2", g_batch_matmul_v2, GRAD_FIRST},
    {"BatchMatMulV3", g_batch_matmul_v2, GRAD_FIRST},
    {"MatMul", g_matmul, GRAD_FIRST},
    {"SparseMatMul", g_matmul, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
