/* SPDX-License-Identifier: Apache-2.0 */
/* Matrices taken apart into triangles, and what follows from that: systems of equations,
 * determinants, inverses, least squares. */
#include <complex.h>
#include <math.h>

#include "task/kernels/kernel_table.h"
#include "task/kernels/matrix/matrices.h"

/* Numbers of 8 bytes in n of the job's type. */
static int64_t doubles(const struct matrix_job *j, int64_t n)
{
	return n * (int64_t)(j->ops->size / sizeof(double));
}

static int64_t area(const struct matrices *m)
{
	return m->rows * m->cols;
}

/* Input 0: square matrices; output 0 like it. */
static int square_job(struct kernel_call *c, struct matrix_job *j, struct mu_err *err)
{
	int rc = matrices_square_in(c, 0, &j->a, err);

	if (rc)
		return rc;
	j->ops = matrices_ops(&j->a);
	return 0;
}

static int out_like(struct kernel_call *c, struct matrix_job *j, const struct matrices *like,
		    struct mu_err *err)
{
	return kernel_out(c, 0, like->t->dtype, &like->t->shape, &j->out[0], err);
}

/* ---- Cholesky ---- */

static bool cholesky_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = area(&j->a);

	matrices_get(&j->a, k, room);
	if (!j->ops->cholesky(j->a.rows, room))
		for (int64_t i = 0; i < doubles(j, n); i++)
			room[i] = NAN;
	matrices_put(j->out[0], k * n, room, n);
	return true;
}

static int cholesky(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = cholesky_one};
	int rc;

	if ((rc = square_job(c, &j, err)) || (rc = out_like(c, &j, &j.a, err)))
		return rc;
	j.room = area(&j.a);
	return matrices_run(c, &j, "", err);
}

/* Of a, a = l l*: half of s + s*, s = l^-* p l^-1, p being the lower triangle of l* g with half of
 * its diagonal. */
static bool cholesky_grad_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = j->a.rows, all = n * n;
	double *l = room, *g = l + all, *t = g + all, *p = t + all;

	matrices_get(&j->a, k, l);
	matrices_get(&j->b, k, g);
	for (int64_t i = 0; i < n; i++) /* what lies above is not looked at */
		for (int64_t m = i + 1; m < n; m++)
			l[i * n + m] = g[i * n + m] = 0;
	j->ops->adjoint(n, n, l, t);
	j->ops->product(n, n, n, t, g, p);
	for (int64_t i = 0; i < n; i++) {
		p[i * n + i] /= 2;
		for (int64_t m = i + 1; m < n; m++)
			p[i * n + m] = 0;
	}
	j->ops->triangular(n, l, true, true, n, p); /* l^-* p */
	j->ops->adjoint(n, n, p, t);
	j->ops->triangular(n, l, true, true, n, t); /* l^-* p* l^-1 */
	for (int64_t i = 0; i < n; i++)
		for (int64_t m = 0; m < n; m++)
			p[i * n + m] = (t[i * n + m] + t[m * n + i]) / 2;
	matrices_put(j->out[0], k * all, p, all);
	return true;
}

static int cholesky_grad(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = cholesky_grad_one};
	int rc;

	if ((rc = square_job(c, &j, err)) || (rc = matrices_system_in(c, &j.a, &j.b, err)) ||
	    (rc = out_like(c, &j, &j.a, err)))
		return rc;
	if (matrices_complex(j.a.t->dtype) || !mu_shape_eq(&j.a.t->shape, &j.b.t->shape))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "CholeskyGrad wants reals of one shape, not %s %s and %s",
			       mu_dtype_name(j.a.t->dtype), mu_shape_str(&j.a.t->shape),
			       mu_shape_str(&j.b.t->shape));
	j.room = 2 * area(&j.a);
	return matrices_run(c, &j, "", err);
}

/* ---- by rows in another order ---- */

/* Matrix k into `a`, turned if that is asked, and taken apart; perm behind it. */
static bool taken_apart(const struct matrix_job *j, int64_t k, double *a, double *t, int64_t *perm)
{
	int64_t n = j->a.rows;
	bool odd;

	matrices_get(&j->a, k, j->flag ? t : a);
	if (j->flag)
		j->ops->adjoint(n, n, t, a);
	j->ops->lu(n, a, perm, &odd);
	return j->ops->invertible(n, a);
}

/* j->b without a tensor: the identity */
static bool solve_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = j->a.rows, columns = j->b.cols, side = n * columns;
	double *a = room, *b = a + 2 * n * n, *x = b + 2 * side;
	int64_t *perm = (int64_t *)(x + 2 * (side > n * n ? side : n * n));

	if (!taken_apart(j, k, a, x, perm))
		return false;
	if (j->b.t)
		matrices_get(&j->b, k, b);
	for (int64_t i = 0; !j->b.t && i < n; i++)
		b[doubles(j, i * n + i)] = 1;
	j->ops->solve(n, a, perm, columns, b, x);
	matrices_put(j->out[0], k * side, x, side);
	return true;
}

static int64_t room_to_solve(const struct matrix_job *j)
{
	return 2 * area(&j->a) + 2 * area(&j->b) + j->a.rows;
}

static int matrix_solve(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = solve_one, .flag = args_attr_bool(c->node, "adjoint", false)};
	int rc;

	if ((rc = square_job(c, &j, err)) || (rc = matrices_system_in(c, &j.a, &j.b, err)) ||
	    (rc = out_like(c, &j, &j.b, err)))
		return rc;
	j.room = room_to_solve(&j);
	return matrices_run(c, &j, "Input matrix is not invertible.", err);
}

static int matrix_inverse(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = solve_one, .flag = args_attr_bool(c->node, "adjoint", false)};
	int rc;

	if ((rc = square_job(c, &j, err)) || (rc = out_like(c, &j, &j.a, err)))
		return rc;
	j.b = j.a;
	j.b.t = NULL;
	j.room = room_to_solve(&j);
	return matrices_run(c, &j, "Input is not invertible.", err);
}

/* out[1]: the logarithm of the size apart from the sign */
static bool determinant_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = j->a.rows;
	double sign[2] = {0}, log_size[2] = {0};
	bool odd;

	matrices_get(&j->a, k, room);
	j->ops->lu(n, room, (int64_t *)(room + 2 * n * n), &odd);
	j->ops->determinant(n, room, odd, sign, log_size);
	if (j->out[1]) {
		matrices_put(j->out[1], k, log_size, 1);
	} else {
		sign[0] *= exp(log_size[0]);
		sign[1] *= exp(log_size[0]);
	}
	matrices_put(j->out[0], k, sign, 1);
	return true;
}

static int determinants(struct kernel_call *c, bool apart, struct mu_err *err)
{
	struct matrix_job j = {.one = determinant_one};
	int rc;

	if ((rc = square_job(c, &j, err)) ||
	    (rc = matrices_out(c, 0, j.a.t->dtype, &j.a, 0, NULL, &j.out[0], err)) ||
	    (apart && (rc = matrices_out(c, 1, j.a.t->dtype, &j.a, 0, NULL, &j.out[1], err))))
		return rc;
	j.room = area(&j.a) + j.a.rows;
	return matrices_run(c, &j, "", err);
}

static int determinant(struct kernel_call *c, struct mu_err *err)
{
	return determinants(c, false, err);
}

static int log_determinant(struct kernel_call *c, struct mu_err *err)
{
	return determinants(c, true, err);
}

static bool lu_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t n = j->a.rows, *perm = (int64_t *)(room + 2 * n * n);

	if (!taken_apart(j, k, room, NULL, perm))
		return false;
	matrices_put(j->out[0], k * n * n, room, n * n);
	for (int64_t i = 0; i < n; i++)
		if (j->out[1]->dtype == MU_INT32)
			MU_DATA(int32_t, j->out[1])[k * n + i] = (int32_t)perm[i];
		else
			MU_DATA(int64_t, j->out[1])[k * n + i] = perm[i];
	return true;
}

static int lu(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "output_idx_type", MU_INT32);
	struct matrix_job j = {.one = lu_one};
	int rc;

	if (t != MU_INT32 && t != MU_INT64)
		return mu_fail(err, MU_INVALID_ARGUMENT, "no places of type %s", mu_dtype_name(t));
	if ((rc = square_job(c, &j, err)) || (rc = out_like(c, &j, &j.a, err)) ||
	    (rc = matrices_out(c, 1, t, &j.a, 1, &j.a.rows, &j.out[1], err)))
		return rc;
	j.room = area(&j.a) + j.a.rows;
	return matrices_run(c, &j, "Input is not invertible.", err);
}

/* ---- least squares ---- */

struct least {
	struct matrix_job j;
	double more; /* on the diagonal */
};

/* By the normal equations: of a matrix that is wider than high, of the smallest of its solutions.
 */
static bool fast_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t m = j->a.rows, n = j->a.cols, columns = j->b.cols, least = m < n ? m : n;
	const struct matrix_ops *ops = j->ops;
	double *a = room, *t = a + 2 * m * n, *b = t + 2 * m * n, *s = b + 2 * m * columns;
	double *x = s + 2 * least * least, *y = m < n ? b : x;

	matrices_get(&j->a, k, a);
	matrices_get(&j->b, k, b);
	ops->adjoint(m, n, a, t);
	ops->product(least, least, m < n ? n : m, m < n ? a : t, m < n ? t : a, s);
	for (int64_t i = 0; i < least; i++)
		s[doubles(j, i * least + i)] += ((const struct least *)j)->more;
	if (!ops->cholesky(least, s))
		return false;
	if (m >= n)
		ops->product(n, columns, m, t, b, x);
	ops->triangular(least, s, true, false, columns, y);
	ops->triangular(least, s, true, true, columns, y);
	if (m < n)
		ops->product(n, columns, m, t, y, x);
	matrices_put(j->out[0], k * n * columns, x, n * columns);
	return true;
}

/* By singular values, those that are as good as 0 left out: the smallest solution there is. */
static bool slow_one(const struct matrix_job *j, int64_t k, double *room)
{
	int64_t m = j->a.rows, n = j->a.cols, columns = j->b.cols;
	int64_t high = m > n ? m : n, low = m > n ? n : m, unit = doubles(j, 1);
	const struct matrix_ops *ops = j->ops;
	double *a = room, *t = a + 2 * m * n, *b = t + 2 * m * n, *x = b + 2 * m * columns;
	double *u = x + 2 * n * columns, *v = u + 2 * high * low, *s = v + 2 * low * low;
	double *y = s + 2 * low;

	matrices_get(&j->a, k, m < n ? t : a);
	matrices_get(&j->b, k, b);
	if (m < n)
		ops->adjoint(m, n, t, a);
	if (!ops->svd(high, low, a, false, s, u, v))
		return false;
	ops->product(low, columns, m, m < n ? v : u, b, y);
	double small =
	    low ? s[0] * (double)high *
		      (j->a.t->dtype == MU_FLOAT || j->a.t->dtype == MU_COMPLEX64 ? 0x1p-23
										  : 0x1p-52)
		: 0;
	for (int64_t i = 0; i < low; i++)
		for (int64_t c = 0; c < unit * columns; c++)
			y[i * unit * columns + c] *= s[i] > small ? 1 / s[i] : 0;
	ops->adjoint(low, n, m < n ? u : v, t);
	ops->product(n, columns, low, t, y, x);
	matrices_put(j->out[0], k * n * columns, x, n * columns);
	return true;
}

static int least_squares(struct kernel_call *c, struct mu_err *err)
{
	bool fast = args_attr_bool(c->node, "fast", true);
	struct least l = {.j = {.one = fast ? fast_one : slow_one}};
	struct matrix_job *j = &l.j;
	int rc;

	if ((rc = matrices_system_in(c, &j->a, &j->b, err)) ||
	    (rc = args_type(c, 2, MU_DOUBLE, err)) || (rc = args_rank(c, 2, 0, err)))
		return rc;
	l.more = *MU_DATA(double, kernel_in(c, 2));
	if (!(l.more >= 0))
		return mu_fail(err, MU_INVALID_ARGUMENT, "l2_regularizer must be >= 0.");
	j->ops = matrices_ops(&j->a);
	int64_t m = j->a.rows, n = j->a.cols, columns = j->b.cols, low = m < n ? m : n;
	if ((rc = matrices_out(c, 0, j->a.t->dtype, &j->a, 2, (int64_t[]){n, columns}, &j->out[0],
			       err)))
		return rc;
	j->room = 3 * m * n + (m + 2 * n) * columns + 2 * low * low + low;
	return matrices_run(c, j,
			    "Input matrix was rank deficient or ill-conditioned. Try setting "
			    "fast=False or provide a larger l2_regularizer > 0.",
			    err);
}

static const struct kernel rows[] = {
    {"Cholesky", .flags = KERNEL_EXPENSIVE, .run = cholesky},
    {"CholeskyGrad", .flags = KERNEL_EXPENSIVE, .run = cholesky_grad},
    {"LogMatrixDeterminant", .flags = KERNEL_EXPENSIVE, .run = log_determinant},
    {"Lu", .flags = KERNEL_EXPENSIVE, .run = lu},
    {"MatrixDeterminant", .flags = KERNEL_EXPENSIVE, .run = determinant},
    {"MatrixInverse", .flags = KERNEL_EXPENSIVE, .run = matrix_inverse},
    {"MatrixSolve", .flags = KERNEL_EXPENSIVE, .run = matrix_solve},
    {"MatrixSolveLs", .flags = KERNEL_EXPENSIVE, .run = least_squares},
};
KERNEL_TABLE(linear, rows)
