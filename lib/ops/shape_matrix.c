/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes of batches of matrices: diagonals, decompositions, triangular systems. */
#include "lib/graph/graph.h"
#include "lib/ops/shape.h"

static int64_t min_dim(int64_t a, int64_t b)
{
	return a == 0 || b == 0 ? 0 : a < 0 || b < 0 ? -1 : a < b ? a : b;
}

/* Returns s, of known rank, with its last n dimensions replaced by a and b. */
static struct mu_pshape with_last(const struct mu_pshape *s, int n, int64_t a, int64_t b)
{
	struct mu_pshape out = mu_pshape_part(s, 0, s->rank - n);

	mu_pshape_push(&out, a);
	mu_pshape_push(&out, b);
	return out;
}

/* ---- diagonals ---- */

int shape_diag_part(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int half = in->rank / 2;

	if (in->rank < 0)
		return 0;
	if (in->rank % 2)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Input must have even rank, input rank is %d", in->rank);
	struct mu_pshape a = mu_pshape_part(in, 0, half), b = mu_pshape_part(in, half, in->rank);
	return mu_shape_merge(&a, &b, &c->out[0], err);
}

int shape_matrix_diag_part(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];

	if (in->rank < 2)
		return 0;
	c->out[0] = mu_pshape_part(in, 0, in->rank - 2);
	mu_pshape_push(&c->out[0], min_dim(in->dim[in->rank - 2], in->dim[in->rank - 1]));
	return 0;
}

/* Reads the constant input 1: a diagonal, or the lowest and the highest diagonal. */
static int read_band(const struct mu_shape_ctx *c, int64_t k[2], bool *known, struct mu_err *err)
{
	int n = mu_shape_ints(c, 1, k, 2);

	if (c->in[1].rank > 1)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Shape must be at most rank 1 but is %s",
			       mu_pshape_str(&c->in[1]));
	*known = c->in_const[1] != NULL && c->in[0].rank >= 0;
	if (*known && n != 1 && n != 2)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "diag_index must be a vector with one or two elements");
	if (*known && n == 1)
		k[1] = k[0];
	if (*known && k[0] > k[1])
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "lower_diag_index is greater than upper_diag_index");
	return 0;
}

int shape_band_part(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t k[2], length = -1;
	bool known;

	MU_RETURN_IF_ERROR(read_band(c, k, &known, err));
	if (!known || in->rank < 2)
		return 0;
	int64_t rows = in->dim[in->rank - 2], cols = in->dim[in->rank - 1];
	for (int i = 0; i < 2 && rows > 0 && cols > 0; i++)
		if (k[i] <= -rows || k[i] >= cols)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "diagonal %lld is out of bound for %s", (long long)k[i],
				       mu_pshape_str(in));
	if (rows >= 0 && cols >= 0) {
		int64_t max_rows = rows + (k[1] < 0 ? k[1] : 0),
			max_cols = cols - (k[0] > 0 ? k[0] : 0);
		length = max_rows < max_cols ? max_rows : max_cols;
	}
	c->out[0] = mu_pshape_part(in, 0, in->rank - 2);
	if (k[0] < k[1])
		mu_pshape_push(&c->out[0], k[1] - k[0] + 1);
	mu_pshape_push(&c->out[0], length);
	return 0;
}

int shape_band_matrix(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	int64_t k[2], rows = -1, cols = -1;
	bool known;

	MU_RETURN_IF_ERROR(read_band(c, k, &known, err));
	int diag_rank = known && k[0] < k[1] ? 2 : 1;
	if (!known || in->rank < 0)
		return 0;
	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, 0, diag_rank, err));
	if (diag_rank == 2 && in->dim[in->rank - 2] >= 0 &&
	    in->dim[in->rank - 2] != k[1] - k[0] + 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "The number of rows of `diagonal` doesn't match the number of "
			       "diagonals implied from `d_lower` and `d_upper`");
	mu_shape_ints(c, 2, &rows, 1);
	mu_shape_ints(c, 3, &cols, 1);
	int64_t length = in->dim[in->rank - 1];
	if (length >= 0) {
		int64_t min_rows = length - (k[1] < 0 ? k[1] : 0);
		int64_t min_cols = length + (k[0] > 0 ? k[0] : 0);
		if (rows == -1 && cols == -1)
			rows = cols = min_rows > min_cols ? min_rows : min_cols;
		rows = rows == -1 ? min_rows : rows;
		cols = cols == -1 ? min_cols : cols;
		if (rows < min_rows || cols < min_cols || (rows != min_rows && cols != min_cols))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "num_rows and num_cols are not consistent with lower_diag, "
				       "upper_diag, and the length of the given diagonals");
	}
	c->out[0] = with_last(in, diag_rank, rows, cols);
	return 0;
}

/* ---- decompositions ---- */

/* Without compute_v the shape of the eigenvectors stays unknown: TensorFlow infers [0], but its
 * kernel returns a scalar. */
int shape_eigen(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];

	if (!mu_shape_flag(c, "compute_v") || in->rank < 2)
		return 0;
	int64_t n = in->dim[in->rank - 1];
	n = n < 0 ? in->dim[in->rank - 2] : n;
	c->out[1] = with_last(in, 2, n, n);
	return 0;
}

int shape_eigen_joined(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];

	if (in->rank < 2)
		return 0;
	int64_t n = in->dim[in->rank - 1];
	n = n < 0 ? in->dim[in->rank - 2] : n;
	c->out[0] = with_last(in, 2, n < 0 ? -1 : n + 1, n);
	return 0;
}

int shape_qr(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];

	if (in->rank < 2)
		return 0;
	int64_t m = in->dim[in->rank - 2], n = in->dim[in->rank - 1];
	int64_t p = mu_shape_flag(c, "full_matrices") ? m : min_dim(m, n);
	c->out[0] = with_last(in, 2, m, p);
	c->out[1] = with_last(in, 2, p, n);
	return 0;
}

int shape_svd(struct mu_shape_ctx *c, struct mu_err *err)
{
	const struct mu_pshape *in = &c->in[0];
	bool full = mu_shape_flag(c, "full_matrices");
	int64_t m = -1, n = -1;

	shape_matrix_diag_part(c, err);
	if (in->rank >= 2) {
		m = in->dim[in->rank - 2];
		n = in->dim[in->rank - 1];
	}
	if (mu_shape_flag(c, "compute_uv") && in->rank >= 2) {
		c->out[1] = with_last(in, 2, m, full ? m : min_dim(m, n));
		c->out[2] = with_last(in, 2, n, full ? n : min_dim(m, n));
	}
	return 0;
}

/* ---- triangular systems ---- */

/* `rows` is the dimension of the matrix that agrees with the rows of the right-hand side. */
static int solve_shape(struct mu_shape_ctx *c, const struct mu_pshape *matrix, int64_t rows,
		       struct mu_err *err)
{
	const struct mu_pshape *rhs = &c->in[1];
	struct mu_pshape out, a = mu_pshape_part(matrix, 0, matrix->rank - 2);
	struct mu_pshape b = mu_pshape_part(rhs, 0, rhs->rank - 2);

	MU_RETURN_IF_ERROR(mu_shape_broadcast(&a, &b, &out, err));
	MU_RETURN_IF_ERROR(mu_shape_merge_dim(rows, rhs->dim[rhs->rank - 2], &rows, err));
	mu_pshape_push(&out, rows);
	mu_pshape_push(&out, rhs->dim[rhs->rank - 1]);
	c->out[0] = out;
	return 0;
}

static int triangular_solve_shape(struct mu_shape_ctx *c, bool banded, struct mu_err *err)
{
	const struct mu_pshape *matrix = &c->in[0];

	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, 0, 2, err));
	MU_RETURN_IF_ERROR(mu_shape_want_min_rank(c, 1, 2, err));
	if (matrix->rank < 0 || c->in[1].rank < 0)
		return 0;
	int64_t m = matrix->dim[matrix->rank - 2], n = matrix->dim[matrix->rank - 1];
	if (!banded)
		MU_RETURN_IF_ERROR(mu_shape_merge_dim(m, n, &n, err));
	return solve_shape(c, matrix, n, err);
}

int shape_triangular_solve(struct mu_shape_ctx *c, struct mu_err *err)
{
	return triangular_solve_shape(c, false, err);
}

int shape_banded_solve(struct mu_shape_ctx *c, struct mu_err *err)
{
	return triangular_solve_shape(c, true, err);
}
