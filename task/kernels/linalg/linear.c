/* SPDX-License-Identifier: Apache-2.0 */
/* Cholesky and LU decompositions, and the ops that use them: linear systems, determinants,
 * inverses, least squares. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/linalg/matrices.h"

static int64_t n_elements(const struct matrices *m)
{
	return (int64_t)m->rows * m->cols;
}

/* The number of doubles in n elements of the matrix. */
static int64_t doubles(const struct matrices *m, int64_t n)
{
	return m->is_complex ? 2 * n : n;
}

static int out_like(struct kernel_call *c, struct matrix_job *j, const struct matrices *like,
		    struct mu_err *err)
{
	return kernel_out(c, 0, like->t->dtype, &like->t->shape, &j->out[0], err);
}

/* ---- Cholesky ---- */

static int cholesky_one(const struct matrix_job *j, int64_t k, double *work)
{
	int64_t elements = n_elements(&j->a);
	int n = j->a.rows;

	matrices_get(&j->a, k, BY_COLUMNS, work);
	bool finite = matrices_finite(j->a.is_complex, elements, work);
	int rc = lapack_potrf(j->a.is_complex, n, work);

	if (rc && finite && j->singular_error)
		return rc;
	if (rc)
		for (int64_t i = 0; i < doubles(&j->a, elements); i++)
			work[i] = NAN;
	else
		matrices_keep_lower(j->a.is_complex, n, work);
	matrices_put(j->out[0], k * elements, BY_COLUMNS, n, n, work);
	return 0;
}

static int cholesky(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = cholesky_one, .singular_error = matrices_error_attr(c)};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(out_like(c, &j, &j.a, err));
	j.lwork = n_elements(&j.a);
	return matrices_run(
	    c, &j, "Cholesky decomposition was not successful. The input might not be valid.", err);
}

/* The gradient for a = l l^t is half of s + s^t with s = l^-t p l^-1; p is the lower triangle of
 * l^t g with its diagonal halved. */
static int cholesky_grad_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows;
	int64_t elements = n_elements(&j->a);
	double *l = work, *g = l + elements, *p = g + elements;

	matrices_get(&j->a, k, BY_COLUMNS, l);
	matrices_get(&j->b, k, BY_COLUMNS, g);
	matrices_keep_lower(false, n, l);
	matrices_keep_lower(false, n, g);
	lapack_gemm(false, 'T', 'N', n, n, n, l, g, p);
	matrices_keep_lower(false, n, p);
	for (int64_t i = 0; i < n; i++)
		p[i * n + i] /= 2;
	lapack_trsm(false, 'L', 'L', 'T', n, n, l, p);
	lapack_trsm(false, 'R', 'L', 'N', n, n, l, p);
	for (int64_t i = 0; i < n; i++)
		for (int64_t m = 0; m < n; m++)
			g[i * n + m] = (p[i * n + m] + p[m * n + i]) / 2;
	matrices_put(j->out[0], k * elements, BY_COLUMNS, n, n, g);
	return 0;
}

static int cholesky_grad(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = cholesky_grad_one};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(matrices_system_in(c, &j.a, &j.b, err));
	MU_RETURN_IF_ERROR(out_like(c, &j, &j.a, err));
	if (j.a.is_complex || !mu_shape_eq(&j.a.t->shape, &j.b.t->shape))
		return mu_invalid(err, "CholeskyGrad wants reals of one shape, not %s %s and %s",
				  mu_dtype_name(j.a.t->dtype), mu_shape_str(&j.a.t->shape),
				  mu_shape_str(&j.b.t->shape));
	j.lwork = 2 * n_elements(&j.a);
	return matrices_run(c, &j, "", err);
}

/* ---- LU ---- */

/* Decomposes matrix k into `a` and `pivots`.  False if it is not invertible. */
static bool decompose(const struct matrix_job *j, int64_t k, double *a, int *pivots)
{
	int n = j->a.rows;

	matrices_get(&j->a, k, BY_COLUMNS, a);
	if (lapack_getrf(j->a.is_complex, n, a, pivots))
		return false;
	for (int64_t i = 0; i < n; i++)
		if (isnan(a[doubles(&j->a, i * n + i)]))
			return false;
	return true;
}

/* Without a tensor in j->b, the right-hand side is the identity. */
static int linear_solve_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows, columns = j->b.cols, *pivots;
	double *a = work, *b = a + 2 * n_elements(&j->a);

	pivots = (int *)(b + 2 * n_elements(&j->b));
	if (!n_elements(&j->b))
		return 0;
	if (!decompose(j, k, a, pivots))
		return 1;
	if (j->b.t)
		matrices_get(&j->b, k, BY_COLUMNS, b);
	for (int64_t i = 0; !j->b.t && i < n_elements(&j->b); i++)
		b[doubles(&j->a, i)] = i % (n + 1) == 0;
	for (int64_t i = 0; !j->b.t && j->a.is_complex && i < n_elements(&j->b); i++)
		b[2 * i + 1] = 0;
	lapack_getrs(j->a.is_complex, j->flag ? 'C' : 'N', n, columns, a, pivots, b);
	matrices_put(j->out[0], k * n_elements(&j->b), BY_COLUMNS, n, columns, b);
	return 0;
}

static int64_t solve_lwork(const struct matrix_job *j)
{
	return n_elements(&j->a) + n_elements(&j->b) + j->a.rows;
}

static int matrix_solve(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = linear_solve_one,
			       .flag = args_attr_bool(c->node, "adjoint", false)};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(matrices_system_in(c, &j.a, &j.b, err));
	MU_RETURN_IF_ERROR(out_like(c, &j, &j.b, err));
	j.lwork = solve_lwork(&j);
	return matrices_run(c, &j, "Input matrix is not invertible.", err);
}

static int matrix_inverse(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = linear_solve_one,
			       .flag = args_attr_bool(c->node, "adjoint", false)};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(out_like(c, &j, &j.a, err));
	j.b = j.a;
	j.b.t = NULL;
	j.lwork = solve_lwork(&j);
	return matrices_run(c, &j, "Input is not invertible.", err);
}

/* With out[1], outputs the sign and the logarithm of the magnitude separately. */
static int determinant_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows, *pivots = (int *)(work + 2 * n_elements(&j->a));
	double _Complex sign = 1;
	double log_magnitude = 0;

	decompose(j, k, work, pivots);
	for (int64_t i = 0; i < n; i++) {
		const double *u = work + doubles(&j->a, i * n + i);
		double _Complex x = j->a.is_complex ? *(const double _Complex *)u : *u;
		double magnitude = cabs(x);
		sign *= pivots[i] == i + 1 ? 1 : -1;
		sign = magnitude == 0 ? 0 : sign * (x / magnitude);
		log_magnitude += log(magnitude);
	}
	if (j->out[1])
		matrices_put_real(j->out[1], k, 1, &log_magnitude);
	else
		sign *= exp(log_magnitude);
	matrices_put_complex(j->out[0], k, BY_ROWS, 1, 1, &sign);
	return 0;
}

static int determinants(struct kernel_call *c, bool with_log, struct mu_err *err)
{
	struct matrix_job j = {.one = determinant_one};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(matrices_out(c, 0, j.a.t->dtype, &j.a, 0, NULL, &j.out[0], err));
	if (with_log)
		MU_RETURN_IF_ERROR(matrices_out(c, 1, j.a.t->dtype, &j.a, 0, NULL, &j.out[1], err));
	j.lwork = n_elements(&j.a) + j.a.rows;
	return matrices_run(c, &j, "", err);
}

KERNEL_RUN(determinant, determinants(c, false, err))
KERNEL_RUN(log_determinant, determinants(c, true, err))

/* Row i of l u is row order[i] of the matrix. */
static void put_order(struct mu_tensor *out, int64_t at, int n, const int *pivots, int *order)
{
	for (int i = 0; i < n; i++)
		order[i] = i;
	for (int i = 0; i < n; i++) {
		int t = order[i];
		order[i] = order[pivots[i] - 1];
		order[pivots[i] - 1] = t;
	}
	for (int i = 0; i < n; i++)
		if (out->dtype == MU_INT32)
			MU_DATA(int32_t, out)[at + i] = order[i];
		else
			MU_DATA(int64_t, out)[at + i] = order[i];
}

static int lu_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows, *pivots = (int *)(work + 2 * n_elements(&j->a));

	if (!decompose(j, k, work, pivots))
		return 1;
	matrices_put(j->out[0], k * n_elements(&j->a), BY_COLUMNS, n, n, work);
	put_order(j->out[1], k * n, n, pivots, pivots + n);
	return 0;
}

static int lu(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "output_idx_type", MU_INT32);
	struct matrix_job j = {.one = lu_one};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(out_like(c, &j, &j.a, err));
	MU_RETURN_IF_ERROR(matrices_out(c, 1, t, &j.a, 1, &(int64_t){j.a.rows}, &j.out[1], err));
	j.lwork = n_elements(&j.a) + j.a.rows;
	return matrices_run(c, &j, "Input is not invertible.", err);
}

/* ---- least squares ---- */

struct least_squares {
	struct matrix_job j;
	double l2_regularizer; /* added to the diagonal */
};

/* Uses the normal equations.  For a matrix with fewer rows than columns, the solution of smallest
 * norm. */
static int least_squares_cholesky(const struct matrix_job *j, int64_t k, double *work)
{
	bool z = j->a.is_complex, wide = j->a.rows < j->a.cols;
	int m = j->a.rows, n = j->a.cols, columns = j->b.cols, order = wide ? m : n;
	int64_t square = (int64_t)order * order;
	double *a = work, *s = a + 2 * n_elements(&j->a), *b = s + 2 * square,
	       *x = b + 2 * n_elements(&j->b);
	double *y = wide ? b : x;

	matrices_get(&j->a, k, BY_COLUMNS, a);
	matrices_get(&j->b, k, BY_COLUMNS, b);
	lapack_gemm(z, wide ? 'N' : 'C', wide ? 'C' : 'N', order, order, wide ? n : m, a, a, s);
	for (int64_t i = 0; i < order; i++)
		s[doubles(&j->a, i * order + i)] +=
		    ((const struct least_squares *)j)->l2_regularizer;
	if (lapack_potrf(z, order, s))
		return 1;
	if (!wide)
		lapack_gemm(z, 'C', 'N', n, columns, m, a, b, x);
	lapack_trsm(z, 'L', 'L', 'N', order, columns, s, y);
	lapack_trsm(z, 'L', 'L', 'C', order, columns, s, y);
	if (wide)
		lapack_gemm(z, 'C', 'N', n, columns, m, a, y, x);
	matrices_put(j->out[0], k * n * columns, BY_COLUMNS, n, columns, x);
	return 0;
}

/* Uses singular values and omits negligible ones.  The solution of smallest norm. */
static int least_squares_svd(const struct matrix_job *j, int64_t k, double *work)
{
	int m = j->a.rows, n = j->a.cols, columns = j->b.cols, max_mn = m > n ? m : n;
	bool is_single = j->a.t->dtype == MU_FLOAT || j->a.t->dtype == MU_COMPLEX64;
	double *a = work, *b = a + 2 * n_elements(&j->a), *x = b + 2 * (int64_t)max_mn * columns;

	if (columns == 0) /* zgelsd of LAPACK would not return */
		return 0;
	matrices_get(&j->a, k, BY_COLUMNS, a);
	matrices_get(&j->b, k, BY_COLUMNS, x);
	if (!matrices_finite(j->a.is_complex, n_elements(&j->a), a))
		return 1;
	for (int64_t c = 0; c < columns; c++) /* from m rows to max_mn rows */
		memcpy(b + doubles(&j->a, c * max_mn), x + doubles(&j->a, c * m),
		       (size_t)doubles(&j->a, m) * sizeof *b);
	MU_RETURN_IF_ERROR(lapack_gelsd(j->a.is_complex, m, n, columns, a, b,
					max_mn * (is_single ? 0x1p-23 : 0x1p-52)));
	for (int64_t c = 0; c < columns; c++)
		memcpy(x + doubles(&j->a, c * n), b + doubles(&j->a, c * max_mn),
		       (size_t)doubles(&j->a, n) * sizeof *b);
	matrices_put(j->out[0], k * n * columns, BY_COLUMNS, n, columns, x);
	return 0;
}

static int least_squares(struct kernel_call *c, struct mu_err *err)
{
	bool fast = args_attr_bool(c->node, "fast", true);
	struct least_squares l = {.j = {.one = fast ? least_squares_cholesky : least_squares_svd}};
	struct matrix_job *j = &l.j;

	MU_RETURN_IF_ERROR(matrices_system_in(c, &j->a, &j->b, err));
	const struct mu_tensor *regularizer = kernel_in(c, 2);
	if (regularizer->shape.rank)
		return mu_invalid(err, "l2_regularizer must be scalar, got shape %s",
				  mu_shape_str(&regularizer->shape));
	l.l2_regularizer = *MU_DATA(double, regularizer);
	if (!(l.l2_regularizer >= 0))
		return mu_invalid(err, "l2_regularizer must be >= 0.");
	int64_t m = j->a.rows, n = j->a.cols, columns = j->b.cols, order = m < n ? m : n;
	MU_RETURN_IF_ERROR(
	    matrices_out(c, 0, j->a.t->dtype, &j->a, 2, (int64_t[]){n, columns}, &j->out[0], err));
	j->lwork = m * n + order * order + 2 * (m > n ? m : n) * columns;
	return matrices_run(c, j,
			    "Input matrix was rank deficient or ill-conditioned. Try setting "
			    "fast=False or provide a larger l2_regularizer > 0.",
			    err);
}

static const struct kernel rows[] = {
    {"Cholesky BatchCholesky", .flags = KERNEL_EXPENSIVE, .run = cholesky},
    {"CholeskyGrad BatchCholeskyGrad", .flags = KERNEL_EXPENSIVE, .run = cholesky_grad},
    {"LogMatrixDeterminant", .flags = KERNEL_EXPENSIVE, .run = log_determinant},
    {"Lu", .flags = KERNEL_EXPENSIVE, .run = lu},
    {"MatrixDeterminant BatchMatrixDeterminant", .flags = KERNEL_EXPENSIVE, .run = determinant},
    {"MatrixInverse BatchMatrixInverse", .flags = KERNEL_EXPENSIVE, .run = matrix_inverse},
    {"MatrixSolve BatchMatrixSolve", .flags = KERNEL_EXPENSIVE, .run = matrix_solve},
    {"MatrixSolveLs BatchMatrixSolveLs", .flags = KERNEL_EXPENSIVE, .run = least_squares},
};
KERNEL_TABLE(linalg_linear, rows)
