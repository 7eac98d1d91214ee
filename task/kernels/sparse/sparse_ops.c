/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on sparse tensors: positions [n, rank], values [n], and the dense shape. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/sparse/sparse.h"

static int bad_position(const struct mu_tensor *indices, int64_t i, const char *why,
			struct mu_err *err)
{
	MU_AUTO_BUF text = {0};
	int64_t rank = indices->shape.rank < 2 ? 1 : indices->shape.dim[1];

	for (int64_t d = 0; d < rank; d++)
		mu_buf_printf(&text, "%s%lld", d ? "," : "",
			      (long long)mu_tensor_int(indices, i * rank + d));
	return mu_invalid(err, "indices[%lld] = [%s] is %s", (long long)i,
			  text.data ? text.data : "", why);
}

/* The element of a dense tensor of this shape at position i; -1 if it is outside. */
static int64_t sparse_element_index(const struct mu_tensor *indices, int64_t i,
				    const struct mu_shape *s)
{
	int64_t at = 0;

	for (int d = 0; d < s->rank; d++) {
		int64_t k = mu_tensor_int(indices, i * s->rank + d);
		if (k < 0 || k >= s->dim[d])
			return -1;
		at = at * s->dim[d] + k;
	}
	return at;
}

/* ---- SparseToDense ---- */

/* indices may be a scalar (one position of a vector), a vector (n positions of a vector) or [n,
 * rank]. */
static int check_positions(const struct kernel_call *c, const struct mu_shape *shape, int64_t *n,
			   struct mu_err *err)
{
	const struct mu_shape *is = &kernel_in(c, 0)->shape, *vs = &kernel_in(c, 2)->shape;
	int64_t rank = is->rank < 2 ? 1 : is->dim[1];

	if (is->rank > 2)
		return mu_invalid(
		    err, "sparse_indices should be a scalar, vector, or matrix, got shape %s",
		    mu_shape_str(is));
	*n = is->rank ? is->dim[0] : 1;
	if (rank != shape->rank)
		return mu_invalid(
		    err, "output_shape has incorrect number of elements: %d should be: %lld",
		    shape->rank, (long long)rank);
	if (vs->rank > 1 || (vs->rank == 1 && vs->count != *n))
		return mu_invalid(err,
				  "sparse_values has incorrect shape %s, should be [] or [%lld]",
				  mu_shape_str(vs), (long long)*n);
	return 0;
}

static int out_of_bounds(const struct mu_tensor *indices, int64_t i, const struct mu_shape *shape,
			 bool check, struct mu_err *err)
{
	int64_t position[MU_MAX_RANK];

	if (!check)
		return mu_invalid(err, "Indices are not valid (out of bounds).  Shape: %s",
				  mu_shape_str(shape));
	for (int d = 0; d < shape->rank; d++)
		position[d] = mu_tensor_int(indices, i * shape->rank + d);
	return sparse_out_of_bounds(i, position, shape->rank, shape->dim, err);
}

#define OUT_OF_ORDER                                                                               \
	"out of order. Many sparse ops require sorted indices.\n    Use `tf.sparse.reorder` to "   \
	"create a correctly ordered copy.\n\n"

static int sparse_to_dense(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 0), *values = kernel_in(c, 2);
	bool check = args_attr_bool(c->node, "validate_indices", true);
	int64_t n = 0, previous = -1;
	struct mu_shape shape;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(args_shape(c, 1, &shape, err));
	MU_RETURN_IF_ERROR(check_positions(c, &shape, &n, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, values->dtype, &shape, &out, err));
	elems_fill(values->dtype, out->data, 0, kernel_in(c, 3)->data, shape.count);
	for (int64_t i = 0; i < n; i++) {
		int64_t at = sparse_element_index(indices, i, &shape);
		if (at < 0)
			return out_of_bounds(indices, i, &shape, check, err);
		if (check && at <= previous)
			return bad_position(indices, i, at == previous ? "repeated" : OUT_OF_ORDER,
					    err);
		previous = at;
		elems_copy(values->dtype, out->data, at, values->data, values->shape.rank ? i : 0,
			   1);
	}
	return 0;
}

/* ---- SparseReshape ---- */

static int solve_shape(struct kernel_call *c, int64_t total, struct mu_shape *to,
		       struct mu_err *err)
{
	int64_t dim[MU_MAX_RANK], known_count = 1;
	int n, inferred = -1, rc = args_ints(c, 2, dim, MU_MAX_RANK, &n, err);

	if (rc)
		return rc;
	for (int i = 0; i < n; i++) {
		if (dim[i] == -1 && inferred >= 0)
			return mu_invalid(err,
					  "only one output dimension may be -1, not both %d and %d",
					  inferred, i);
		if (dim[i] == -1)
			inferred = i;
		else if (dim[i] < 0 || __builtin_mul_overflow(known_count, dim[i], &known_count))
			return mu_invalid(err, "size %d must be non-negative, not %lld", i,
					  (long long)dim[i]);
	}
	if (inferred >= 0 && (known_count == 0 || total % known_count))
		return mu_invalid(err,
				  "Input to reshape is a SparseTensor with %lld dense values, but "
				  "the requested shape requires a multiple of %lld",
				  (long long)total, (long long)known_count);
	if (inferred >= 0)
		dim[inferred] = total / known_count;
	MU_RETURN_IF_ERROR(mu_shape_set(to, n, dim, err));
	if (to->count != total)
		return mu_invalid(err,
				  "Input to reshape is a tensor with %lld dense values, but the "
				  "requested shape has %lld",
				  (long long)total, (long long)to->count);
	return 0;
}

/* Converts a position in shape `from` to that of the same element in shape `to`. Feature columns
 * use positions outside the shape. TensorFlow does not check them; the arithmetic defines the
 * result. */
static void sparse_reshape_position(const int64_t *at, const struct mu_shape *from, int64_t *out,
				    const struct mu_shape *to)
{
	uint64_t element = 0; /* wraps around */

	for (int d = 0; d < from->rank; d++)
		element = element * (uint64_t)from->dim[d] + (uint64_t)at[d];
	int64_t left = (int64_t)element;
	for (int d = to->rank; d-- > 1; left /= to->dim[d])
		out[d] = left % to->dim[d];
	if (to->rank)
		out[0] = left;
}

static int sparse_reshape(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 0);
	struct mu_shape from, to, shape;
	struct mu_tensor *out, *dims;

	MU_RETURN_IF_ERROR(args_shape(c, 1, &from, err));
	MU_RETURN_IF_ERROR(solve_shape(c, from.count, &to, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, MU_INT64, to.rank, &dims, err));
	memcpy(dims->data, to.dim, (size_t)to.rank * sizeof(int64_t));
	if (mu_shape_eq(&from, &to)) {
		kernel_out_take(c, 0, mu_tensor_ref(indices));
		return 0;
	}
	int64_t n = indices->shape.dim[0], out_dims[] = {n, to.rank};
	if (n && !to.count)
		return bad_position(indices, 0, "out of bounds", err);
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, out_dims, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &shape, &out, err));
	for (int64_t i = 0; i < n; i++)
		sparse_reshape_position(MU_DATA(int64_t, indices) + i * from.rank, &from,
					MU_DATA(int64_t, out) + i * to.rank, &to);
	return 0;
}

/* ---- SparseFillEmptyRows, RaggedFillEmptyRows ---- */

/* Writes the rows in order; an empty row gets the default value in column 0.  at[r] is the number
 * of entries of row r on entry, then the output index of its next entry. */
static int fill_rows(struct kernel_call *c, int64_t rows, int64_t *at, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 0), *values = kernel_in(c, 1);
	int64_t n = indices->shape.dim[0], total = 0;
	int64_t rank = indices->shape.rank == 1 ? 1 : indices->shape.dim[1];
	struct mu_tensor *out, *out_values, *empty, *reverse_index;
	struct mu_shape shape, vec = mu_shape_vec(rows);

	MU_RETURN_IF_ERROR(kernel_out(c, 2, MU_BOOL, &vec, &empty, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 3, MU_INT64, n, &reverse_index, err));
	for (int64_t r = 0; r < rows; r++) {
		int64_t entries = at[r];
		MU_DATA(bool, empty)[r] = !entries;
		at[r] = total;
		total += entries ? entries : 1;
	}
	vec = mu_shape_vec(total);
	MU_RETURN_IF_ERROR(
	    mu_shape_set(&shape, indices->shape.rank, (int64_t[]){total, rank}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_INT64, &shape, &out, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, values->dtype, &vec, &out_values, err));
	for (int64_t r = 0; r < rows; r++) {
		if (!MU_DATA(bool, empty)[r])
			continue;
		elems_zero(MU_INT64, out->data, at[r] * rank, rank);
		MU_DATA(int64_t, out)[at[r] * rank] = r;
		elems_copy(values->dtype, out_values->data, at[r], kernel_in(c, 3)->data, 0, 1);
	}
	for (int64_t i = 0; i < n; i++) {
		int64_t to = at[MU_DATA(int64_t, indices)[i * rank]]++;
		elems_copy(MU_INT64, out->data, to * rank, indices->data, i * rank, rank);
		elems_copy(values->dtype, out_values->data, to, values->data, i, 1);
		MU_DATA(int64_t, reverse_index)[i] = to;
	}
	return 0;
}

/* Input 0 has `rank` coordinates for each value; the first is the row. */
static int fill_empty_rows(struct kernel_call *c, int64_t rows, int64_t rank, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 0);
	MU_AUTO_FREE int64_t *at = (uint64_t)rows < mu_tensor_limit / sizeof *at
				       ? calloc((size_t)rows + 1, sizeof *at)
				       : NULL;

	if (!at)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld rows",
			       (long long)rows);
	for (int64_t i = 0; i < indices->shape.dim[0]; i++) {
		int64_t r = MU_DATA(int64_t, indices)[i * rank];
		if (r < 0 || r >= rows)
			return mu_invalid(err, "indices(%lld, 0) is invalid: %lld >= %lld",
					  (long long)i, (long long)r, (long long)rows);
		at[r]++;
	}
	return fill_rows(c, rows, at, err);
}

static int sparse_fill_empty_rows(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(args_shape(c, 2, &shape, err));
	if (shape.rank < 1)
		return mu_invalid(err, "Dense shape cannot be empty.");
	return fill_empty_rows(c, shape.dim[0], shape.rank, err);
}

static int ragged_fill_empty_rows(struct kernel_call *c, struct mu_err *err)
{
	int64_t rows = *MU_DATA(int64_t, kernel_in(c, 2));

	if (rows < 0)
		return mu_invalid(err, "Expected shape dimensions to be non-negative, got %lld",
				  (long long)rows);
	return fill_empty_rows(c, rows, 1, err);
}

static const struct kernel rows[] = {
    {"SparseToDense", .run = sparse_to_dense},
    {"SparseReshape", .run = sparse_reshape},
    {"SparseFillEmptyRows", .run = sparse_fill_empty_rows},
    {"RaggedFillEmptyRows", .run = ragged_fill_empty_rows},
};
KERNEL_TABLE(sparse_sparse_ops, rows)
