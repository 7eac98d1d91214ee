/* SPDX-License-Identifier: Apache-2.0 */
/* Datasets that build sparse tensors (batches of rows of any length) or return a sparse tensor's
 * rows. */
#include <string.h>

#include "task/kernels/data/dataset.h"
#include "task/kernels/data/serializer.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/variant.h"

/* ---- batches: elements of one rank become rows of a sparse tensor, as three variants ---- */

enum { SIZE, ROW_SHAPE, BATCH_PARAMS };

static int check_batch(struct dataset *d, struct mu_err *err)
{
	const struct mu_tensor *size = &d->params[SIZE], *row = &d->params[ROW_SHAPE];

	if (d->n_params != BATCH_PARAMS || d->in[0]->n_out != 1 || d->n_out != 1)
		return mu_invalid(
		    err, "a sparse batch has one component, a size and the shape of a row");
	if (size->dtype != MU_INT64 || size->shape.count != 1 || mu_tensor_int(size, 0) < 1)
		return mu_invalid(err, "Batch size must be greater than zero.");
	if (row->dtype != MU_INT64 || row->shape.rank != 1 || row->shape.count >= MU_MAX_RANK)
		return mu_invalid(err, "row_shape must be a vector of int64, not %s of shape %s",
				  mu_dtype_name(row->dtype), mu_shape_str(&row->shape));
	return 0;
}

/* Checks that row i has the type of row 0 and is not larger than row_shape. */
static int check_row(const struct dataset *d, const struct mu_tensor *rows, int64_t i,
		     struct mu_err *err)
{
	const struct mu_tensor *want = &d->params[ROW_SHAPE];
	const struct mu_shape *s = &rows[i].shape;

	if (s->rank != want->shape.count || rows[i].dtype != rows[0].dtype)
		return mu_invalid(err,
				  "Input element had shape (%s) that is incompatible with the row "
				  "shape of rank %lld",
				  mu_shape_str(s), (long long)want->shape.count);
	for (int x = 0; x < s->rank; x++)
		if (MU_DATA(int64_t, want)[x] >= 0 && s->dim[x] > MU_DATA(int64_t, want)[x])
			return mu_fail(
			    err, MU_DATA_LOSS,
			    "Input element had shape (%s) that is larger than the row shape",
			    mu_shape_str(s));
	return 0;
}

/* Computes the dense shape of a batch and its number of values.  A -1 in row_shape becomes the
 * largest size of the rows in that dimension. */
static int batch_dense_shape(const struct dataset *d, const struct mu_tensor *rows, int64_t n,
			     int64_t *dims, int64_t *values, struct mu_err *err)
{
	const struct mu_tensor *want = &d->params[ROW_SHAPE];

	dims[0] = n;
	*values = 0;
	for (int x = 0; x < want->shape.count; x++) {
		int64_t dim = MU_DATA(int64_t, want)[x], max_dim = 0;
		for (int64_t i = 0; i < n; i++)
			max_dim = rows[i].shape.dim[x] > max_dim ? rows[i].shape.dim[x] : max_dim;
		dims[1 + x] = dim < 0 ? max_dim : dim;
	}
	for (int64_t i = 0; i < n; i++)
		if (__builtin_add_overflow(*values, rows[i].shape.count, values))
			return mu_fail(err, MU_RESOURCE_EXHAUSTED, "too many values in a batch");
	return 0;
}

enum { INDICES, VALUES, DENSE_SHAPE, PARTS };

static int new_parts(struct mu_tensor *part, int rank, int64_t values, enum mu_dtype t,
		     struct mu_err *err)
{
	struct mu_shape flat = mu_shape_vec(values), dense_shape = mu_shape_vec(rank), indices;

	MU_RETURN_IF_ERROR(mu_shape_set(&indices, 2, (int64_t[]){values, rank}, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&part[INDICES], MU_INT64, &indices, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&part[VALUES], t, &flat, err));
	return mu_tensor_new(&part[DENSE_SHAPE], MU_INT64, &dense_shape, err);
}

/* Fills indices and values with the elements of the rows. */
static void fill_sparse(struct mu_tensor *part, const struct mu_tensor *rows, int64_t n)
{
	int rank = (int)part[DENSE_SHAPE].shape.count;
	int64_t *at = part[INDICES].data, filled = 0;

	for (int64_t i = 0; i < n; i++) {
		const struct mu_shape *s = &rows[i].shape;
		elems_copy(rows[i].dtype, part[VALUES].data, filled, rows[i].data, 0, s->count);
		filled += s->count;
		for (int64_t e = 0; e < s->count; e++, at += rank) {
			int64_t left = e;
			at[0] = i;
			for (int x = s->rank - 1; x >= 0; left /= s->dim[x], x--)
				at[1 + x] = left % s->dim[x];
		}
	}
}

static int join_rows(const struct dataset *d, const struct mu_tensor *rows, int64_t n,
		     struct mu_tensor *out, struct mu_err *err)
{
	struct mu_tensor part[PARTS] = {0};
	struct mu_shape three = mu_shape_vec(PARTS);
	int64_t dims[MU_MAX_RANK], values;
	int rc;

	MU_RETURN_IF_ERROR(batch_dense_shape(d, rows, n, dims, &values, err));
	if (!(rc = new_parts(part, 1 + (int)d->params[ROW_SHAPE].shape.count, values, rows[0].dtype,
			     err)) &&
	    !(rc = mu_tensor_new(out, MU_VARIANT, &three, err))) {
		fill_sparse(part, rows, n);
		memcpy(part[DENSE_SHAPE].data, dims,
		       (size_t)part[DENSE_SHAPE].shape.count * sizeof *dims);
		for (unsigned i = 0; i < PARTS; i++)
			MU_DATA(struct mu_object *, out)[i] = variant_box(&part[i]);
	}
	element_drop(part, PARTS);
	return rc;
}

static int sparse_batch_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	int64_t want = mu_tensor_int(&it->d->params[SIZE], 0), n = 0, cap = 0;
	struct mu_tensor *rows = NULL;
	int rc = 1;

	while (n < want) {
		if (n == cap) {
			cap = cap ? 2 * cap : 16;
			rows = mu_xrealloc(rows, (size_t)cap * sizeof *rows);
		}
		rows[n] = (struct mu_tensor){0};
		if ((rc = dataset_iterator_next(it->input, &rows[n], err)) <= 0)
			break;
		if ((rc = check_row(it->d, rows, n++, err)))
			break;
		rc = 1;
	}
	if (rc >= 0)
		rc = n ? join_rows(it->d, rows, n, out, err) : 0;
	bool has_batch = n && !rc;
	for (int64_t i = 0; i < n; i++)
		mu_tensor_unref(&rows[i]);
	free(rows);
	return has_batch ? 1 : rc;
}

/* A negative n (unknown or infinite) does not change. */
static int64_t sparse_batch_cardinality(const struct dataset *d, int64_t n)
{
	int64_t size = mu_tensor_int(&d->params[SIZE], 0);

	return n < 0 ? n : n / size + (n % size != 0);
}

/* ---- slices: each row of a sparse tensor as a sparse tensor ---- */

struct rows {
	int64_t row, entry;
};

static int check_rows(struct dataset *d, struct mu_err *err)
{
	const struct mu_tensor *p = d->params;

	d->n_out = PARTS;
	if (d->n_params != PARTS || p[INDICES].dtype != MU_INT64 ||
	    p[DENSE_SHAPE].dtype != MU_INT64 || p[INDICES].shape.rank != 2 ||
	    p[VALUES].shape.rank != 1 || p[DENSE_SHAPE].shape.rank != 1 ||
	    p[DENSE_SHAPE].shape.count < 1 || p[DENSE_SHAPE].shape.count > MU_MAX_RANK ||
	    p[INDICES].shape.dim[0] != p[VALUES].shape.count ||
	    p[INDICES].shape.dim[1] != p[DENSE_SHAPE].shape.count)
		return mu_invalid(err, "positions, values and a shape that do not fit: %s, %s, %s",
				  mu_shape_str(&p[INDICES].shape), mu_shape_str(&p[VALUES].shape),
				  mu_shape_str(&p[DENSE_SHAPE].shape));
	int64_t last = 0, width = p[DENSE_SHAPE].shape.count;
	for (int64_t i = 0; i < p[VALUES].shape.count; i++) {
		int64_t row = MU_DATA(int64_t, &p[INDICES])[i * width];
		if (row < last)
			return mu_fail(err, MU_UNIMPLEMENTED,
				       "The SparseTensor must be ordered in the batch dimension; "
				       "handling arbitrarily ordered input is not currently "
				       "supported.");
		if (row >= MU_DATA(int64_t, &p[DENSE_SHAPE])[0])
			return mu_invalid(err, "position %lld is of row %lld, the shape has %lld",
					  (long long)i, (long long)row,
					  (long long)MU_DATA(int64_t, &p[DENSE_SHAPE])[0]);
		last = row;
	}
	return 0;
}

static int row_next(struct dataset_iterator *it, struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_tensor *p = it->d->params;
	int rank = (int)p[DENSE_SHAPE].shape.count;
	struct rows *r = it->state;
	int64_t from = r->entry;
	int rc;

	if (r->row >= MU_DATA(int64_t, &p[DENSE_SHAPE])[0])
		return 0;
	while (r->entry < p[VALUES].shape.count &&
	       MU_DATA(int64_t, &p[INDICES])[r->entry * rank] == r->row)
		r->entry++;
	r->row++;
	memset(out, 0, PARTS * sizeof *out);
	if ((rc = new_parts(out, rank - 1, r->entry - from, p[VALUES].dtype, err))) {
		element_drop(out, PARTS);
		return rc;
	}
	for (int64_t i = from; rank > 1 && i < r->entry; i++)
		memcpy(MU_DATA(int64_t, &out[INDICES]) + (i - from) * (rank - 1),
		       MU_DATA(int64_t, &p[INDICES]) + i * rank + 1,
		       (size_t)(rank - 1) * sizeof(int64_t));
	elems_copy(p[VALUES].dtype, out[VALUES].data, 0, p[VALUES].data, from, r->entry - from);
	elems_copy(MU_INT64, out[DENSE_SHAPE].data, 0, p[DENSE_SHAPE].data, 1, rank - 1);
	return 1;
}

static int rows_serialize(struct dataset_iterator *it, struct serializer *ser, struct mu_err *err)
{
	struct rows *r = it->state;

	MU_RETURN_IF_ERROR(serialize_number(ser, &r->row, 0, INT64_MAX - 1, err));
	return serialize_number(ser, &r->entry, 0, it->d->params[VALUES].shape.count, err);
}

static int64_t row_cardinality(const struct dataset *d, int64_t n)
{
	return MU_DATA(int64_t, &d->params[DENSE_SHAPE])[0];
}

#define BATCH                                                                                      \
	.n_in = 1, .check = check_batch, .open = dataset_iterator_open_input,                      \
	.next = sparse_batch_next, .cardinality = sparse_batch_cardinality
static const struct dataset_kind rows[] = {
    {DATASET("DenseToSparseBatchDataset ExperimentalDenseToSparseBatchDataset"), BATCH},
    {DATASET("SparseTensorSliceDataset"), .state_size = sizeof(struct rows), .check = check_rows,
     .next = row_next, .cardinality = row_cardinality, .serialize = rows_serialize},
};
KERNEL_TABLE(data_sparse, rows)
