/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues, singular values, and functions of matrices by way of them.  A vector may have
 * another sign or complex phase than TensorFlow's. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/linalg/matrices.h"
#include "task/kernels/math/complex_of.h"

typedef double _Complex number;

/* ---- Hermitian matrices ---- */

static int eigh_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows;
	int64_t all = (int64_t)n * n;
	double *a = work, *e = a + 2 * all;

	matrices_get(&j->a, k, BY_COLUMNS, a);
	/* The other triangle may hold anything. */
	for (int64_t i = 0; i < n; i++)
		if (!matrices_finite(j->a.is_complex, n - i,
				     a + (i * n + i) * (j->a.is_complex ? 2 : 1)))
			return 1;
	MU_RETURN_IF_ERROR(lapack_eigh(j->a.is_complex, j->flag, n, a, e));
	matrices_put_real(j->out[0], k * n, n, e);
	if (j->flag)
		matrices_put(j->out[1], k * all, BY_COLUMNS, n, n, a);
	return 0;
}

/* Output i, which the node does not request: one zero. */
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

/* The first version has one output: a row of values above the vectors. */
static int eigh_joined_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows;
	int64_t all = (int64_t)n * n, at = k * (all + n);
	double *e = work + all;

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

/* ---- of any matrix ---- */

static int eig_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows;
	int64_t all = (int64_t)n * n;
	number *a = (number *)work, *v = a + all, *e = v + all;

	matrices_get_complex(&j->a, k, BY_COLUMNS, a);
	if (!matrices_finite(true, all, a))
		return 1;
	MU_RETURN_IF_ERROR(lapack_geev(n, a, e, j->flag ? v : NULL));
	matrices_put(j->out[0], k * n, BY_ROWS, 1, n, e);
	if (j->flag)
		matrices_put(j->out[1], k * all, BY_COLUMNS, n, n, v);
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

/* The root of an upper triangle by columns, a diagonal after the other; r may not be t. */
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

/* The logarithm of 1 + x, x a small upper triangle: by Gauss and Legendre, the sum of
 * w x / (1 + p x) over seven places p. */
static void triangle_log(int n, const number *x, number *sum, number *lower, number *part)
{
	static const double half[] = {0.0, 0.4058451513773972, 0.7415311855993945,
				      0.9491079123427585};
	static const double weight[] = {0.4179591836734694, 0.3818300505051189, 0.2797053914892767,
					0.1294849661688697};

	int64_t all = (int64_t)n * n;

	memset(sum, 0, (size_t)all * sizeof *sum);
	for (int p = -3; p <= 3; p++) {
		int at = p < 0 ? -p : p;
		double place = (1 + (p < 0 ? -half[at] : half[at])) / 2;
		for (int64_t i = 0; i < all; i++) {
			lower[i] = place * x[i] + (i % (n + 1) == 0);
			part[i] = x[i];
		}
		lapack_trsm(true, 'L', 'U', 'N', n, n, lower, part);
		for (int64_t i = 0; i < all; i++)
			sum[i] += weight[at] / 2 * part[i];
	}
}

static double distance_from_one(int64_t n, const number *t)
{
	double most = 0;

	for (int64_t i = 0; i < n; i++) {
		double row = 0;
		for (int64_t k = i; k < n; k++)
			row += cabs(t[k * n + i] - (i == k));
		most = row > most || isnan(row) ? row : most;
	}
	return most;
}

/* Takes square roots until the matrix is near the identity; t becomes the logarithm. work: three
 * matrices. */
static bool log_by_roots(int n, number *t, number *work)
{
	int64_t all = (int64_t)n * n;
	double times = 1;

	for (int roots = 0; !(distance_from_one(n, t) < 0.25); roots++) {
		if (roots == 100)
			return false;
		triangle_root(n, t, work);
		memcpy(t, work, (size_t)all * sizeof *t);
		times *= 2;
	}
	for (int64_t i = 0; i < n; i++)
		t[i * n + i] -= 1;
	triangle_log(n, t, work, work + all, work + 2 * all);
	for (int64_t i = 0; i < all; i++)
		t[i] = times * work[i];
	return true;
}

/* Uses the Schur form. flag: logarithm instead of square root. Matrices without a result become
 * NaN. */
static int matrix_function_one(const struct matrix_job *j, int64_t k, double *work)
{
	int n = j->a.rows, rc;
	int64_t all = (int64_t)n * n;
	number *t = (number *)work, *q = t + all, *r = q + all;
	bool ok;

	matrices_get_complex(&j->a, k, BY_COLUMNS, t);
	ok = matrices_finite(true, all, t);
	if (ok && (rc = lapack_gees(n, t, q)) == LAPACK_NO_MEMORY)
		return rc;
	ok = ok && !rc;
	if (ok && j->flag)
		ok = log_by_roots(n, t, r);
	if (ok && !j->flag) {
		triangle_root(n, t, r);
		memcpy(t, r, (size_t)all * sizeof *t);
	}
	for (int64_t i = 0; !ok && i < all; i++)
		t[i] = complex_of(NAN, NAN);
	if (ok) { /* q t q* */
		lapack_gemm(true, 'N', 'N', n, n, n, q, t, r);
		lapack_gemm(true, 'N', 'C', n, n, n, r, q, t);
	}
	matrices_put_complex(j->out[0], k * all, BY_COLUMNS, n, n, t);
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

/* ---- singular values ---- */

struct singular {
	struct matrix_job j;
	bool full;
};

struct svd {
	char job;
	int m, n, low;
	int64_t u_size, v_size;
	double *a, *u, *v, *s;
};

/* A float matrix in single precision.  work: as many floats as w has doubles. */
static int svd_float(const struct svd *w, float *work)
{
	int64_t all = (int64_t)w->m * w->n;
	float *a = work, *u = a + all, *v = u + w->u_size, *s = v + w->v_size;
	int rc;

	convert(MU_FLOAT, a, MU_DOUBLE, w->a, all);
	rc = lapack_sgesdd(w->job, w->m, w->n, a, s, u, v);
	convert(MU_DOUBLE, w->s, MU_FLOAT, s, w->low);
	if (w->job != 'N') {
		convert(MU_DOUBLE, w->u, MU_FLOAT, u, w->u_size);
		convert(MU_DOUBLE, w->v, MU_FLOAT, v, w->v_size);
	}
	return rc;
}

/* A matrix with a non-finite element gives NaN, and so does one without convergence. */
static int svd_one(const struct matrix_job *j, int64_t k, double *work)
{
	bool full = ((const struct singular *)j)->full, z = j->a.is_complex;
	int m = j->a.rows, n = j->a.cols, low = m < n ? m : n, rc = 1;
	int of_u = full ? m : low, of_v = full ? n : low;
	int64_t all = (int64_t)m * n, u_size = (int64_t)m * of_u, v_size = (int64_t)n * of_v;
	double *a = work, *u = a + 2 * all, *v = u + 2 * u_size, *s = v + 2 * v_size;

	matrices_get(&j->a, k, BY_COLUMNS, a);
	char job = !j->flag ? 'N' : full ? 'A' : 'S';
	struct svd w = {job, m, n, low, u_size, v_size, a, u, v, s};
	if (matrices_finite(z, all, a))
		rc = j->a.t->dtype == MU_FLOAT ? svd_float(&w, (float *)(s + 2 * low))
					       : lapack_gesdd(z, job, m, n, a, s, u, v);
	if (rc == LAPACK_NO_MEMORY)
		return rc;
	for (int64_t i = 0; rc && i < 2 * (u_size + v_size) + low; i++)
		u[i] = NAN;
	matrices_put_real(j->out[0], k * low, low, s);
	if (!j->flag)
		return 0;
	/* The adjoint of v by columns is the conjugate of v by rows. */
	for (int64_t i = 0; z && i < v_size; i++)
		v[2 * i + 1] = -v[2 * i + 1];
	matrices_put(j->out[1], k * u_size, BY_COLUMNS, m, of_u, u);
	matrices_put(j->out[2], k * v_size, BY_ROWS, n, of_v, v);
	return 0;
}

static int svd(struct kernel_call *c, struct mu_err *err)
{
	struct singular w = {
	    .j = {.one = svd_one, .flag = args_attr_bool(c->node, "compute_uv", true)},
	    .full = args_attr_bool(c->node, "full_matrices", false)};
	struct matrix_job *j = &w.j;
	int rc = 0;

	MU_RETURN_IF_ERROR(matrices_in(c, 0, &j->a, err));
	enum mu_dtype t = j->a.t->dtype;
	int64_t m = j->a.rows, n = j->a.cols, least = m < n ? m : n;
	int64_t of_u = w.full ? m : least, of_v = w.full ? n : least;
	MU_RETURN_IF_ERROR(matrices_out(c, 0, t, &j->a, 1, &least, &j->out[0], err));
	if (!j->flag && ((rc = empty_output(c, 1, t, err)) || (rc = empty_output(c, 2, t, err))))
		return rc;
	if (j->flag &&
	    ((rc = matrices_out(c, 1, t, &j->a, 2, (int64_t[]){m, of_u}, &j->out[1], err)) ||
	     (rc = matrices_out(c, 2, t, &j->a, 2, (int64_t[]){n, of_v}, &j->out[2], err))))
		return rc;
	j->lwork = 2 * (m * n + m * of_u + n * of_v + least);
	return matrices_run(c, j, "", err);
}

static const struct kernel rows[] = {
    {"Eig", .flags = KERNEL_EXPENSIVE, .run = eig},
    {"MatrixLogarithm", .flags = KERNEL_EXPENSIVE, .run = logarithm},
    {"MatrixSquareRoot", .flags = KERNEL_EXPENSIVE, .run = square_root},
    {"SelfAdjointEigV2 BatchSelfAdjointEigV2", .flags = KERNEL_EXPENSIVE, .run = eigh},
    {"SelfAdjointEig BatchSelfAdjointEig", .flags = KERNEL_EXPENSIVE, .run = eigh_joined},
    {"Svd BatchSvd", .flags = KERNEL_EXPENSIVE, .run = svd},
};
KERNEL_TABLE(linalg_eigen, rows)
