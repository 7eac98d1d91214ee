/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/matrix/matrices.h"

#include <complex.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/convert.h"
#include "task/kernels/loops/loops.h"

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
	*m = (struct matrices){t, t->shape.dim[rank - 2], t->shape.dim[rank - 1], 1};
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

const struct matrix_ops *matrices_ops(const struct matrices *m)
{
	return loops->matrix[matrices_complex(m->t->dtype)];
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

void matrices_get(const struct matrices *m, int64_t k, void *to)
{
	int64_t n = m->rows * m->cols;
	enum mu_dtype t = m->t->dtype;
	bool pairs = matrices_complex(t);
	const char *from = (const char *)m->t->data + (size_t)(k * n) * mu_dtype_size(t);

	convert(MU_DOUBLE, to, t == MU_FLOAT || t == MU_COMPLEX64 ? MU_FLOAT : MU_DOUBLE, from,
		pairs ? 2 * n : n);
}

void matrices_put(struct mu_tensor *out, int64_t at, const void *from, int64_t n)
{
	enum mu_dtype t = out->dtype;

	convert(t == MU_FLOAT || t == MU_COMPLEX64 ? MU_FLOAT : MU_DOUBLE,
		(char *)out->data + (size_t)at * mu_dtype_size(t), MU_DOUBLE, from,
		matrices_complex(t) ? 2 * n : n);
}

void matrices_put_complex(struct mu_tensor *out, int64_t at, const void *from, int64_t n)
{
	if (matrices_complex(out->dtype)) {
		matrices_put(out, at, from, n);
		return;
	}
	for (int64_t i = 0; i < n; i++)
		matrices_put(out, at + i, &(double){creal(((const double _Complex *)from)[i])}, 1);
}

static void some(void *arg, int64_t from, int64_t to)
{
	struct matrix_job *j = arg;
	double *room = NULL;

	if (j->room < INT64_MAX / 32)
		room = calloc((size_t)j->room + 1, 2 * sizeof *room);
	if (!room) {
		atomic_store(&j->starved, true);
		return;
	}
	for (int64_t k = from; k < to; k++)
		if (!j->one(j, k, room))
			atomic_store(&j->failed, true);
	free(room);
}

int matrices_run(struct kernel_call *c, struct matrix_job *j, const char *why, struct mu_err *err)
{
	/* as many as make it worth another thread */
	int64_t work = j->a.rows * j->a.cols + 1, grain = 20000 / work + 1;

	kernel_parallel(c, j->a.n, grain, some, j);
	if (j->starved)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a matrix of shape %s",
			       mu_shape_str(&j->a.t->shape));
	return j->failed ? mu_fail(err, MU_INVALID_ARGUMENT, "%s", why) : 0;
}
