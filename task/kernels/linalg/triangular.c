/* SPDX-License-Identifier: Apache-2.0 */
/* Triangular systems.  The other triangle of a matrix is not read; a zero on the diagonal yields
 * infinities, as in TensorFlow. */
#include <complex.h>

#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/linalg/matrices.h"

typedef double _Complex number;

struct triangles {
	struct matrix_job j; /* a: the right-hand sides; a.n: the number of results */
	struct matrices matrix;
	struct view matrix_view, right_view; /* map a result to its matrix and right-hand side */
	bool lower, banded;                  /* banded: each row of the input is a diagonal */
};

/* Solves for one right-hand side.  A row of `bands` is a diagonal; its element i is in row i of the
 * matrix. */
static void solve_banded(const struct triangles *w, const number *bands, number *b)
{
	int64_t n = w->matrix.cols, rows = w->matrix.rows;
	bool from_top = w->lower != w->j.flag;

	for (int64_t k = 0; k < n; k++) {
		int64_t i = from_top ? k : n - 1 - k;
		number sum = b[i], pivot = bands[(w->lower ? 0 : rows - 1) * n + i];

		for (int64_t d = 1; d < rows && d <= k; d++) {
			int64_t solved = from_top ? i - d : i + d;
			const number *band = bands + (w->lower ? d : rows - 1 - d) * n;
			sum -= (w->j.flag ? conj(band[solved]) : band[i]) * b[solved];
		}
		b[i] = sum / (w->j.flag ? conj(pivot) : pivot);
	}
}

static int banded_one(const struct matrix_job *j, int64_t k, double *work)
{
	const struct triangles *w = (const struct triangles *)j;
	int n = j->a.rows, columns = j->a.cols;
	number *bands = (number *)work, *b = bands + (int64_t)w->matrix.rows * n;

	matrices_get_complex(&w->matrix, broadcast_offset(&w->matrix_view, k), BY_ROWS, bands);
	matrices_get_complex(&j->a, broadcast_offset(&w->right_view, k), BY_COLUMNS, b);
	for (int64_t i = 0; i < columns; i++)
		solve_banded(w, bands, b + i * n);
	matrices_put_complex(j->out[0], k * n * columns, BY_COLUMNS, n, columns, b);
	return 0;
}

static int triangle_one(const struct matrix_job *j, int64_t k, double *work)
{
	const struct triangles *w = (const struct triangles *)j;
	int n = j->a.rows, columns = j->a.cols;
	double *b = work + 2 * (int64_t)n * n;

	matrices_get(&w->matrix, broadcast_offset(&w->matrix_view, k), BY_COLUMNS, work);
	for (int64_t i = 0; i < n && j->singular_error; i++) {
		const double *pivot = work + i * (n + 1) * (j->a.is_complex ? 2 : 1);
		if (pivot[0] == 0 && (!j->a.is_complex || pivot[1] == 0))
			return 1;
	}
	matrices_get(&j->a, broadcast_offset(&w->right_view, k), BY_COLUMNS, b);
	lapack_trsm(j->a.is_complex, 'L', w->lower ? 'L' : 'U', j->flag ? 'C' : 'N', n, columns,
		    work, b);
	matrices_put(j->out[0], k * n * columns, BY_COLUMNS, n, columns, b);
	return 0;
}

/* The dimensions of a batch, all but the last two. */
static int batch_of(const struct matrices *m, struct mu_shape *out, struct mu_err *err)
{
	return mu_shape_set(out, m->t->shape.rank - 2, m->t->shape.dim, err);
}

static int matrices_or_bands_in(const struct kernel_call *c, struct triangles *w,
				struct mu_err *err)
{
	MU_RETURN_IF_ERROR(w->banded ? matrices_in(c, 0, &w->matrix, err)
				     : matrices_square_in(c, 0, &w->matrix, err));
	if (w->banded && (w->matrix.rows < 1 || w->matrix.cols < 1))
		return mu_invalid(err, "Number of bands must be positive, and their length: got %s",
				  mu_shape_str(&w->matrix.t->shape));
	return 0;
}

static int triangular_solve_banded(struct kernel_call *c, bool banded, struct mu_err *err)
{
	struct triangles w = {.banded = banded,
			      .lower = args_attr_bool(c->node, "lower", true),
			      .j = {.one = banded ? banded_one : triangle_one,
				    .flag = args_attr_bool(c->node, "adjoint", false),
				    .singular_error = matrices_error_attr(c)}};
	struct mu_shape batch_a, batch_b, shape;
	struct matrix_job *j = &w.j;

	MU_RETURN_IF_ERROR(matrices_or_bands_in(c, &w, err));
	MU_RETURN_IF_ERROR(matrices_in(c, 1, &j->a, err));
	MU_RETURN_IF_ERROR(batch_of(&w.matrix, &batch_a, err));
	MU_RETURN_IF_ERROR(batch_of(&j->a, &batch_b, err));
	if (w.matrix.cols != j->a.rows || broadcast_shape(&batch_a, &batch_b, &shape, err))
		return mu_invalid(err,
				  "In[0] and In[1] must be batches of as many square matrices and "
				  "of right sides with as many rows, got %s and %s",
				  mu_shape_str(&w.matrix.t->shape), mu_shape_str(&j->a.t->shape));
	broadcast_view(&w.matrix_view, &batch_a, &shape);
	broadcast_view(&w.right_view, &batch_b, &shape);
	j->lwork = (int64_t)w.matrix.rows * w.matrix.cols + (int64_t)j->a.rows * j->a.cols;
	j->a.n = shape.count;
	MU_RETURN_IF_ERROR(mu_shape_append(&shape, 2, (int64_t[]){j->a.rows, j->a.cols}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, j->a.t->dtype, &shape, &j->out[0], err));
	return matrices_run(c, j, "Input matrix is not invertible.", err);
}

KERNEL_RUN(triangular_solve, triangular_solve_banded(c, false, err))
KERNEL_RUN(banded_solve, triangular_solve_banded(c, true, err))

static const struct kernel rows[] = {
    {"BandedTriangularSolve", .flags = KERNEL_EXPENSIVE, .run = banded_solve},
    {"MatrixTriangularSolve BatchMatrixTriangularSolve", .flags = KERNEL_EXPENSIVE,
     .run = triangular_solve},
};
KERNEL_TABLE(linalg_triangular, rows)
