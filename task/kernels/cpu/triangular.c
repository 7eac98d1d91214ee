/* SPDX-License-Identifier: Apache-2.0 */
/* Triangular systems, solved from the end that has one unknown, one matrix of a batch after the
 * other.  What the matrix has on the other side of its diagonal is not looked at; a zero on it
 * makes infinities, as it does in TensorFlow. */
#include <string.h>

#include "task/kernels/broadcast.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/matrix/matrices.h"

struct triangles {
	struct matrix_job j; /* a is the right sides, so that there are as many as results */
	struct matrices matrix;
	struct view of_matrix, of_right; /* which matrix and right side a result has */
	bool lower, banded;              /* banded: a matrix is its diagonals, a row each */
};

static bool solve_one(const struct matrix_job *j, int64_t k, double *room)
{
	const struct triangles *w = (const struct triangles *)j;
	int64_t n = w->matrix.cols, columns = j->a.cols;
	double *b = room + 2 * w->matrix.rows * n;

	matrices_get(&w->matrix, broadcast_place(&w->of_matrix, k), room);
	matrices_get(&j->a, broadcast_place(&w->of_right, k), b);
	if (w->banded)
		j->ops->banded(n, w->matrix.rows, room, w->lower, j->flag, columns, b);
	else
		j->ops->triangular(n, room, w->lower, j->flag, columns, b);
	matrices_put(j->out[0], k * n * columns, b, n * columns);
	return true;
}

/* The dimensions of a batch, all but the last two. */
static int batch_of(const struct matrices *m, struct mu_shape *out, struct mu_err *err)
{
	return mu_shape_set(out, m->t->shape.rank - 2, m->t->shape.dim, err);
}

static int matrices_or_bands_in(const struct kernel_call *c, struct triangles *w,
				struct mu_err *err)
{
	int rc = w->banded ? matrices_in(c, 0, &w->matrix, err)
			   : matrices_square_in(c, 0, &w->matrix, err);

	if (!rc && w->banded && (w->matrix.rows < 1 || w->matrix.cols < 1))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Number of bands must be positive, and their length: got %s",
			       mu_shape_str(&w->matrix.t->shape));
	return rc;
}

static int solve(struct kernel_call *c, bool banded, struct mu_err *err)
{
	struct triangles w = {
	    .banded = banded,
	    .lower = args_attr_bool(c->node, "lower", true),
	    .j = {.one = solve_one, .flag = args_attr_bool(c->node, "adjoint", false)}};
	struct mu_shape of_a, of_b, shape;
	struct matrix_job *j = &w.j;
	int rc;

	if ((rc = args_same_type(c, 0, 1, err)) || (rc = matrices_or_bands_in(c, &w, err)) ||
	    (rc = matrices_in(c, 1, &j->a, err)) || (rc = batch_of(&w.matrix, &of_a, err)) ||
	    (rc = batch_of(&j->a, &of_b, err)))
		return rc;
	if (w.matrix.cols != j->a.rows || broadcast_shape(&of_a, &of_b, &shape, err))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "In[0] and In[1] must be batches of as many square matrices and of "
			       "right sides with as many rows, got %s and %s",
			       mu_shape_str(&w.matrix.t->shape), mu_shape_str(&j->a.t->shape));
	broadcast_view(&w.of_matrix, &of_a, &shape);
	broadcast_view(&w.of_right, &of_b, &shape);
	j->ops = matrices_ops(&j->a);
	j->room = w.matrix.rows * w.matrix.cols + j->a.rows * j->a.cols;
	j->a.n = shape.count;
	if ((rc = mu_shape_push(&shape, j->a.rows, err)) ||
	    (rc = mu_shape_push(&shape, j->a.cols, err)) ||
	    (rc = kernel_out(c, 0, j->a.t->dtype, &shape, &j->out[0], err)))
		return rc;
	return matrices_run(c, j, "", err);
}

static int triangular_solve(struct kernel_call *c, struct mu_err *err)
{
	return solve(c, false, err);
}

static int banded_solve(struct kernel_call *c, struct mu_err *err)
{
	return solve(c, true, err);
}

static const struct kernel rows[] = {
    {"BandedTriangularSolve", .flags = KERNEL_EXPENSIVE, .run = banded_solve},
    {"MatrixTriangularSolve", .flags = KERNEL_EXPENSIVE, .run = triangular_solve},
};
KERNEL_TABLE(triangular, rows)
