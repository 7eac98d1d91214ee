/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues, singular values, and the matrix functions that use them.  The sign or complex phase
 * of a vector may differ from TensorFlow's. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/complex_of.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/linalg/matrices.h"

typedef double _Complex number;

/* ---- Hermitian matrices ---- */

static int eigh_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows;
	int64_t elements = (int64_t)n * n;
	double *a = work, *e = a + 2 * elements;

	matrices_get(&j->a, k, BY_COLUMNS, a);
	/* The other triangle is not used and may hold any values. */
	for (int64_t i = 0; i < n; i++)
		if (!matrices_finite(j->a.is_complex, n - i,
				     a + (i * n + i) * (j->a.is_complex ? 2 : 1)))
			return 1;
	MU_RETURN_IF_ERROR(lapack_eigh(j->a.is_complex, j->flag, n, a, e));
	matrices_put_real(j->out[0], k * n, n, e);
	if (j->flag)
		matrices_put(j->out[1], k * elements, BY_COLUMNS, n, n, a);
	return 0;
}

/* Fills output i, which the node does not request, with one zero. */
static int empty_output(struct kernel_call *c, unsigned i, enum mu_dtype t, struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out_scalar(c, i, t, &out, err));
	memset(out->data, 0, mu_dtype_size(t));
	return 0;
}

/* Allocates the outputs: eigenvalues and, with compute_v, eigenvectors.  Sets j->flag. */
static int eigen_outs(struct kernel_call *c, struct matrix_job *j, enum mu_dtype t,
		      struct mu_err *err)
{
	int64_t n = j->a.rows;
	int rc = matrices_out(c, 0, t, &j->a, 1, &n, &j->out[0], err);

	j->flag = args_attr_bool(c->node, "compute_v", true);
	if (rc)
		return rc;
	return j->flag ? matrices_out(c, 1, t, &j->a, 2, (int64_t[]){n, n}, &j->out[1], err)
		       : empty_output(c, 1, t, err);
}

/* SelfAdjointEig has one output: a row of values above the vectors. */
static int eigh_joined_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows;
	int64_t elements = (int64_t)n * n, at = k * (elements + n);
	double *e = work + elements;

	matrices_get(&j->a, k, BY_COLUMNS, work);
	for (int64_t i = 0; i < n; i++)
		if (!matrices_finite(false, n - i, work + i * n + i))
			return 1;
	MU_RETURN_IF_ERROR(lapack_eigh(false, true, n, work, e));
	matrices_put_real(j->out[0], at, n, e);
	matrices_put(j->out[0], at + n, BY_COLUMNS, n, n, work);
	return 0;
}

static const char eigh_failed[] =
    "Self-adjoint eigen decomposition was not successful. The input might not be valid.";

static int eigh_joined(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = eigh_joined_one};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	const int64_t n = j.a.rows;
	MU_RETURN_IF_ERROR(
	    matrices_out(c, 0, j.a.t->dtype, &j.a, 2, (int64_t[]){n + 1, n}, &j.out[0], err));
	j.lwork = n * n + n;
	return matrices_run(c, &j, eigh_failed, err);
}

static int eigh(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = eigh_one};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(eigen_outs(c, &j, j.a.t->dtype, err));
	j.lwork = (int64_t)j.a.rows * j.a.rows + j.a.rows;
	return matrices_run(c, &j, eigh_failed, err);
}

/* ---- general matrices ---- */

static int eig_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows;
	int64_t elements = (int64_t)n * n;
	number *a = (number *)work, *v = a + elements, *e = v + elements;

	matrices_get_complex(&j->a, k, BY_COLUMNS, a);
	if (!matrices_finite(true, elements, a))
		return 1;
	MU_RETURN_IF_ERROR(lapack_geev(n, a, e, j->flag ? v : NULL));
	matrices_put(j->out[0], k * n, BY_ROWS, 1, n, e);
	if (j->flag)
		matrices_put(j->out[1], k * elements, BY_COLUMNS, n, n, v);
	return 0;
}

static int eig(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "Tout", MU_COMPLEX64);
	struct matrix_job j = {.one = eig_one};

	const enum mu_dtype in = kernel_in(c, 0)->dtype;
	const enum mu_dtype want =
	    in == MU_FLOAT || in == MU_COMPLEX64 ? MU_COMPLEX64 : MU_COMPLEX128;
	if (t != want)
		return mu_invalid(err, "Invalid output dtype %d vs %d", t, want);
	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(eigen_outs(c, &j, t, err));
	j.lwork = 2 * (int64_t)j.a.rows * j.a.rows + j.a.rows;
	return matrices_run(
	    c, &j, "Eigen decomposition was not successful. The input might not be valid.", err);
}

/* ---- square roots and logarithms ---- */

/* Square root of an upper triangle by columns, one diagonal after the other; r must not be t. */
static void triangle_root(int64_t n, const number *t, number *r)
{
	memset(r, 0, (size_t)(n * n) * sizeof *r);
	for (int64_t i = 0; i < n; i++)
		r[i * n + i] = csqrt(t[i * n + i]);
	for (int64_t d = 1; d < n; d++)
		for (int64_t i = 0; i + d < n; i++) {
			int64_t k = i + d;
			number sum = t[k * n + i];
			for (int64_t m = i + 1; m < k; m++)
				sum -= r[m * n + i] * r[k * n + m];
			r[k * n + i] = sum / (r[i * n + i] + r[k * n + k]);
		}
}

/* The logarithm of 1 + x for a small upper triangle x, by Gauss-Legendre quadrature: the sum of
 * w x / (1 + p x) over seven nodes p. */
static void triangle_log(int n, const number *x, number *sum, number *lower, number *term)
{
	static const double half_nodes[] = {0.0, 0.4058451513773972, 0.7415311855993945,
					    0.9491079123427585};
	static const double weight[] = {0.4179591836734694, 0.3818300505051189, 0.2797053914892767,
					0.1294849661688697};

	int64_t elements = (int64_t)n * n;

	memset(sum, 0, (size_t)elements * sizeof *sum);
	for (int p = -3; p <= 3; p++) {
		int at = p < 0 ? -p : p;
		double node = (1 + (p < 0 ? -half_nodes[at] : half_nodes[at])) / 2;
		for (int64_t i = 0; i < elements; i++) {
			lower[i] = node * x[i] + (i % (n + 1) == 0);
			term[i] = x[i];
		}
		lapack_trsm(true, 'L', 'U', 'N', n, n, lower, term);
		for (int64_t i = 0; i < elements; i++)
			sum[i] += weight[at] / 2 * term[i];
	}
}

static double distance_from_identity(int64_t n, const number *t)
{
	double norm = 0;

	for (int64_t i = 0; i < n; i++) {
		double row = 0;
		for (int64_t k = i; k < n; k++)
			row += cabs(t[k * n + i] - (i == k));
		norm = row > norm || isnan(row) ? row : norm;
	}
	return norm;
}

/* Takes square roots until the matrix is near the identity; t becomes the logarithm. work: three
 * matrices. */
static bool log_by_roots(int n, number *t, number *work)
{
	int64_t elements = (int64_t)n * n;
	double factor = 1;

	for (int roots = 0; !(distance_from_identity(n, t) < 0.25); roots++) {
		if (roots == 100)
			return false;
		triangle_root(n, t, work);
		memcpy(t, work, (size_t)elements * sizeof *t);
		factor *= 2;
	}
	for (int64_t i = 0; i < n; i++)
		t[i * n + i] -= 1;
	triangle_log(n, t, work, work + elements, work + 2 * elements);
	for (int64_t i = 0; i < elements; i++)
		t[i] = factor * work[i];
	return true;
}

/* Uses the Schur form. flag: logarithm instead of square root. Matrices without a result become
 * NaN. */
static int matrix_function_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows, rc;
	int64_t elements = (int64_t)n * n;
	number *t = (number *)work, *q = t + elements, *r = q + elements;
	bool ok;

	matrices_get_complex(&j->a, k, BY_COLUMNS, t);
	ok = matrices_finite(true, elements, t);
	if (ok && (rc = lapack_gees(n, t, q)) == LAPACK_NO_MEMORY)
		return rc;
	ok = ok && !rc;
	if (ok && j->flag)
		ok = log_by_roots(n, t, r);
	if (ok && !j->flag) {
		triangle_root(n, t, r);
		memcpy(t, r, (size_t)elements * sizeof *t);
	}
	for (int64_t i = 0; !ok && i < elements; i++)
		t[i] = complex_of(NAN, NAN);
	if (ok) { /* q t q* */
		lapack_gemm(true, 'N', 'N', n, n, n, q, t, r);
		lapack_gemm(true, 'N', 'C', n, n, n, r, q, t);
	}
	matrices_put_complex(j->out[0], k * elements, BY_COLUMNS, n, n, t);
	return 0;
}

static int matrix_function(struct kernel_call *c, bool logarithm, struct mu_err *err)
{
	struct matrix_job j = {.one = matrix_function_one, .flag = logarithm};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	if (logarithm && !j.a.is_complex)
		return mu_fail(err, MU_UNIMPLEMENTED, "no MatrixLogarithm of %s: it may be complex",
			       mu_dtype_name(j.a.t->dtype));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, j.a.t->dtype, &j.a.t->shape, &j.out[0], err));
	j.lwork = 5 * (int64_t)j.a.rows * j.a.rows;
	return matrices_run(c, &j, "", err);
}

KERNEL_RUN(square_root, matrix_function(c, false, err))
KERNEL_RUN(logarithm, matrix_function(c, true, err))

/* Sums the Taylor series of a / 2^squarings, whose norm is below 1/2, and squares the sum. */
static int exponential_one(const struct matrix_job *j, int64_t k, double *work)
{
	enum { DEGREE = 16 };
	const bool z = j->a.is_complex;
	const int n = j->a.rows;
	const int64_t elements = (int64_t)n * n, reals = z ? 2 * elements : elements;
	double *a = work, *sum = a + reals, *product = sum + reals, norm = 0;
	int squarings = 0;

	matrices_get(&j->a, k, BY_ROWS, a);
	for (int64_t i = 0; i < reals; i++)
		norm += a[i] * a[i];
	if (isfinite(norm)) /* else the sum is not finite either */
		frexp(sqrt(norm), &squarings);
	squarings = squarings < 0 ? 0 : squarings + 1;
	for (int64_t i = 0; i < reals; i++) {
		a[i] = ldexp(a[i], -squarings);
		sum[i] = 0;
	}
	for (int degree = DEGREE + 1; degree > 0; degree--) {
		lapack_gemm(z, 'N', 'N', n, n, n, a, sum, product);
		for (int64_t i = 0; i < reals; i++)
			sum[i] = product[i] / degree;
		for (int64_t i = 0; i < n; i++)
			sum[i * (n + 1) * (z ? 2 : 1)] += 1;
	}
	for (; squarings; squarings--) {
		lapack_gemm(z, 'N', 'N', n, n, n, sum, sum, product);
		memcpy(sum, product, (size_t)reals * sizeof *sum);
	}
	matrices_put(j->out[0], k * elements, BY_ROWS, n, n, sum);
	return 0;
}

static int exponential(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = exponential_one};

	MU_RETURN_IF_ERROR(matrices_square_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, j.a.t->dtype, &j.a.t->shape, &j.out[0], err));
	j.lwork = 3 * (int64_t)j.a.rows * j.a.rows;
	return matrices_run(c, &j, "", err);
}

/* ---- singular values ---- */

struct svd_job {
	struct matrix_job j;
	bool full;
};

struct svd {
	char job;
	int m, n, n_values;
	int64_t u_size, v_size;
	double *a, *u, *v, *s;
};

/* A float matrix in single precision.  work: as many floats as w has doubles. */
static int svd_float(const struct svd *w, float *work)
{
	int64_t elements = (int64_t)w->m * w->n;
	float *a = work, *u = a + elements, *v = u + w->u_size, *s = v + w->v_size;
	int rc;

	convert(MU_FLOAT, a, MU_DOUBLE, w->a, elements);
	rc = lapack_sgesdd(w->job, w->m, w->n, a, s, u, v);
	convert(MU_DOUBLE, w->s, MU_FLOAT, s, w->n_values);
	if (w->job != 'N') {
		convert(MU_DOUBLE, w->u, MU_FLOAT, u, w->u_size);
		convert(MU_DOUBLE, w->v, MU_FLOAT, v, w->v_size);
	}
	return rc;
}

/* The outputs are NaN if an element is not finite or if the iteration does not converge. */
static int svd_one(const struct matrix_job *j, int64_t k, double *work)
{
	bool full = ((const struct svd_job *)j)->full, z = j->a.is_complex;
	int m = j->a.rows, n = j->a.cols, n_values = m < n ? m : n, rc = 1;
	int u_columns = full ? m : n_values, v_columns = full ? n : n_values;
	int64_t elements = (int64_t)m * n, u_size = (int64_t)m * u_columns,
		v_size = (int64_t)n * v_columns;
	double *a = work, *u = a + 2 * elements, *v = u + 2 * u_size, *s = v + 2 * v_size;

	matrices_get(&j->a, k, BY_COLUMNS, a);
	char job = !j->flag ? 'N' : full ? 'A' : 'S';
	struct svd w = {job, m, n, n_values, u_size, v_size, a, u, v, s};
	if (matrices_finite(z, elements, a))
		rc = j->a.t->dtype == MU_FLOAT ? svd_float(&w, (float *)(s + 2 * n_values))
					       : lapack_gesdd(z, job, m, n, a, s, u, v);
	if (rc == LAPACK_NO_MEMORY)
		return rc;
	for (int64_t i = 0; rc && i < 2 * (u_size + v_size) + n_values; i++)
		u[i] = NAN;
	matrices_put_real(j->out[0], k * n_values, n_values, s);
	if (!j->flag)
		return 0;
	/* The adjoint of v by columns is the conjugate of v by rows. */
	for (int64_t i = 0; z && i < v_size; i++)
		v[2 * i + 1] = -v[2 * i + 1];
	matrices_put(j->out[1], k * u_size, BY_COLUMNS, m, u_columns, u);
	matrices_put(j->out[2], k * v_size, BY_ROWS, n, v_columns, v);
	return 0;
}

static int svd(struct kernel_call *c, struct mu_err *err)
{
	struct svd_job w = {
	    .j = {.one = svd_one, .flag = args_attr_bool(c->node, "compute_uv", true)},
	    .full = args_attr_bool(c->node, "full_matrices", false)};
	struct matrix_job *j = &w.j;
	int rc = 0;

	MU_RETURN_IF_ERROR(matrices_in(c, 0, &j->a, err));
	enum mu_dtype t = j->a.t->dtype;
	int64_t m = j->a.rows, n = j->a.cols, n_values = m < n ? m : n;
	int64_t u_columns = w.full ? m : n_values, v_columns = w.full ? n : n_values;
	MU_RETURN_IF_ERROR(matrices_out(c, 0, t, &j->a, 1, &n_values, &j->out[0], err));
	if (!j->flag && ((rc = empty_output(c, 1, t, err)) || (rc = empty_output(c, 2, t, err))))
		return rc;
	if (j->flag &&
	    ((rc = matrices_out(c, 1, t, &j->a, 2, (int64_t[]){m, u_columns}, &j->out[1], err)) ||
	     (rc = matrices_out(c, 2, t, &j->a, 2, (int64_t[]){n, v_columns}, &j->out[2], err))))
		return rc;
	j->lwork = 2 * (m * n + m * u_columns + n * v_columns + n_values);
	return matrices_run(c, j, "", err);
}

static const struct kernel rows[] = {
    {"Eig", .flags = KERNEL_EXPENSIVE, .run = eig},
    {"MatrixExponential", .flags = KERNEL_EXPENSIVE, .run = exponential},
    {"MatrixLogarithm", .flags = KERNEL_EXPENSIVE, .run = logarithm},
    {"MatrixSquareRoot", .flags = KERNEL_EXPENSIVE, .run = square_root},
    {"SelfAdjointEigV2 BatchSelfAdjointEigV2", .flags = KERNEL_EXPENSIVE, .run = eigh},
    {"SelfAdjointEig BatchSelfAdjointEig", .flags = KERNEL_EXPENSIVE, .run = eigh_joined},
    {"Svd BatchSvd", .flags = KERNEL_EXPENSIVE, .run = svd},
};
KERNEL_TABLE(linalg_eigen, rows)
