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

/* Returns the lower or upper triangle, with the diagonal. */
static struct mu_out triangle(struct mu_builder *b, struct mu_out x, bool lower)
{
	return mu_op(b, "MatrixBandPart",
		     MU_IN(x, grad_int(b, lower ? -1 : 0), grad_int(b, lower ? 0 : -1)));
}

static struct mu_out solve_triangle(struct mu_builder *b, struct mu_out a, struct mu_out x,
				    bool lower, bool adjoint)
{
	return mu_op(b, "MatrixTriangularSolve", MU_IN(a, x),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}

/* Inputs: (a, b); output x with a x = b. */
static void g_triangular_solve(struct grad_call *c)
{
	bool lower = grad_attr_bool(c, "lower"), adjoint = grad_attr_bool(c, "adjoint");
	struct mu_builder *b = c->b;
	struct mu_out a = grad_in(c, 0), x = grad_out(c, 0), gx, da;

	gx = solve_triangle(b, a, c->gy[0], lower, !adjoint);
	da = adjoint ? grad_matrix_product(b, x, false, gx, true)
		     : grad_matrix_product(b, gx, false, x, true);
	c->gx[0] = grad_sum_to(b, triangle(b, mu_neg(b, da), lower), a);
	c->gx[1] = grad_sum_to(b, gx, grad_in(c, 1));
}

static struct mu_out solve_bands(struct mu_builder *b, struct mu_out a, struct mu_out x, bool lower,
				 bool adjoint)
{
	return mu_op(b, "BandedTriangularSolve", MU_IN(a, x),
		     MU_ATTRS(MU_A_BOOL("lower", lower), MU_A_BOOL("adjoint", adjoint)));
}

/* Returns the number of rows of the matrices of x. */
static struct mu_out rows_of(struct mu_builder *b, struct mu_out x)
{
	struct mu_out shape = grad_shape(b, x);

	return mu_op(b, "GatherV2",
		     MU_IN(shape, mu_sub(b, grad_size(b, shape), grad_int(b, 2)), grad_int(b, 0)));
}

/* As g_triangular_solve, but `a` has only the diagonals, and so has its gradient. */
static void g_banded_solve(struct grad_call *c)
{
	bool lower = grad_attr_bool(c, "lower"), adjoint = grad_attr_bool(c, "adjoint");
	struct mu_builder *b = c->b;
	struct mu_out a = grad_in(c, 0), x = grad_out(c, 0), gx, da;
	struct mu_out zero = grad_int(b, 0), n_bands = mu_sub(b, rows_of(b, a), grad_int(b, 1));

	gx = solve_bands(b, a, c->gy[0], lower, !adjoint);
	da = adjoint ? grad_matrix_product(b, x, false, gx, true)
		     : grad_matrix_product(b, gx, false, x, true);
	struct mu_out k = lower ? mu_op(b, "Pack", MU_IN(mu_neg(b, n_bands), zero))
				: mu_op(b, "Pack", MU_IN(zero, n_bands));
	da = mu_op(b, "MatrixDiagPartV3", MU_IN(da, k, grad_number(b, a, 0)),
		   MU_ATTRS(MU_A_STR("align", "LEFT_RIGHT")));
	c->gx[0] = grad_sum_to(b, mu_neg(b, da), a);
	c->gx[1] = grad_sum_to(b, gx, grad_in(c, 1));
}

/* Transposes the last two dimensions of a tensor of known rank. */
static struct mu_out transposed(struct mu_builder *b, struct mu_out x, int rank)
{
	int32_t order[MU_MAX_RANK];

	for (int i = 0; i < rank; i++)
		order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
	return mu_op(b, "Transpose", MU_IN(x, mu_const_ints(b, order, (unsigned)rank)));
}

struct qr {
	struct mu_builder *b;
	int rank;
};

/* Solves x rᵀ = y for x. */
static struct mu_out solve_transposed_r(const struct qr *w, struct mu_out y, struct mu_out r)
{
	return transposed(w->b, solve_triangle(w->b, r, transposed(w->b, y, w->rank), false, false),
			  w->rank);
}

/* Returns da for a = q r with no more columns than rows. The constraints are that the columns of q
 * stay orthogonal and that r stays upper triangular. */
static struct mu_out qr_tall(const struct qr *w, struct mu_out q, struct mu_out r, struct mu_out dq,
			     struct mu_out dr)
{
	struct mu_builder *b = w->b;
	struct mu_out qdq = grad_matrix_product(b, q, true, dq, false);
	struct mu_out skew = mu_add(b, mu_sub(b, qdq, grad_matrix_product(b, dq, true, q, false)),
				    mu_sub(b, grad_matrix_product(b, r, false, dr, true),
					   grad_matrix_product(b, dr, false, r, true)));
	struct mu_out q_part = mu_add(b, dr, solve_transposed_r(w, triangle(b, skew, true), r));
	struct mu_out orthogonal_part =
	    solve_transposed_r(w, mu_sub(b, dq, grad_matrix_product(b, q, false, qdq, false)), r);

	return mu_add(b, grad_matrix_product(b, q, false, q_part, false), orthogonal_part);
}

/* Returns columns [from, from + n) of the last dimension; n -1: up to the end. */
static struct mu_out columns(const struct qr *w, struct mu_out x, int64_t from, int64_t n)
{
	int32_t begin[MU_MAX_RANK] = {0}, size[MU_MAX_RANK];

	for (int i = 0; i < w->rank; i++)
		size[i] = -1;
	begin[w->rank - 1] = (int32_t)from;
	size[w->rank - 1] = (int32_t)n;
	return mu_op(w->b, "Slice",
		     MU_IN(x, mu_const_ints(w->b, begin, (unsigned)w->rank),
			   mu_const_ints(w->b, size, (unsigned)w->rank)));
}

/* The columns of `a` after the square part determine only the last columns v of r: v = qᵀ a. */
static struct mu_out qr_wide(const struct qr *w, struct grad_call *c, int64_t rows)
{
	struct mu_builder *b = w->b;
	struct mu_out q = grad_out(c, 0), r = grad_out(c, 1), dq = c->gy[0], dr = c->gy[1];
	struct mu_out dv = columns(w, dr, rows, -1),
		      last_columns = columns(w, grad_in(c, 0), rows, -1);
	struct mu_out square =
	    qr_tall(w, q, columns(w, r, 0, rows),
		    mu_add(b, dq, grad_matrix_product(b, last_columns, false, dv, true)),
		    columns(w, dr, 0, rows));

	return mu_op(b, "ConcatV2",
		     MU_IN(square, grad_matrix_product(b, q, false, dv, false), grad_int(b, -1)));
}

static void g_qr(struct grad_call *c)
{
	const struct mu_pshape *s = mu_out_shape(c->b, grad_in(c, 0));
	int64_t rows = s->rank < 2 ? -1 : s->dim[s->rank - 2];
	int64_t cols = s->rank < 2 ? -1 : s->dim[s->rank - 1];
	struct qr w = {c->b, s->rank};

	if (rows < 0 || cols < 0)
		grad_unsupported(c, "if the size of the matrix is unknown");
	else if (grad_attr_bool(c, "full_matrices") && rows > cols)
		grad_unsupported(c, "with full_matrices and more rows than columns");
	else if (rows < cols)
		c->gx[0] = qr_wide(&w, c, rows);
	else
		c->gx[0] = qr_tall(&w, grad_out(c, 0), grad_out(c, 1), c->gy[0], c->gy[1]);
}

const struct op_grad grads_of_linalg[] = {
    {"BandedTriangularSolve", g_banded_solve, GRAD_FIRST},
    {"Cholesky", g_cholesky, GRAD_FIRST},
    {"LogMatrixDeterminant", g_log_determinant, GRAD_ANY},
    {"MatrixDeterminant", g_determinant, GRAD_FIRST},
    {"MatrixInverse", g_inverse, GRAD_FIRST},
    {"MatrixSolve", g_solve, GRAD_FIRST},
    {"MatrixTriangularSolve", g_triangular_solve, GRAD_FIRST},
    {"Qr", g_qr, GRAD_ALL},
    {"SelfAdjointEigV2", g_self_adjoint, GRAD_ANY},
    {NULL, NULL, GRAD_FIRST},
};
