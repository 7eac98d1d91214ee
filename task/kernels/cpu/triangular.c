/* SPDX-License-Identifier: Apache-2.0 */
/* Triangular systems, solved from the end that has one unknown, one matrix of a batch after the
 * other.  What the matrix has on the other side of its diagonal is not looked at.  Worked in
 * double, whatever the type. */
#include <stdlib.h>

#include "task/kernels/args.h"
#include "task/kernels/convert.h"
#include "task/kernels/kernel_table.h"

struct system {
	int64_t n, columns; /* a is n x n, b is n x columns */
	double *a, *b;
	bool lower, adjoint;
};

/* b becomes x of a x = b.  A zero on the diagonal makes infinities, as it does in TensorFlow. */
static void solve(const struct system *s)
{
	bool from_top = s->lower != s->adjoint;

	for (int64_t k = 0; k < s->n; k++) {
		int64_t i = from_top ? k : s->n - 1 - k;
		double *row = s->b + i * s->columns, pivot = s->a[i * s->n + i];

		for (int64_t m = 0; m < k; m++) {
			int64_t j = from_top ? m : s->n - 1 - m; /* solved before */
			double f = s->adjoint ? s->a[j * s->n + i] : s->a[i * s->n + j];

			for (int64_t c = 0; c < s->columns; c++)
				row[c] -= f * s->b[j * s->columns + c];
		}
		for (int64_t c = 0; c < s->columns; c++)
			row[c] /= pivot;
	}
}

static int check(const struct mu_tensor *a, const struct mu_tensor *b, struct mu_err *err)
{
	int rank = a->shape.rank;
	bool fits = rank >= 2 && b->shape.rank == rank &&
		    a->shape.dim[rank - 1] == a->shape.dim[rank - 2] &&
		    a->shape.dim[rank - 1] == b->shape.dim[rank - 2];

	if (a->dtype != MU_FLOAT && a->dtype != MU_DOUBLE)
		return mu_fail(err, MU_UNIMPLEMENTED,
			       "no MatrixTriangularSolve of %s: float and double only",
			       mu_dtype_name(a->dtype));
	for (int i = 0; fits && i < rank - 2; i++)
		fits = a->shape.dim[i] == b->shape.dim[i];
	if (!fits)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "In[0] and In[1] must be batches of as many square matrices and of "
			       "right sides with as many rows, got %s and %s",
			       mu_shape_str(&a->shape), mu_shape_str(&b->shape));
	return 0;
}

static int triangular_solve(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *a = kernel_in(c, 0), *b = kernel_in(c, 1);
	size_t size = mu_dtype_size(a->dtype);
	int rank = a->shape.rank, rc;
	struct mu_tensor *out;

	if ((rc = args_same_type(c, 0, 1, err)) || (rc = check(a, b, err)) ||
	    (rc = kernel_out(c, 0, a->dtype, &b->shape, &out, err)))
		return rc;
	struct system s = {.n = a->shape.dim[rank - 1],
			   .columns = b->shape.dim[rank - 1],
			   .lower = args_attr_bool(c->node, "lower", true),
			   .adjoint = args_attr_bool(c->node, "adjoint", false)};
	int64_t one = s.n * s.n, side = s.n * s.columns;
	double *room = calloc((size_t)(one + side) + 1, sizeof *room);
	if (!room)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a matrix of shape %s",
			       mu_shape_str(&a->shape));
	s.a = room;
	s.b = room + one;
	for (int64_t k = 0; side && k < b->shape.count / side; k++) {
		convert(MU_DOUBLE, s.a, a->dtype, (char *)a->data + (size_t)(k * one) * size, one);
		convert(MU_DOUBLE, s.b, a->dtype, (char *)b->data + (size_t)(k * side) * size,
			side);
		solve(&s);
		convert(a->dtype, (char *)out->data + (size_t)(k * side) * size, MU_DOUBLE, s.b,
			side);
	}
	free(room);
	return 0;
}

static const struct kernel rows[] = {
    {"MatrixTriangularSolve", .flags = KERNEL_EXPENSIVE, .run = triangular_solve},
};
KERNEL_TABLE(triangular, rows)
