/* SPDX-License-Identifier: Apache-2.0 */
/* Qr by Householder reflections, one matrix of a batch after the other.  The signs are those that
 * LAPACK and TensorFlow choose: a reflected column ends up with the sign opposite to its first
 * element's.  Worked in double, whatever the type. */
#include <math.h>
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/convert.h"
#include "task/kernels/kernel_table.h"

struct qr {
	int64_t m, n, k; /* k = min(m, n) */
	int64_t cols;    /* of Q: m or k */
	double *a;       /* m x n: R above, reflectors below */
	double *tau, *q; /* q: m x cols */
};

/* Column j below the diagonal becomes a reflector, and the columns behind it are reflected. */
static void reflect(struct qr *w, int64_t j)
{
	double *a = w->a, norm = 0, first = a[j * w->n + j];

	for (int64_t i = j + 1; i < w->m; i++)
		norm += a[i * w->n + j] * a[i * w->n + j];
	w->tau[j] = 0;
	if (norm == 0)
		return;
	double beta = sqrt(first * first + norm);
	if (first >= 0)
		beta = -beta;
	w->tau[j] = (beta - first) / beta;
	for (int64_t i = j + 1; i < w->m; i++)
		a[i * w->n + j] /= first - beta;
	a[j * w->n + j] = beta;
	for (int64_t c = j + 1; c < w->n; c++) {
		double dot = a[j * w->n + c];
		for (int64_t i = j + 1; i < w->m; i++)
			dot += a[i * w->n + j] * a[i * w->n + c];
		dot *= w->tau[j];
		a[j * w->n + c] -= dot;
		for (int64_t i = j + 1; i < w->m; i++)
			a[i * w->n + c] -= dot * a[i * w->n + j];
	}
}

/* Q: the reflectors, last first, on the identity. */
static void make_q(struct qr *w)
{
	memset(w->q, 0, (size_t)(w->m * w->cols) * sizeof *w->q);
	for (int64_t i = 0; i < w->cols; i++)
		w->q[i * w->cols + i] = 1;
	for (int64_t j = w->k; j-- > 0;)
		for (int64_t c = j; c < w->cols; c++) {
			double dot = w->q[j * w->cols + c];
			for (int64_t i = j + 1; i < w->m; i++)
				dot += w->a[i * w->n + j] * w->q[i * w->cols + c];
			dot *= w->tau[j];
			w->q[j * w->cols + c] -= dot;
			for (int64_t i = j + 1; i < w->m; i++)
				w->q[i * w->cols + c] -= dot * w->a[i * w->n + j];
		}
}

static void clear_below(struct qr *w)
{
	for (int64_t i = 1; i < w->m; i++)
		for (int64_t j = 0; j < w->n && j < i; j++)
			w->a[i * w->n + j] = 0;
}

static int outputs(struct kernel_call *c, const struct qr *w, struct mu_tensor **q,
		   struct mu_tensor **r, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t dims[MU_MAX_RANK];
	struct mu_shape s;
	int rank = in->shape.rank, rc;

	memcpy(dims, in->shape.dim, (size_t)rank * sizeof *dims);
	dims[rank - 1] = w->cols;
	if ((rc = mu_shape_set(&s, rank, dims, err)) ||
	    (rc = kernel_out(c, 0, in->dtype, &s, q, err)))
		return rc;
	dims[rank - 2] = w->cols == w->m ? w->m : w->k;
	dims[rank - 1] = w->n;
	if ((rc = mu_shape_set(&s, rank, dims, err)))
		return rc;
	return kernel_out(c, 1, in->dtype, &s, r, err);
}

static int qr(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	size_t size = mu_dtype_size(in->dtype);
	struct mu_tensor *q, *r;
	int rank = in->shape.rank, rc;

	if (in->dtype != MU_FLOAT && in->dtype != MU_DOUBLE)
		return mu_fail(err, MU_UNIMPLEMENTED, "no Qr of %s: float and double only",
			       mu_dtype_name(in->dtype));
	if (rank < 2)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Input tensor must have rank >= 2, got rank %d", rank);
	struct qr w = {.m = in->shape.dim[rank - 2], .n = in->shape.dim[rank - 1]};
	w.k = w.m < w.n ? w.m : w.n;
	w.cols = args_attr_bool(c->node, "full_matrices", false) ? w.m : w.k;
	if ((rc = outputs(c, &w, &q, &r, err)))
		return rc;
	int64_t one = w.m * w.n, batches = one ? in->shape.count / one : 0;
	int64_t r_size = (w.cols == w.m ? w.m : w.k) * w.n, q_size = w.m * w.cols;
	double *room = calloc((size_t)(one + q_size + w.k) + 1, sizeof *room);
	if (!room)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a matrix of shape %s",
			       mu_shape_str(&in->shape));
	w.a = room;
	w.q = room + one;
	w.tau = room + one + q_size;
	for (int64_t b = 0; b < batches; b++) {
		convert(MU_DOUBLE, w.a, in->dtype, (char *)in->data + (size_t)(b * one) * size,
			one);
		for (int64_t j = 0; j < w.k; j++)
			reflect(&w, j);
		make_q(&w);
		clear_below(&w);
		convert(in->dtype, (char *)q->data + (size_t)(b * q_size) * size, MU_DOUBLE, w.q,
			q_size);
		convert(in->dtype, (char *)r->data + (size_t)(b * r_size) * size, MU_DOUBLE, w.a,
			r_size);
	}
	free(room);
	return 0;
}

static const struct kernel rows[] = {
    {"Qr", .flags = KERNEL_EXPENSIVE, .run = qr},
};
KERNEL_TABLE(qr, rows)
