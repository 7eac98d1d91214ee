/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of decompositions, determinants and solvers of (batches of) matrices. */
#include "lib/grad/op_grads.h"

static struct mu_out diagonal_matrix(struct mu_builder *b, struct mu_out x)
{
	return mu_op(b, "MatrixDiag", MU_IN(x));
}

/* Returns the lower triangle, with half the diagonal. */
static struct mu_out half_lower(struct mu_builder *b, struct mu_out x)
{
	struct mu_out half = grad_scale(b, mu_op(b, "MatrixDiagPart", MU_IN(x)), 0.5);
	struct mu_out low = mu_op(b, "MatrixBandPart", MU_IN(x, grad_int(b, -1), grad_int(b, 0)));

	return mu_op(b, "MatrixSetDiag", MU_IN(low, half));
}

/* Reshapes x, which has one number for each matrix, so that it broadcasts over the matrices. */
static struct mu_out broadcast_to_matrix(struct mu_builder *b, struct mu_out x)
{
	struct mu_out last = grad_int(b, -1);

	return mu_op(b, "ExpandDims", MU_IN(mu_op(b, "ExpandDims", MU_IN(x, last)), last));
}

static struct mu_out inverse(struct mu_builder *b, struct mu_out x, bool adjoint)
{
	return mu_op(b, "MatrixInverse", MU_IN(x), MU_ATTRS(MU_A_BOOL("adjoint", adjoint)));
}

/* y = l with a = l lᵀ. The gradient is half of s plus its transpose, s = l⁻ᵀ p l⁻¹. */
static void g_cholesky(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out l = grad_out(c, 0), diagonal = mu_op(b, "MatrixDiagPart", MU_IN(l));
	struct mu_out one = diagonal_matrix(b, mu_op(b, "OnesLike", MU_IN(diagonal)));
	struct mu_out inverse_l = mu_op(b, "MatrixTriangularSolve", MU_IN(l, one));
	struct mu_out p = half_lower(b, grad_matrix_product(b, l, true, c->gy[0], false));
	struct mu_out s = grad_matrix_product(
	    b, inverse_l, true, grad_matrix_product(b, p, false, inverse_l, false), false);
	struct mu_out transposed_s = grad_matrix_product(
	    b, inverse_l, true, grad_matrix_product(b, p, true, inverse_l, false), false);

	c->gx[0] = grad_scale(b, mu_add(b, s, transposed_s), 0.5);
}

static void g_inverse(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out y = grad_out(c, 0), g = c->gy[0], product;

	if (grad_attr_bool(c, "adjoint"))
		product = grad_matrix_product(b, y, false,
					      grad_matrix_product(b, g, true, y, false), false);
	else
		product = grad_matrix_product(b, y, true, grad_matrix_product(b, g, false, y, true),
					      false);
	c->gx[0] = mu_neg(b, product);
}

static void g_determinant(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out scale = broadcast_to_matrix(b, mu_mul(b, c->gy[0], grad_out(c, 0)));

	c->gx[0] = mu_mul(b, scale, inverse(b, grad_in(c, 0), true));
}

/* The sign has no gradient. */
static void g_log_determinant(struct grad_call *c)
{
	struct mu_builder *b = c->b;

	if (c->gy[1].node)
		c->gx[0] =
		    mu_mul(b, broadcast_to_matrix(b, c->gy[1]), inverse(b, grad_in(c, 0), true));
}

static void g_solve(struct grad_call *c)
{
	bool adjoint = grad_attr_bool(c, "adjoint");
	struct mu_builder *b = c->b;
	struct mu_out x = grad_out(c, 0), da;

	c->gx[1] = mu_op(b, "MatrixSolve", MU_IN(grad_in(c, 0), c->gy[0]),
			 MU_ATTRS(MU_A_BOOL("adjoint", !adjoint)));
	da = adjoint ? grad_matrix_product(b, x, false, c->gx[1], true)
		     : grad_matrix_product(b, c->gx[1], false, x, true);
	c->gx[0] = mu_neg(b, da);
}

/* 1 / (e[j] - e[i]); 0 if they are equal */
static struct mu_out inverse_differences(struct mu_builder *b, struct mu_out e)
{
	struct mu_out rows = mu_op(b, "ExpandDims", MU_IN(e, grad_int(b, -2)));
	struct mu_out columns = mu_op(b, "ExpandDims", MU_IN(e, grad_int(b, -1)));

	return grad_div_no_nan(b, grad_number(b, e, 1), mu_sub(b, rows, columns));
}

/* The op reads only the lower triangle, which therefore has the gradients of both triangles. */
static void g_self_adjoint(struct grad_call *c)
{
	struct mu_builder *b = c->b;
	struct mu_out e = grad_out(c, 0), v = grad_out(c, 1), middle = MU_NO_OUT, vectors;

	if (!grad_attr_bool(c, "compute_v"))
		v = mu_port(mu_op(b, "SelfAdjointEigV2", MU_IN(grad_in(c, 0)),
				  MU_ATTRS(MU_A_BOOL("compute_v", true))),
			    1);
	if (c->gy[0].node)
		middle = diagonal_matrix(b, c->gy[0]);
	if (c->gy[1].node) {
		vectors = mu_mul(b, inverse_differences(b, e),
				 grad_matrix_product(b, v, true, c->gy[1], false));
		middle = middle.node ? mu_add(b, middle, vectors) : vectors;
	}
	if (!middle.node)
		return;
	vectors = mu_add(
	    b,
	    grad_matrix_product(b, v, false, grad_matrix_product(b, middle, false, v, true), false),
	    grad_matrix_product(b, v, false, grad_matrix_product(b, middle, true, v, true), false));
	c->gx[0] = half_lower(b, vectors);
}

const struct op_grad grads_of_linear[] = {
    {"Cholesky", g_cholesky, GRAD_FIRST},
    {"LogMatrixDeterminant", g_log_determinant, GRAD_ANY},
    {"MatrixDeterminant", g_determinant, GRAD_FIRST},
    {"MatrixInverse", g_inverse, GRAD_FIRST},
    {"MatrixSolve", g_solve, GRAD_FIRST},
    {"SelfAdjointEigV2", g_self_adjoint, GRAD_ANY},
    {NULL, NULL, GRAD_FIRST},
};
