/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/matrix/matrices.h"

#include <complex.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/convert.h"

bool matrices_complex(enum mu_dtype t)
{
	return t == MU_COMPLEX64 || t == MU_COMPLEX128;
}

int matrices_in(const struct kernel_call *c, unsigned i, struct matrices *m, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, i);
	int rank = t->shape.rank;

	if (t->dtype != MU_FLOAT && t->dtype != MU_DOUBLE && !matrices_complex(t->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
			       mu_dtype_name(t->dtype));
	if (rank < 2)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Input tensor %u must have rank >= 2, got %d", i, rank);
	if (t->shape.dim[rank - 2] > INT_MAX || t->shape.dim[rank - 1] > INT_MAX)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Input matrices of shape %s are too large: no dimension may exceed "
			       "%d",
			       mu_shape_str(&t->shape), INT_MAX);
	*m = (struct matrices){t, (int)t->shape.dim[rank - 2], (int)t->shape.dim[rank - 1], 1,
			       matrices_complex(t->dtype)};
	for (int d = 0; d < rank - 2; d++)
		m->n *= t->shape.dim[d];
	return 0;
}

int matrices_square_in(const struct kernel_call *c, unsigned i, struct matrices *m,
		       struct mu_err *err)
{
	int rc = matrices_in(c, i, m, err);

	if (!rc && m->rows != m->cols)
		return mu_fail(err, MU_INVALID_ARGUMENT, "Input matrix must be square, not %s",
			       mu_shape_str(&m->t->shape));
	return rc;
}

int matrices_system_in(const struct kernel_call *c, struct matrices *a, struct matrices *b,
		       struct mu_err *err)
{
	int rc;

	if ((rc = args_same_type(c, 0, 1, err)) || (rc = matrices_in(c, 0, a, err)) ||
	    (rc = matrices_in(c, 1, b, err)))
		return rc;
	bool fits = a->t->shape.rank == b->t->shape.rank && a->rows == b->rows;
	for (int d = 0; fits && d < a->t->shape.rank - 2; d++)
		fits = a->t->shape.dim[d] == b->t->shape.dim[d];
	if (!fits)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Input matrix and rhs are incompatible: %s and %s",
			       mu_shape_str(&a->t->shape), mu_shape_str(&b->t->shape));
	return 0;
}

int matrices_out(struct kernel_call *c, unsigned i, enum mu_dtype t, const struct matrices *m,
		 int rank, const int64_t *dims, struct mu_tensor **out, struct mu_err *err)
{
	struct mu_shape shape = mu_shape_scalar();
	int lead = m->t->shape.rank - 2, rc = 0;

	for (int d = 0; d < lead + rank && !rc; d++)
		rc = mu_shape_push(&shape, d < lead ? m->t->shape.dim[d] : dims[d - lead], err);
	return rc ? rc : kernel_out(c, i, t, &shape, out, err);
}

static enum mu_dtype part_of(enum mu_dtype t)
{
	return t == MU_FLOAT || t == MU_COMPLEX64 ? MU_FLOAT : MU_DOUBLE;
}

/* ---- copies ---- */

enum { BLOCK_ROWS = 8, BLOCK_COLUMNS = 64 };

/* Some rows and columns of a matrix, in a block that stays in the nearest cache. */
struct block {
	int row, column, rows, columns;
	bool is_complex;
	double at[BLOCK_ROWS][2 * BLOCK_COLUMNS];
};

static void block_to_columns(const struct block *b, int rows, double *to)
{
	for (int j = 0; j < b->columns; j++)
		for (int i = 0; i < b->rows; i++) {
			int64_t at = (int64_t)(b->column + j) * rows + b->row + i;
			if (b->is_complex)
				memcpy(to + 2 * at, &b->at[i][2 * j], 2 * sizeof *to);
			else
				to[at] = b->at[i][j];
		}
}

static void block_from_columns(struct block *b, int rows, const double *from)
{
	for (int j = 0; j < b->columns; j++)
		for (int i = 0; i < b->rows; i++) {
			int64_t at = (int64_t)(b->column + j) * rows + b->row + i;
			if (b->is_complex)
				memcpy(&b->at[i][2 * j], from + 2 * at, 2 * sizeof *from);
			else
				b->at[i][j] = from[at];
		}
}

/* The block after b, or the first one; false: there is none. */
static bool block_next(struct block *b, int rows, int cols)
{
	b->column += b->columns;
	if (b->column >= cols) {
		b->column = 0;
		b->row += b->rows;
	}
	b->rows = rows - b->row < BLOCK_ROWS ? rows - b->row : BLOCK_ROWS;
	b->columns = cols - b->column < BLOCK_COLUMNS ? cols - b->column : BLOCK_COLUMNS;
	return b->rows > 0 && b->columns > 0;
}

void matrices_get(const struct matrices *m, int64_t k, enum order order, void *to)
{
	enum mu_dtype t = m->t->dtype;
	int64_t parts = m->is_complex ? 2 : 1, all = (int64_t)m->rows * m->cols;
	const char *from = (const char *)m->t->data + (size_t)(k * all) * mu_dtype_size(t);
	struct block b;

	if (order == BY_ROWS) {
		convert(MU_DOUBLE, to, part_of(t), from, parts * all);
		return;
	}
	b.row = b.column = b.rows = b.columns = 0;
	b.is_complex = m->is_complex;
	while (block_next(&b, m->rows, m->cols)) {
		for (int i = 0; i < b.rows; i++)
			convert(MU_DOUBLE, b.at[i], part_of(t),
				from + (size_t)((int64_t)(b.row + i) * m->cols + b.column) *
					   mu_dtype_size(t),
				parts * b.columns);
		block_to_columns(&b, m->rows, to);
	}
}

void matrices_put(struct mu_tensor *out, int64_t at, enum order order, int rows, int cols,
		  const void *from)
{
	enum mu_dtype t = out->dtype;
	bool is_complex = matrices_complex(t);
	int64_t parts = is_complex ? 2 : 1;
	char *to = (char *)out->data + (size_t)at * mu_dtype_size(t);
	struct block b;

	if (order == BY_ROWS) {
		convert(part_of(t), to, MU_DOUBLE, from, parts * rows * cols);
		return;
	}
	b.row = b.column = b.rows = b.columns = 0;
	b.is_complex = is_complex;
	while (block_next(&b, rows, cols)) {
		block_from_columns(&b, rows, from);
		for (int i = 0; i < b.rows; i++)
			convert(part_of(t),
				to + (size_t)((int64_t)(b.row + i) * cols + b.column) *
					 mu_dtype_size(t),
				MU_DOUBLE, b.at[i], parts * b.columns);
	}
}

void matrices_get_complex(const struct matrices *m, int64_t k, enum order order, void *to)
{
	matrices_get(m, k, order, to);
	if (!m->is_complex)
		for (int64_t i = (int64_t)m->rows * m->cols; i-- > 0;)
			((double _Complex *)to)[i] = ((double *)to)[i];
}

void matrices_put_complex(struct mu_tensor *out, int64_t at, enum order order, int rows, int cols,
			  void *from)
{
	if (!matrices_complex(out->dtype))
		for (int64_t i = 0; i < (int64_t)rows * cols; i++)
			((double *)from)[i] = ((double *)from)[2 * i];
	matrices_put(out, at, order, rows, cols, from);
}

void matrices_put_real(struct mu_tensor *out, int64_t at, int n, const double *from)
{
	for (int i = 0; matrices_complex(out->dtype) && i < n; i++)
		matrices_put(out, at + i, BY_ROWS, 1, 1, (double[2]){from[i], 0});
	if (!matrices_complex(out->dtype))
		matrices_put(out, at, BY_ROWS, 1, n, from);
}

bool matrices_finite(bool is_complex, int64_t n, const void *a)
{
	const double *x = a;
	double sum = 0;

	for (int64_t i = 0; i < (is_complex ? 2 * n : n); i++)
		sum += 0 * x[i]; /* 0, or NaN */
	return sum == 0;
}

void matrices_keep_lower(bool is_complex, int n, void *a)
{
	size_t size = is_complex ? sizeof(double[2]) : sizeof(double);

	for (int j = 1; j < n; j++)
		memset((char *)a + (size_t)j * (size_t)n * size, 0, (size_t)j * size);
}

/* ---- jobs ---- */

static void some(void *arg, int64_t from, int64_t to)
{
	struct matrix_job *j = arg;
	double *room = NULL;

	if (j->room < INT64_MAX / 32)
		room = calloc((size_t)j->room + 1, 2 * sizeof *room);
	if (!room) {
		atomic_store(&j->no_memory, true);
		return;
	}
	for (int64_t k = from; k < to; k++) {
		int rc = j->one(j, k, room);
		if (rc)
			atomic_store(rc == LAPACK_NO_MEMORY ? &j->no_memory : &j->failed, true);
	}
	free(room);
}

int matrices_run(struct kernel_call *c, struct matrix_job *j, const char *why, struct mu_err *err)
{
	/* as many as make it worth another thread */
	int64_t work = (int64_t)j->a.rows * j->a.cols + 1, grain = 20000 / work + 1;

	kernel_parallel(c, j->a.n, grain, some, j);
	if (j->no_memory)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a matrix of shape %s",
			       mu_shape_str(&j->a.t->shape));
	return j->failed ? mu_fail(err, MU_INVALID_ARGUMENT, "%s", why) : 0;
}
