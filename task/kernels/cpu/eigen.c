/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues, singular values, and functions of matrices by way of them.  A vector may come with
 * another sign, or turned in the complex plane, than TensorFlow's. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "task/kernels/complex_of.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/loops/loops.h"
#include "task/kernels/matrix/matrices.h"

typedef double _Complex number;

/* ---- of what is its own conjugate transpose ---- */

static bool hermitian_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = j->a.rows;
	double *a = room, *v = a + 2 * n * n, *e = v + 2 * n * n;

	matrices_get(&j->a, k, a);
	if (!j->ops->hermitian(n, a, e, j->flag ? v : NULL))
		return false;
	if (matrices_complex(j->out[0]->dtype)) /* the values are real, and complex by type */
		for (int64_t i = n; i-- > 0;) {
			e[2 * i] = e[i];
			e[2 * i + 1] = 0;
		}
	matrices_put(j->out[0], k * n, e, n);
	if (j->flag) {
		j->ops->adjoint(n, n, v, a);
		matrices_put(j->out[1], k * n * n, a, n * n);
	}
	return true;
}

/* Output i of a kind that was not asked for: one zero. */
static int nothing(struct kernel_call *c, unsigned i, enum mu_dtype t, struct mu_err *err)
{
	struct mu_shape scalar = mu_shape_scalar();
	struct mu_tensor *out;
	int rc = kernel_out(c, i, t, &scalar, &out, err);

	if (!rc)
		memset(out->data, 0, mu_dtype_size(t));
	return rc;
}

/* Values and, if they are wanted, vectors of square matrices. */
static int eigen_outs(struct kernel_call *c, struct matrix_job *j, enum mu_dtype t,
		      struct mu_err *err)
{
	int64_t n = j->a.rows;
	int rc = matrices_out(c, 0, t, &j->a, 1, &n, &j->out[0], err);

	j->flag = args_attr_bool(c->node, "compute_v", true);
	if (rc)
		return rc;
	return j->flag ? matrices_out(c, 1, t, &j->a, 2, (int64_t[]){n, n}, &j->out[1], err)
		       : nothing(c, 1, t, err);
}

static int hermitian(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = hermitian_one};
	int rc;

	if ((rc = matrices_square_in(c, 0, &j.a, err)) ||
	    (rc = eigen_outs(c, &j, j.a.t->dtype, err)))
		return rc;
	j.ops = matrices_ops(&j.a);
	j.room = 2 * j.a.rows * j.a.rows + j.a.rows;
	return matrices_run(c, &j,
			    "Self-adjoint eigen decomposition was not successful. The input might "
			    "not be valid.",
			    err);
}

/* ---- of any matrix, by its Schur form ---- */

/* Matrix k as complex numbers. */
static void get_complex(const struct matrices *m, int64_t k, number *to)
{
	int64_t n = m->rows * m->cols;

	matrices_get(m, k, to);
	if (!matrices_complex(m->t->dtype))
		for (int64_t i = n; i-- > 0;)
			to[i] = ((double *)to)[i];
}

static bool eig_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = j->a.rows;
	number *t = (number *)room, *q = t + n * n, *x = q + n * n, *e = x + n * n;

	get_complex(&j->a, k, t);
	if (!loops->matrix[1]->schur(n, t, q))
		return false;
	for (int64_t i = 0; i < n; i++)
		e[i] = t[i * n + i];
	matrices_put(j->out[0], k * n, e, n);
	if (!j->flag)
		return true;
	loops->matrix[1]->schur_vectors(n, t, q, x);
	matrices_put(j->out[1], k * n * n, t, n * n);
	return true;
}

static int eig(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "Tout", MU_COMPLEX64);
	struct matrix_job j = {.one = eig_one};
	int rc;

	if (!matrices_complex(t))
		return mu_fail(err, MU_INVALID_ARGUMENT, "Tout is %s, not complex",
			       mu_dtype_name(t));
	if ((rc = matrices_square_in(c, 0, &j.a, err)) || (rc = eigen_outs(c, &j, t, err)))
		return rc;
	j.room = 3 * j.a.rows * j.a.rows + j.a.rows;
	return matrices_run(
	    c, &j, "Eigen decomposition was not successful. The input might not be valid.", err);
}

/* ---- square roots and logarithms ---- */

/* The root of an upper triangle, a diagonal after the other; r may not be t. */
static void triangle_root(int64_t n, const number *t, number *r)
{
	memset(r, 0, (size_t)(n * n) * sizeof *r);
	for (int64_t i = 0; i < n; i++)
		r[i * n + i] = csqrt(t[i * n + i]);
	for (int64_t d = 1; d < n; d++)
		for (int64_t i = 0; i + d < n; i++) {
			int64_t k = i + d;
			number sum = t[i * n + k];
			for (int64_t m = i + 1; m < k; m++)
				sum -= r[i * n + m] * r[m * n + k];
			r[i * n + k] = sum / (r[i * n + i] + r[k * n + k]);
		}
}

/* The logarithm of 1 + x, x a small upper triangle: by Gauss and Legendre, the sum of
 * w x / (1 + p x) over seven places p. */
static void triangle_log(int64_t n, const number *x, number *sum, number *lower, number *part)
{
	static const double half[] = {0.0, 0.4058451513773972, 0.7415311855993945,
				      0.9491079123427585};
	static const double weight[] = {0.4179591836734694, 0.3818300505051189, 0.2797053914892767,
					0.1294849661688697};

	memset(sum, 0, (size_t)(n * n) * sizeof *sum);
	for (int p = -3; p <= 3; p++) {
		int at = p < 0 ? -p : p;
		double place = (1 + (p < 0 ? -half[at] : half[at])) / 2;
		for (int64_t i = 0; i < n * n; i++) {
			lower[i] = place * x[i] + (i % (n + 1) == 0);
			part[i] = x[i];
		}
		loops->matrix[1]->triangular(n, lower, false, false, n, part);
		for (int64_t i = 0; i < n * n; i++)
			sum[i] += weight[at] / 2 * part[i];
	}
}

static double distance_from_one(int64_t n, const number *t)
{
	double most = 0;

	for (int64_t i = 0; i < n; i++) {
		double row = 0;
		for (int64_t k = i; k < n; k++)
			row += cabs(t[i * n + k] - (i == k));
		most = row > most || isnan(row) ? row : most;
	}
	return most;
}

/* Roots are taken until what is left is near 1; t is left with the logarithm.  room: three of its
 * size. */
static bool log_by_roots(int64_t n, number *t, number *room)
{
	double times = 1;

	for (int roots = 0; !(distance_from_one(n, t) < 0.25); roots++) {
		if (roots == 100)
			return false;
		triangle_root(n, t, room);
		memcpy(t, room, (size_t)(n * n) * sizeof *t);
		times *= 2;
	}
	for (int64_t i = 0; i < n; i++)
		t[i * n + i] -= 1;
	triangle_log(n, t, room, room + n * n, room + 2 * n * n);
	for (int64_t i = 0; i < n * n; i++)
		t[i] = times * room[i];
	return true;
}

/* flag: the logarithm, not the root.  What has none becomes no numbers. */
static bool function_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = j->a.rows, all = n * n;
	number *t = (number *)room, *q = t + all, *r = q + all;
	bool ok;

	get_complex(&j->a, k, t);
	ok = loops->matrix[1]->schur(n, t, q);
	if (ok && j->flag)
		ok = log_by_roots(n, t, r);
	if (ok && !j->flag) {
		triangle_root(n, t, r);
		memcpy(t, r, (size_t)all * sizeof *t);
	}
	for (int64_t i = 0; !ok && i < all; i++)
		t[i] = complex_of(NAN, NAN);
	if (ok) { /* q t q* */
		loops->matrix[1]->product(n, n, n, q, t, r);
		loops->matrix[1]->adjoint(n, n, q, t);
		loops->matrix[1]->product(n, n, n, r, t, q);
	}
	matrices_put_complex(j->out[0], k * all, ok ? q : t, all);
	return true;
}

static int function(struct kernel_call *c, bool logarithm, struct mu_err *err)
{
	struct matrix_job j = {.one = function_one, .flag = logarithm};
	int rc;

	if ((rc = matrices_square_in(c, 0, &j.a, err)))
		return rc;
	if (logarithm && !matrices_complex(j.a.t->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "no MatrixLogarithm of %s: it may be complex",
			       mu_dtype_name(j.a.t->dtype));
	if ((rc = kernel_out(c, 0, j.a.t->dtype, &j.a.t->shape, &j.out[0], err)))
		return rc;
	j.room = 5 * j.a.rows * j.a.rows;
	return matrices_run(c, &j, "", err);
}

static int square_root(struct kernel_call *c, struct mu_err *err)
{
	return function(c, false, err);
}

static int logarithm(struct kernel_call *c, struct mu_err *err)
{
	return function(c, true, err);
}

/* ---- singular values ---- */

struct singular {
	struct matrix_job j;
	bool full;
};

static bool svd_one(const struct matrix_job *j, int64_t k, double *room)
{
	bool full = ((const struct singular *)j)->full, wide = j->a.rows < j->a.cols;
	int64_t m = wide ? j->a.cols : j->a.rows, n = wide ? j->a.rows : j->a.cols;
	int64_t of_u = full ? m : n;
	double *a = room, *t = a + 2 * m * m, *u = t + 2 * m * m, *v = u + 2 * m * m;
	double *s = v + 2 * n * n;

	matrices_get(&j->a, k, wide ? t : a);
	if (wide)
		j->ops->adjoint(n, m, t, a);
	if (!j->ops->svd(m, n, a, full, s, j->flag ? u : NULL, j->flag ? v : NULL)) {
		for (int64_t i = 0; i < n; i++)
			s[i] = NAN;
		for (int64_t i = 0; i < 2 * m * m; i++)
			u[i] = NAN;
		for (int64_t i = 0; i < 2 * n * n; i++)
			v[i] = NAN;
	}
	if (matrices_complex(j->out[0]->dtype))
		for (int64_t i = n; i-- > 0;) {
			s[2 * i] = s[i];
			s[2 * i + 1] = 0;
		}
	matrices_put(j->out[0], k * n, s, n);
	if (!j->flag)
		return true;
	j->ops->adjoint(of_u, m, u, a);
	j->ops->adjoint(n, n, v, t);
	matrices_put(j->out[wide ? 2 : 1], k * m * of_u, a, m * of_u);
	matrices_put(j->out[wide ? 1 : 2], k * n * n, t, n * n);
	return true;
}

static int svd(struct kernel_call *c, struct mu_err *err)
{
	struct singular w = {
	    .j = {.one = svd_one, .flag = args_attr_bool(c->node, "compute_uv", true)},
	    .full = args_attr_bool(c->node, "full_matrices", false)};
	struct matrix_job *j = &w.j;
	int rc = matrices_in(c, 0, &j->a, err);

	if (rc)
		return rc;
	enum mu_dtype t = j->a.t->dtype;
	int64_t m = j->a.rows, n = j->a.cols, least = m < n ? m : n, most = m < n ? n : m;
	if ((rc = matrices_out(c, 0, t, &j->a, 1, &least, &j->out[0], err)))
		return rc;
	if (!j->flag && ((rc = nothing(c, 1, t, err)) || (rc = nothing(c, 2, t, err))))
		return rc;
	if (j->flag && ((rc = matrices_out(c, 1, t, &j->a, 2, (int64_t[]){m, w.full ? m : least},
					   &j->out[1], err)) ||
			(rc = matrices_out(c, 2, t, &j->a, 2, (int64_t[]){n, w.full ? n : least},
					   &j->out[2], err))))
		return rc;
	j->ops = matrices_ops(&j->a);
	j->room = most < (1 << 24) ? 3 * most * most + least * least + least : INT64_MAX;
	return matrices_run(c, j, "", err);
}

static const struct kernel rows[] = {
    {"Eig", .flags = KERNEL_EXPENSIVE, .run = eig},
    {"MatrixLogarithm", .flags = KERNEL_EXPENSIVE, .run = logarithm},
    {"MatrixSquareRoot", .flags = KERNEL_EXPENSIVE, .run = square_root},
    {"SelfAdjointEigV2", .flags = KERNEL_EXPENSIVE, .run = hermitian},
    {"Svd", .flags = KERNEL_EXPENSIVE, .run = svd},
};
KERNEL_TABLE(eigen, rows)
