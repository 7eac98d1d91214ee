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

/* Sets the gradients of the product of x and y, the inputs, possibly cast to another type. */
static void grad_product(struct grad_call *c, const char *op, struct mu_out x, bool tx,
			 struct mu_out y, bool ty)
{
	struct mu_builder *b = c->b;
	struct mu_out g = c->gy[0];

	c->gx[0] =
	    tx ? matrix_product(b, op, y, ty, g, true) : matrix_product(b, op, g, false, y, !ty);
	c->gx[1] =
	    ty ? matrix_product(b, op, g, true, x, tx) : matrix_product(b, op, x, !tx, g, false);
}

static void grad_matmul(struct grad_call *c, const char *op, bool tx, bool ty)
{
	grad_product(c, op, grad_in(c, 0), tx, grad_in(c, 1), ty);
}

static struct mu_out as_type(struct mu_builder *b, struct mu_out x, enum mu_dtype type)
{
	return mu_dtype_base(mu_out_dtype(b, x)) == type ? x : mu_cast(b, x, type);
}

static void g_matmul(struct grad_call *c)
{
	grad_matmul(c, "MatMul", grad_attr_bool(c, "transpose_a"),
		    grad_attr_bool(c, "transpose_b"));
}

/* Each input is a float or a bfloat16; the product is a float. */
static void g_sparse_matmul(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out in[2];
	bool tx = grad_attr_bool(c, "transpose_a"), ty = grad_attr_bool(c, "transpose_b");

	for (unsigned i = 0; i < 2; i++)
		in[i] = as_type(b, grad_in(c, i), MU_FLOAT);
	grad_product(c, "MatMul", in[0], tx, in[1], ty);
	for (unsigned i = 0; i < 2; i++)
		c->gx[i] = as_type(b, c->gx[i], mu_dtype_base(mu_out_dtype(b, grad_in(c, i))));
}

static void g_batch_matmul(struct grad_call *c)
{
	grad_matmul(c, "BatchMatMul", grad_attr_bool(c, "adj_x"), grad_attr_bool(c, "adj_y"));
}

/* The op broadcasts only the batch dimensions. */
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
    {"SparseMatMul", g_sparse_matmul, GRAD_FIRST},
    {NULL, NULL, GRAD_FIRST},
};
