/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse gradients. Two lists of rows are merged as if both were sorted, and equal rows are summed.
 * The mean of a row is its sum divided by the number of gradients that had the row.
 *
 * Lists need not be sorted, and a gradient may contain a row twice. TensorFlow then keeps both,
 * each with its own mean, and the reader of the gradient adds them. This kernel does the same,
 * because the results of training depend on it. */
#include <string.h>

#include "task/kernels/control/accumulator.h"
#include "task/kernels/control/sum.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"

struct rows {
	size_t n;
	int64_t *index;  /* the row numbers */
	int64_t *counts; /* the numbers of gradients that had the row */
	char *sum;
};

struct sparse {
	struct accumulator a;
	struct mu_shape tail; /* the shape of a row */
	struct rows rows;
};

static struct sparse *sparse_of(struct accumulator *a)
{
	return MU_CONTAINER(a, struct sparse, a);
}

static void rows_free(struct rows *r)
{
	free(r->index);
	free(r->counts);
	free(r->sum);
	*r = (struct rows){0};
}

static struct accumulator *accumulator_sparse_make(void)
{
	return &MU_NEW(struct sparse)->a;
}

static void sparse_free(struct accumulator *a)
{
	rows_free(&sparse_of(a)->rows);
	free(sparse_of(a));
}

/* Checks that a gradient's n dimensions, from `first` on, begin with those of the accumulator. */
static int check_dims(const struct accumulator *a, const char *what, int n, const int64_t *dim,
		      int first, struct mu_err *err)
{
	const struct mu_pshape *want = &a->shape;

	if (n < want->rank)
		return mu_invalid(err, "Shape mismatch: expected %s rank at least %d, got %d", what,
				  want->rank, n);
	for (int d = first; d < want->rank; d++)
		if (want->dim[d] >= 0 && want->dim[d] != dim[d])
			return mu_invalid(err,
					  "Shape mismatch: expected %s dim %d to be %lld, got %lld",
					  what, d, (long long)want->dim[d], (long long)dim[d]);
	return 0;
}

static int check_indices(const struct mu_tensor *indices, int64_t limit, struct mu_err *err)
{
	for (int64_t i = 0; i < indices->shape.count; i++) {
		int64_t k = MU_DATA(int64_t, indices)[i];
		if (limit >= 0 && k >= limit)
			return mu_invalid(err,
					  "Shape mismatch: index of slice %lld exceeded limits of "
					  "shape; index is %lld exceeded %lld",
					  (long long)i, (long long)k, (long long)limit);
		if (k < 0)
			return mu_invalid(err,
					  "Invalid index %lld in the indices of a sparse gradient",
					  (long long)k);
	}
	return 0;
}

static int check_gradient(const struct kernel_call *c, const struct accumulator *a,
			  struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 2), *values = kernel_in(c, 3);
	const struct mu_shape *shape = &values->shape;
	int64_t dense_shape[MU_MAX_RANK];
	int n;

	MU_RETURN_IF_ERROR(args_type(c, 3, a->dtype, err));
	MU_RETURN_IF_ERROR(args_ints(c, 4, dense_shape, MU_MAX_RANK, &n, err));
	if (indices->shape.rank != 1)
		return mu_invalid(err, "Input indices should be vector but received shape: %s",
				  mu_shape_str(&indices->shape));
	if (!shape->rank)
		return mu_invalid(err, "Values cannot be 0-dimensional.");
	if (shape->dim[0] != indices->shape.count)
		return mu_invalid(err, "Expected %lld non-empty input values, got %lld",
				  (long long)indices->shape.count, (long long)shape->dim[0]);
	bool is_known = n && args_attr_bool(c->node, "has_known_shape", true);
	if (is_known)
		MU_RETURN_IF_ERROR(check_dims(a, "shape", n, dense_shape, 0, err));
	MU_RETURN_IF_ERROR(check_dims(a, "values", shape->rank, shape->dim, 1, err));
	for (int d = 1; is_known && d < n; d++)
		if (n != shape->rank || dense_shape[d] != shape->dim[d])
			return mu_invalid(err,
					  "Shape mismatch: rows of shape %s are not those of the "
					  "gradient's shape",
					  mu_shape_str(shape));
	return check_indices(indices,
			     is_known            ? dense_shape[0]
			     : a->shape.rank > 0 ? a->shape.dim[0]
						 : -1,
			     err);
}

static struct rows rows_new(size_t cap, size_t bytes)
{
	struct rows r = {.index = mu_xcalloc(cap + 1, sizeof *r.index),
			 .counts = mu_xcalloc(cap + 1, sizeof *r.counts),
			 .sum = mu_xcalloc(cap + 1, bytes + 1)};
	return r;
}

/* Merges the rows of `old` and of the gradient by row number. */
static struct rows accumulator_sparse_merge(const struct rows *old, const int64_t *index,
					    const char *value, size_t n, enum mu_dtype type,
					    int64_t width)
{
	size_t bytes = (size_t)width * mu_dtype_size(type), i = 0, k = 0;
	struct rows out = rows_new(old->n + n, bytes);

	for (; i < old->n || k < n; out.n++) {
		bool first = i < old->n && (k == n || old->index[i] <= index[k]);
		bool second = k < n && (i == old->n || index[k] <= old->index[i]);
		const char *a = old->sum + i * bytes, *b = value + k * bytes;
		char *sum = out.sum + out.n * bytes;

		out.index[out.n] = first ? old->index[i] : index[k];
		out.counts[out.n] = (first ? old->counts[i] : 0) + second;
		if (first && second)
			sum_binary(BIN_AddV2, type, sum, b, a, width, BOTH_RUN);
		else
			memcpy(sum, first ? a : b, bytes);
		i += first;
		k += second;
	}
	return out;
}

static int accumulator_sparse_add(struct accumulator *a, struct kernel_call *c, struct mu_err *err)
{
	struct sparse *s = sparse_of(a);
	const struct mu_tensor *indices = kernel_in(c, 2), *values = kernel_in(c, 3);
	struct mu_shape tail;

	MU_RETURN_IF_ERROR(check_gradient(c, a, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&tail, values->shape.rank - 1, values->shape.dim + 1, err));
	for (int d = 0; a->count && d < tail.rank && tail.rank == s->tail.rank; d++)
		if (tail.dim[d] != s->tail.dim[d])
			return mu_invalid(err,
					  "Shape mismatch: expected values dim %d to be %lld, got "
					  "%lld",
					  d + 1, (long long)s->tail.dim[d], (long long)tail.dim[d]);
	if (a->count && tail.rank != s->tail.rank)
		return mu_invalid(err, "Shape mismatch: expected values rank %d, got %d",
				  s->tail.rank + 1, tail.rank + 1);
	s->tail = tail;
	struct rows sum =
	    accumulator_sparse_merge(&s->rows, indices->data, values->data,
				     (size_t)indices->shape.count, a->dtype, tail.count);
	rows_free(&s->rows);
	s->rows = sum;
	return 0;
}

/* Divides the sums by the counts. */
static void accumulator_sparse_divide(struct rows *r, enum mu_dtype type, int64_t width)
{
	size_t bytes = (size_t)width * mu_dtype_size(type);
	uint64_t divisor;

	for (size_t i = 0; i < r->n; i++) {
		char *sum = r->sum + i * bytes;
		convert(type, &divisor, MU_INT64, &r->counts[i], 1);
		if (r->counts[i] > 1)
			sum_binary(BIN_Div, type, sum, sum, &divisor, width, RIGHT_SCALAR);
	}
}

static int accumulator_sparse_output(struct accumulator *a, struct kernel_call *c,
				     struct mu_err *err)
{
	struct sparse *s = sparse_of(a);
	struct mu_shape rows = mu_shape_vec((int64_t)s->rows.n), values = rows;
	struct mu_tensor *indices, *sums, *shape;

	MU_RETURN_IF_ERROR(mu_shape_append(&values, s->tail.rank, s->tail.dim, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &rows, &indices, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, a->dtype, &values, &sums, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_INT64, s->tail.rank + 1, &shape, err));
	if (a->mean)
		accumulator_sparse_divide(&s->rows, a->dtype, s->tail.count);
	if (s->rows.n) {
		memcpy(indices->data, s->rows.index, s->rows.n * sizeof *s->rows.index);
		memcpy(sums->data, s->rows.sum,
		       s->rows.n * (size_t)s->tail.count * mu_dtype_size(a->dtype));
	}
	int64_t *dim = MU_DATA(int64_t, shape);
	dim[0] = a->shape.rank > 0 ? a->shape.dim[0] : -1;
	memcpy(dim + 1, s->tail.dim, (size_t)s->tail.rank * sizeof *dim);
	rows_free(&s->rows);
	return 0;
}

const struct accumulator_kind accumulator_sparse = {accumulator_sparse_make, accumulator_sparse_add,
						    accumulator_sparse_output, sparse_free};
