/* SPDX-License-Identifier: Apache-2.0 */
/* Solutions and products of tridiagonal matrices, given as three rows: superdiagonal (used from the
 * first row on), diagonal, and subdiagonal (used from the second row on). The arithmetic is complex
 * for all types. */
#include <complex.h>
#include <math.h>
#include <string.h>

#include "task/kernels/engine/complex_of.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/linalg/matrices.h"

typedef double _Complex number;

static void add_row(int64_t n, number f, const number *x, number *y)
{
	for (int64_t i = 0; i < n; i++)
		y[i] += f * x[i];
}

struct tridiagonal {
	int64_t n, columns;
	number *superdiagonal, *main, *subdiagonal;
	number *second_superdiagonal; /* filled by row exchanges */
	number *x;
};

/* Exchanges rows i and i + 1.  Row i has been eliminated, row i + 1 has not. */
static void exchange(struct tridiagonal *s, int64_t i)
{
	number t = s->main[i];

	s->main[i] = s->subdiagonal[i + 1];
	s->subdiagonal[i + 1] = t;
	t = s->superdiagonal[i];
	s->superdiagonal[i] = s->main[i + 1];
	s->main[i + 1] = t;
	if (i + 2 < s->n) {
		s->second_superdiagonal[i] = s->superdiagonal[i + 1];
		s->superdiagonal[i + 1] = 0;
	}
	for (int64_t c = 0; c < s->columns; c++) {
		t = s->x[i * s->columns + c];
		s->x[i * s->columns + c] = s->x[(i + 1) * s->columns + c];
		s->x[(i + 1) * s->columns + c] = t;
	}
}

static void solve(struct tridiagonal *s, bool pivoting)
{
	for (int64_t i = 0; i + 1 < s->n; i++) {
		if (pivoting && cabs(s->subdiagonal[i + 1]) > cabs(s->main[i]))
			exchange(s, i);
		number f = s->subdiagonal[i + 1] / s->main[i];
		s->main[i + 1] -= f * s->superdiagonal[i];
		if (i + 2 < s->n)
			s->superdiagonal[i + 1] -= f * s->second_superdiagonal[i];
		add_row(s->columns, -f, s->x + i * s->columns, s->x + (i + 1) * s->columns);
	}
	for (int64_t i = s->n; i-- > 0;) {
		number *row = s->x + i * s->columns;
		if (i + 1 < s->n)
			add_row(s->columns, -s->superdiagonal[i], row + s->columns, row);
		if (i + 2 < s->n)
			add_row(s->columns, -s->second_superdiagonal[i], row + 2 * s->columns, row);
		for (int64_t c = 0; c < s->columns; c++)
			row[c] /= s->main[i];
	}
}

/* A singular matrix gives NaN, as in TensorFlow, or an error. */
static int solve_one(const struct matrix_job *j, int64_t k, double *work)
{
	int64_t n = j->a.cols, columns = j->b.cols;
	number *d = (number *)work;
	struct tridiagonal s = {n, columns, d, d + n, d + 2 * n, d + 3 * n, d + 4 * n};
	bool singular = false;

	matrices_get_complex(&j->a, k, BY_ROWS, d);
	matrices_get_complex(&j->b, k, BY_ROWS, s.x);
	memset(s.second_superdiagonal, 0, (size_t)n * sizeof *s.second_superdiagonal);
	solve(&s, j->flag);
	for (int64_t i = 0; i < n; i++)
		singular |= s.main[i] == 0;
	if (singular && j->singular_error)
		return 1;
	for (int64_t i = 0; singular && i < n * columns; i++)
		s.x[i] = complex_of(NAN, NAN);
	matrices_put_complex(j->out[0], k * n * columns, BY_ROWS, j->b.rows, j->b.cols, s.x);
	return 0;
}

/* True if the batch dimensions are equal. */
static bool same_batch(const struct matrices *a, const struct matrices *b)
{
	return a->t->shape.rank == b->t->shape.rank &&
	       mu_shape_part_eq(&a->t->shape, 0, &b->t->shape, 0, a->t->shape.rank - 2);
}

static int tridiagonal_solve(struct kernel_call *c, struct mu_err *err)
{
	struct matrix_job j = {.one = solve_one,
			       .flag = args_attr_bool(c->node, "partial_pivoting", true),
			       .singular_error = matrices_error_attr(c)};

	if (!j.flag && args_attr_bool(c->node, "perturb_singular", false))
		return mu_invalid(
		    err, "Setting perturb_singular requires also setting partial_pivoting.");
	MU_RETURN_IF_ERROR(matrices_in(c, 0, &j.a, err));
	MU_RETURN_IF_ERROR(matrices_in(c, 1, &j.b, err));
	if (j.a.rows != 3)
		return mu_invalid(
		    err, "Expected diagonals to be provided as a matrix with 3 rows, got %d rows.",
		    j.a.rows);
	if (!same_batch(&j.a, &j.b) || j.a.cols != j.b.rows)
		return mu_invalid(err,
				  "Expected the same number of left-hand sides and right-hand "
				  "sides, got %s and %s.",
				  mu_shape_str(&j.a.t->shape), mu_shape_str(&j.b.t->shape));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, j.b.t->dtype, &j.b.t->shape, &j.out[0], err));
	j.lwork = 4 * (int64_t)j.a.cols + (int64_t)j.b.rows * j.b.cols;
	const char *message = "The matrix is not invertible.";
	if (j.a.cols == 1)
		message = "The matrix is not invertible: it is a scalar with value zero.";
	else if (!j.flag)
		message = "The matrix is either not invertible, or requires pivoting. Try setting "
			  "partial_pivoting = True.";
	return matrices_run(c, &j, message, err);
}

/* ---- TridiagonalMatMul: each diagonal is an input ---- */

struct product_job {
	struct matrix_job j;
	struct matrices diagonal[3];
};

static int product_one(const struct matrix_job *j, int64_t k, double *work)
{
	const struct product_job *w = (const struct product_job *)j;
	int64_t n = j->a.rows, columns = j->a.cols;
	number *d = (number *)work, *x = d + 3 * n, *y = x + n * columns;

	for (int i = 0; i < 3; i++)
		matrices_get_complex(&w->diagonal[i], k, BY_ROWS, d + i * n);
	matrices_get_complex(&j->a, k, BY_ROWS, x);
	memset(y, 0, (size_t)(n * columns) * sizeof *y);
	for (int64_t i = 0; i < n; i++)
		for (int64_t m = i ? i - 1 : 0; m < n && m <= i + 1; m++)
			add_row(columns, d[(1 + i - m) * n + i], x + m * columns, y + i * columns);
	matrices_put_complex(j->out[0], k * n * columns, BY_ROWS, j->a.rows, j->a.cols, y);
	return 0;
}

static int tridiagonal_product(struct kernel_call *c, struct mu_err *err)
{
	struct product_job w = {.j = {.one = product_one}};

	MU_RETURN_IF_ERROR(matrices_in(c, 3, &w.j.a, err));
	for (unsigned i = 0; i < 3; i++) {
		const struct matrices *d = &w.diagonal[i];
		MU_RETURN_IF_ERROR(matrices_in(c, i, &w.diagonal[i], err));
		if (d->rows != 1 || d->cols != w.j.a.rows || !same_batch(d, &w.j.a))
			return mu_invalid(
			    err, "diagonal %u of shape %s does not fit a right side %s", i,
			    mu_shape_str(&d->t->shape), mu_shape_str(&w.j.a.t->shape));
	}
	MU_RETURN_IF_ERROR(kernel_out(c, 0, w.j.a.t->dtype, &w.j.a.t->shape, &w.j.out[0], err));
	w.j.lwork = 3 * (int64_t)w.j.a.rows + 2 * (int64_t)w.j.a.rows * w.j.a.cols;
	return matrices_run(c, &w.j, "", err);
}

static const struct kernel rows[] = {
    {"TridiagonalMatMul", .flags = KERNEL_EXPENSIVE, .run = tridiagonal_product},
    {"TridiagonalSolve", .flags = KERNEL_EXPENSIVE, .run = tridiagonal_solve},
};
KERNEL_TABLE(linalg_tridiagonal, rows)
