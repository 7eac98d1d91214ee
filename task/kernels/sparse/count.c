/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of the values in each row of a dense, sparse or ragged tensor, as a sparse tensor.
 *
 * Each value becomes an entry.  The entries are sorted by row and value.  Equal entries form one
 * output element: the sum of their weights, added in input order. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/sparse/count_rows.h"

struct entry {
	int64_t row, value, at; /* at: the position in the input */
};

struct counts {
	const struct mu_tensor *values, *weights; /* weights may be empty: all are 1 */
	int64_t rows;
	bool is_vector; /* the output has no dimension for rows */
	struct entry *entries;
	int64_t n, columns; /* entries; columns of the output */
};

static int count_order(const void *a_, const void *b_)
{
	const struct entry *a = a_, *b = b_;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return a->at < b->at ? -1 : a->at > b->at;
}

static bool is_same_count(const struct entry *a, const struct entry *b)
{
	return a->row == b->row && a->value == b->value;
}

/* Fills and sorts the entries.  row_of(arg, i) returns the row of value i; i rises. */
static int count_collect(const struct kernel_call *c, struct counts *s,
			 int64_t (*row_of)(void *arg, int64_t i), void *arg, struct mu_err *err)
{
	const int64_t n = s->values->shape.count;
	const int64_t max_length = args_attr_int(c->node, "maxlength", -1);
	const int64_t min_length = args_attr_int(c->node, "minlength", -1);
	int64_t largest = 0;

	s->entries = malloc((size_t)(n + 1) * sizeof *s->entries);
	if (!s->entries)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "out of memory to count %lld values",
			       (long long)n);
	for (int64_t i = 0; i < n; i++) {
		const int64_t value = mu_tensor_int(s->values, i);
		if (value < 0)
			return mu_invalid(err, "Input values must all be non-negative");
		int64_t row = row_of(arg, i);
		largest = value > largest ? value : largest;
		if (max_length < 0 || value < max_length)
			s->entries[s->n++] = (struct entry){row, value, i};
	}
	qsort(s->entries, (size_t)s->n, sizeof *s->entries, count_order);
	const int64_t end = (int64_t)((uint64_t)largest + 1); /* wraps around, as in TensorFlow */
	s->columns = max_length >= 0 ? max_length : end > min_length ? end : min_length;
	return 0;
}

/* Adds the weights of equal entries.  With `is_binary` each output element is 1. */
static void count_add_up(const struct counts *s, bool is_binary, struct mu_tensor *out)
{
	const enum mu_dtype t = out->dtype;
	const size_t size = mu_dtype_size(t);
	const int64_t one = 1;
	uint64_t unit = 0;
	char *to = (char *)out->data - size;

	convert(t, &unit, MU_INT64, &one, 1);
	for (int64_t i = 0; i < s->n; i++) {
		const bool is_first = !i || !is_same_count(&s->entries[i], &s->entries[i - 1]);
		const char *weight =
		    is_binary || !s->weights->shape.count
			? (const char *)&unit
			: (const char *)s->weights->data + (size_t)s->entries[i].at * size;
		if (is_first)
			memcpy(to += size, weight, size);
		else if (!is_binary)
			loops->binary[BIN_AddV2][t](to, to, weight, 1, BOTH_RUN);
	}
}

static int count_output(struct kernel_call *c, const struct counts *s, struct mu_err *err)
{
	const int rank = s->is_vector ? 1 : 2;
	struct mu_tensor *indices, *values, *shape;
	int64_t n = 0;

	for (int64_t i = 0; i < s->n; i++)
		n += !i || !is_same_count(&s->entries[i], &s->entries[i - 1]);
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, MU_INT64, 2, (int64_t[]){n, rank}, &indices, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 1, s->weights->dtype, n, &values, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 2, MU_INT64, rank, &shape, err));
	int64_t *at = MU_DATA(int64_t, indices);
	for (int64_t i = 0; i < s->n; i++) {
		if (i && is_same_count(&s->entries[i], &s->entries[i - 1]))
			continue;
		if (!s->is_vector)
			*at++ = s->entries[i].row;
		*at++ = s->entries[i].value;
	}
	if (!s->is_vector)
		MU_DATA(int64_t, shape)[0] = s->rows;
	MU_DATA(int64_t, shape)[rank - 1] = s->columns;
	count_add_up(s, args_attr_bool(c->node, "binary_output", false), values);
	return 0;
}

static int count_run(struct kernel_call *c, struct counts *s,
		     int64_t (*row_of)(void *arg, int64_t i), void *arg, struct mu_err *err)
{
	int rc = count_collect(c, s, row_of, arg, err);

	if (!rc)
		rc = count_output(c, s, err);
	free(s->entries);
	return rc;
}

static int check_weights(const struct counts *s, const char *name, struct mu_err *err)
{
	if (!s->weights->shape.count || mu_shape_eq(&s->weights->shape, &s->values->shape))
		return 0;
	return mu_invalid(
	    err, "Weights and %s must have the same shape. Weight shape: %s; %s shape: %s", name,
	    mu_shape_str(&s->weights->shape), name, mu_shape_str(&s->values->shape));
}

/* ---- dense: values, weights ---- */

static int64_t row_of_dense(void *width, int64_t i)
{
	return i / *(int64_t *)width;
}

static int dense_counts(struct kernel_call *c, struct mu_err *err)
{
	struct counts s = {.values = kernel_in(c, 0), .weights = kernel_in(c, 1), .rows = 1};
	const struct mu_shape *in = &s.values->shape;

	if (in->rank != 1 && in->rank != 2)
		return mu_invalid(err, "Input must be a 1 or 2-dimensional tensor. Got: %s",
				  mu_shape_str(in));
	MU_RETURN_IF_ERROR(check_weights(&s, "data", err));
	s.is_vector = in->rank == 1;
	if (!s.is_vector && !(s.rows = in->dim[0]))
		return mu_invalid(err, "Invalid input: Shapes dimension cannot be 0.");
	int64_t width = in->dim[in->rank - 1];
	return count_run(c, &s, row_of_dense, &width, err);
}

/* ---- sparse: indices, values, dense_shape, weights ---- */

static int64_t row_of_sparse(void *indices, int64_t i)
{
	const struct mu_tensor *t = indices;
	const int64_t rank = t->shape.dim[1];

	return rank == 1 ? 0 : MU_DATA(int64_t, t)[i * rank];
}

static int check_positions_in_shape(const struct mu_tensor *indices, const struct mu_tensor *shape,
				    struct mu_err *err)
{
	const int64_t rank = indices->shape.dim[1], *dim = MU_DATA(int64_t, shape);

	for (int64_t i = 0; i < indices->shape.count; i++) {
		const int64_t x = MU_DATA(int64_t, indices)[i];
		if (x >= 0 && x < dim[i % rank])
			continue;
		MU_AUTO_BUF dims = {0};
		args_put_numbers(&dims, dim, (int)(rank < MU_MAX_RANK ? rank : MU_MAX_RANK), " ");
		return mu_invalid(
		    err,
		    "Invalid index value at %lld: dimension %lld has value %lld which is not in "
		    "[0, %lld) (as given by dense shape [%.*s])",
		    (long long)(i / rank), (long long)(i % rank), (long long)x,
		    (long long)dim[i % rank], (int)dims.len, dims.data);
	}
	return 0;
}

static int check_sparse(const struct mu_tensor *indices, const struct mu_tensor *values,
			const struct mu_tensor *shape, struct mu_err *err)
{
	if (indices->shape.rank != 2)
		return mu_invalid(err, "Input indices must be a 2-dimensional tensor. Got: %s",
				  mu_shape_str(&indices->shape));
	if (values->shape.rank != 1)
		return mu_invalid(err, "Input values must be a vector. Got: %s",
				  mu_shape_str(&values->shape));
	if (shape->shape.rank != 1)
		return mu_invalid(err, "Input shape must be a vector. Got: %s",
				  mu_shape_str(&shape->shape));
	if (values->shape.count != indices->shape.dim[0])
		return mu_invalid(err,
				  "Number of values must match first dimension of indices.Got "
				  "%lld values, indices shape: %s",
				  (long long)values->shape.count, mu_shape_str(&indices->shape));
	if (shape->shape.count != indices->shape.dim[1])
		return mu_invalid(err,
				  "Number of dimensions must match second dimension of indices.Got "
				  "%lld dimensions, indices shape: %s",
				  (long long)shape->shape.count, mu_shape_str(&indices->shape));
	if (!shape->shape.count)
		return mu_invalid(err, "The shape argument requires at least one element.");
	return 0;
}

static int sparse_counts(struct kernel_call *c, struct mu_err *err)
{
	struct mu_tensor indices = *kernel_in(c, 0);
	const struct mu_tensor *shape = kernel_in(c, 2);
	struct counts s = {.values = kernel_in(c, 1), .weights = kernel_in(c, 3), .rows = 1};

	MU_RETURN_IF_ERROR(check_sparse(&indices, s.values, shape, err));
	MU_RETURN_IF_ERROR(check_weights(&s, "values", err));
	MU_RETURN_IF_ERROR(check_positions_in_shape(&indices, shape, err));
	s.is_vector = shape->shape.count == 1;
	if (!s.is_vector)
		s.rows = MU_DATA(int64_t, shape)[0];
	if ((int32_t)s.rows <= 0) /* TensorFlow counts the rows in 32 bits */
		return mu_invalid(err, "Cannot allocate %d batches, is the dense shape too wide?",
				  (int32_t)s.rows);
	return count_run(c, &s, row_of_sparse, &indices, err);
}

/* ---- ragged: splits, values, weights ---- */

static int64_t row_of_split(void *rows, int64_t i)
{
	return ragged_row_next(rows, i);
}

static int ragged_counts(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *splits = kernel_in(c, 0);
	struct counts s = {.values = kernel_in(c, 1), .weights = kernel_in(c, 2)};

	MU_RETURN_IF_ERROR(check_weights(&s, "values", err));
	if (splits->shape.count < 2)
		return mu_invalid(err, "Must provide at least 2 elements for the splits argument");
	MU_RETURN_IF_ERROR(check_ragged_rows(splits, s.values->shape.count, err));
	s.rows = splits->shape.count - 1;
	struct ragged_rows rows = {.splits = MU_DATA(int64_t, splits)};
	return count_run(c, &s, row_of_split, &rows, err);
}

static const struct kernel rows[] = {
    {"DenseCountSparseOutput", KERNEL_EXPENSIVE, .run = dense_counts},
    {"RaggedCountSparseOutput", KERNEL_EXPENSIVE, .run = ragged_counts},
    {"SparseCountSparseOutput", KERNEL_EXPENSIVE, .run = sparse_counts},
};
KERNEL_TABLE(sparse_count, rows)
