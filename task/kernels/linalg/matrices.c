/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/linalg/matrices.h"
#include "lib/base/ints.h"
#include "task/kernels/engine/args.h"

#include <complex.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

int matrices_in(const struct kernel_call *c, unsigned i, struct matrices *m, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, i);
	int rank = t->shape.rank;

	if (t->dtype != MU_FLOAT && t->dtype != MU_DOUBLE && !mu_dtype_is_complex(t->dtype))
		return args_no_kernel(c, t->dtype, err);
	if (rank < 2)
		return mu_invalid(err, "Input tensor %u must have rank >= 2, got %d", i, rank);
	if (t->shape.dim[rank - 2] > INT_MAX || t->shape.dim[rank - 1] > INT_MAX)
		return mu_invalid(
		    err, "Input matrices of shape %s are too large: no dimension may exceed %d",
		    mu_shape_str(&t->shape), INT_MAX);
	*m = (struct matrices){t, (int)t->shape.dim[rank - 2], (int)t->shape.dim[rank - 1],
			       mu_shape_product(&t->shape, 0, rank - 2),
			       mu_dtype_is_complex(t->dtype)};
	return 0;
}

int matrices_square_in(const struct kernel_call *c, unsigned i, struct matrices *m,
		       struct mu_err *err)
{
	MU_RETURN_IF_ERROR(matrices_in(c, i, m, err));
	if (m->rows != m->cols)
		return mu_invalid(err, "Input matrix must be square, not %s",
				  mu_shape_str(&m->t->shape));
	return 0;
}

int matrices_system_in(const struct kernel_call *c, struct matrices *a, struct matrices *b,
		       struct mu_err *err)
{
	MU_RETURN_IF_ERROR(matrices_in(c, 0, a, err));
	MU_RETURN_IF_ERROR(matrices_in(c, 1, b, err));
	if (a->t->shape.rank != b->t->shape.rank ||
	    !mu_shape_part_eq(&a->t->shape, 0, &b->t->shape, 0, a->t->shape.rank - 1))
		return mu_invalid(err, "Input matrix and rhs are incompatible: %s and %s",
				  mu_shape_str(&a->t->shape), mu_shape_str(&b->t->shape));
	return 0;
}

int matrices_out(struct kernel_call *c, unsigned i, enum mu_dtype t, const struct matrices *m,
		 int rank, const int64_t *dims, struct mu_tensor **out, struct mu_err *err)
{
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(
	    mu_shape_splice(&shape, &m->t->shape, m->t->shape.rank - 2, 2, rank, dims, err));
	return kernel_out(c, i, t, &shape, out, err);
}

/* ---- copies ---- */

enum { BLOCK_ROWS = 8, BLOCK_COLUMNS = 64 };

/* Copies a matrix of a tensor to doubles by columns, or back, through blocks that stay in the
 * first-level cache. */
static void copy_columns(bool from_tensor, enum mu_dtype t, char *tensor, int rows, int cols,
			 double *columns)
{
	const int parts = mu_dtype_is_complex(t) ? 2 : 1;
	double block[BLOCK_ROWS][2 * BLOCK_COLUMNS];

	for (int row = 0; row < rows; row += BLOCK_ROWS)
		for (int col = 0; col < cols; col += BLOCK_COLUMNS) {
			int m = mu_min(BLOCK_ROWS, rows - row),
			    n = mu_min(BLOCK_COLUMNS, cols - col);
			char *at = tensor + (size_t)((int64_t)row * cols + col) * mu_dtype_size(t);
			size_t line = (size_t)cols * mu_dtype_size(t);
			for (int i = 0; from_tensor && i < m; i++)
				convert(MU_DOUBLE, block[i], mu_dtype_part(t),
					at + (size_t)i * line, parts * n);
			for (int j = 0; j < n * parts; j++) {
				int64_t first = (int64_t)(col + j / parts) * rows + row;
				double *column = columns + first * parts + j % parts;
				for (int i = 0; i < m; i++)
					if (from_tensor)
						column[i * parts] = block[i][j];
					else
						block[i][j] = column[i * parts];
			}
			for (int i = 0; !from_tensor && i < m; i++)
				convert(mu_dtype_part(t), at + (size_t)i * line, MU_DOUBLE,
					block[i], parts * n);
		}
}

void matrices_get(const struct matrices *m, int64_t k, enum order order, void *to)
{
	enum mu_dtype t = m->t->dtype;
	int64_t elements = (int64_t)m->rows * m->cols;
	char *from = (char *)m->t->data + (size_t)(k * elements) * mu_dtype_size(t);

	if (order == BY_ROWS)
		convert(MU_DOUBLE, to, mu_dtype_part(t), from,
			m->is_complex ? 2 * elements : elements);
	else
		copy_columns(true, t, from, m->rows, m->cols, to);
}

void matrices_put(struct mu_tensor *out, int64_t at, enum order order, int rows, int cols,
		  const void *from)
{
	enum mu_dtype t = out->dtype;
	int64_t elements = (int64_t)rows * cols;
	char *to = (char *)out->data + (size_t)at * mu_dtype_size(t);

	if (order == BY_ROWS)
		convert(mu_dtype_part(t), to, MU_DOUBLE, from,
			mu_dtype_is_complex(t) ? 2 * elements : elements);
	else
		copy_columns(false, t, to, rows, cols, (double *)from);
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
	if (!mu_dtype_is_complex(out->dtype))
		for (int64_t i = 0; i < (int64_t)rows * cols; i++)
			((double *)from)[i] = ((double *)from)[2 * i];
	matrices_put(out, at, order, rows, cols, from);
}

void matrices_put_real(struct mu_tensor *out, int64_t at, int n, const double *from)
{
	for (int i = 0; mu_dtype_is_complex(out->dtype) && i < n; i++)
		matrices_put(out, at + i, BY_ROWS, 1, 1, (double[2]){from[i], 0});
	if (!mu_dtype_is_complex(out->dtype))
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

static void matrices_part(void *arg, int64_t from, int64_t to)
{
	struct matrix_job *j = arg;
	double *work = NULL;

	if (j->lwork < INT64_MAX / 32)
		work = calloc((size_t)j->lwork + 1, 2 * sizeof *work);
	if (!work) {
		atomic_store(&j->no_memory, true);
		return;
	}
	for (int64_t k = from; k < to; k++) {
		int rc = j->one(j, k, work);
		if (rc)
			atomic_store(rc == LAPACK_NO_MEMORY ? &j->no_memory : &j->failed, true);
	}
	free(work);
}

int matrices_run(struct kernel_call *c, struct matrix_job *j, const char *message,
		 struct mu_err *err)
{
	/* the number of matrices that justifies another thread */
	int64_t work = (int64_t)j->a.rows * j->a.cols + 1, grain = 20000 / work + 1;

	if (j->out[0]->shape.count)
		kernel_parallel(c, j->a.n, grain, matrices_part, j);
	if (j->no_memory)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a matrix of shape %s",
			       mu_shape_str(&j->a.t->shape));
	return j->failed ? mu_invalid(err, "%s", message) : 0;
}

bool matrices_error_attr(const struct kernel_call *c)
{
	return args_attr_bool(c->node, SINGULAR_ERROR_ATTR, false);
}
