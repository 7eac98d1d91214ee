/* SPDX-License-Identifier: Apache-2.0 */
/* RaggedTensorToTensor: converts ragged rows to a dense tensor. The default value fills short rows;
 * values outside the requested shape are dropped.
 *
 * A level is given as row splits or as the row number of each value; the first level of row numbers
 * is preceded by the row count. Both are converted to splits first. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

enum { VALUES = 1, DEFAULT, PARTITIONS };

struct levels {
	unsigned n;
	struct mu_tensor splits[MU_MAX_RANK]; /* int64; a level of n rows has n + 1 splits */
};

static void levels_fini(struct levels *l)
{
	for (unsigned i = 0; i < l->n; i++)
		mu_tensor_unref(&l->splits[i]);
}

static int64_t *splits_of(const struct levels *l, unsigned level)
{
	return l->splits[level].data;
}

static int64_t ragged_dense_rows_of(const struct levels *l, unsigned level)
{
	return l->splits[level].shape.count - 1;
}

/* The number of values (or of rows of the next level) in the rows of a level. */
static int64_t values_of(const struct levels *l, unsigned level)
{
	return splits_of(l, level)[ragged_dense_rows_of(l, level)];
}

/* Adds a level of zeros. The number of rows is an input, so it is checked here. */
static int add_level(struct levels *l, int64_t rows, struct mu_err *err)
{
	struct mu_shape s = mu_shape_scalar();

	if (rows < 0 || rows == INT64_MAX)
		return mu_invalid(err, "a level cannot have %lld rows", (long long)rows);
	MU_RETURN_IF_ERROR(mu_shape_push(&s, rows + 1, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&l->splits[l->n], MU_INT64, &s, err));
	elems_zero(MU_INT64, splits_of(l, l->n++), 0, rows + 1);
	return 0;
}

static int add_splits(struct levels *l, const struct mu_tensor *t, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(add_level(l, t->shape.count - 1, err));
	for (int64_t i = 0; i < t->shape.count; i++) {
		int64_t *to = splits_of(l, l->n - 1);
		to[i] = mu_tensor_int(t, i);
		if (i ? to[i] < to[i - 1] : to[i] != 0)
			return mu_invalid(
			    err, "row_splits must begin with 0 and never fall; number %lld is %lld",
			    (long long)i, (long long)to[i]);
	}
	return 0;
}

static int add_row_ids(struct levels *l, const struct mu_tensor *t, int64_t rows,
		       struct mu_err *err)
{
	int64_t last = 0;

	MU_RETURN_IF_ERROR(add_level(l, rows, err));
	int64_t *to = splits_of(l, l->n - 1);
	for (int64_t i = 0; i < t->shape.count; i++) {
		int64_t row = mu_tensor_int(t, i);
		if (row < last || row >= rows)
			return mu_invalid(
			    err,
			    "value_rowids must not fall and be less than %lld; number %lld is %lld",
			    (long long)rows, (long long)i, (long long)row);
		last = row;
		to[row + 1]++;
	}
	for (int64_t row = 0; row < rows; row++)
		to[row + 1] += to[row];
	return 0;
}

static int read_levels(const struct kernel_call *c, struct levels *l, struct mu_err *err)
{
	const struct mu_attr *types = mu_node_attr(c->node, "row_partition_types");
	int64_t rows = -1; /* rows of the next level; -1: unknown */
	int rc = 0;

	if (!types || (int)types->kind != MU_ATTR_LIST + MU_ATTR_STRING ||
	    types->n != c->n_in - PARTITIONS || types->n < 1)
		return mu_invalid(err,
				  "row_partition_types must name each of the partition tensors");
	for (unsigned i = 0; i < types->n && !rc; i++) {
		const struct mu_tensor *t = kernel_in(c, PARTITIONS + i);
		bool is_row_count = mu_span_is(types->ss[i], "FIRST_DIM_SIZE");
		if ((!is_row_count && (rc = args_rank(c, PARTITIONS + i, 1, err))))
			return rc;
		if (l->n == MU_MAX_RANK)
			return mu_invalid(err, "row_partition_types has more than %d levels",
					  MU_MAX_RANK);
		if (is_row_count && !i) {
			MU_RETURN_IF_ERROR(args_int(c, PARTITIONS, &rows, err));
			continue;
		}
		if (mu_span_is(types->ss[i], "ROW_SPLITS"))
			rc = add_splits(l, t, err);
		else if (mu_span_is(types->ss[i], "VALUE_ROWIDS") && rows >= 0)
			rc = add_row_ids(l, t, rows, err);
		else
			return mu_invalid(err, "row_partition_types[%u] cannot be %.*s", i,
					  (int)(types->ss[i].len < 40 ? types->ss[i].len : 40),
					  types->ss[i].data);
		if (rc)
			return rc;
		if (l->n > 1 && ragged_dense_rows_of(l, l->n - 1) != values_of(l, l->n - 2))
			return mu_invalid(err, "a level of %lld rows lies below one of %lld values",
					  (long long)ragged_dense_rows_of(l, l->n - 1),
					  (long long)values_of(l, l->n - 2));
		rows = values_of(l, l->n - 1);
	}
	if (rows != kernel_in(c, VALUES)->shape.dim[0] || !l->n)
		return mu_invalid(err,
				  "the partitions describe %lld values, but values has %lld rows",
				  (long long)rows, (long long)kernel_in(c, VALUES)->shape.dim[0]);
	return 0;
}

static int64_t longest_row(const struct levels *l, unsigned level)
{
	int64_t longest = 0;

	for (int64_t i = 0; i < ragged_dense_rows_of(l, level); i++) {
		int64_t n = splits_of(l, level)[i + 1] - splits_of(l, level)[i];
		longest = n > longest ? n : longest;
	}
	return longest;
}

static int output_shape(const struct kernel_call *c, const struct levels *l, struct mu_shape *out,
			struct mu_err *err)
{
	const struct mu_tensor *requested_shape = kernel_in(c, 0);
	const struct mu_shape *values = &kernel_in(c, VALUES)->shape;
	int rank = (int)l->n + values->rank;

	if (requested_shape->shape.rank
		? requested_shape->shape.rank > 1 || requested_shape->shape.count != rank
		: mu_tensor_int(requested_shape, 0) != -1)
		return mu_invalid(
		    err,
		    "rt_input.shape and shape are incompatible: rt_input.rank = %d but shape is %s",
		    rank, requested_shape->shape.rank ? "of another rank" : "a number");
	*out = mu_shape_scalar();
	for (int d = 0; d < rank; d++) {
		int64_t want = requested_shape->shape.rank ? mu_tensor_int(requested_shape, d) : -1;
		int64_t actual = d == 0           ? ragged_dense_rows_of(l, 0)
				 : d <= (int)l->n ? longest_row(l, (unsigned)d - 1)
						  : values->dim[d - (int)l->n];
		if (want < -1 || (want >= 0 && want != actual && d > (int)l->n))
			return mu_invalid(err,
					  "rt_input.shape and shape are incompatible: "
					  "rt_input.shape[%d] = %lld but shape[%d] = %lld",
					  d, (long long)actual, d, (long long)want);
		MU_RETURN_IF_ERROR(mu_shape_push(out, want >= 0 ? want : actual, err));
	}
	return 0;
}

/* Broadcasts the default value to one row of values. */
static int read_default(const struct kernel_call *c, struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_tensor *default_value = kernel_in(c, DEFAULT),
			       *values = kernel_in(c, VALUES);
	struct mu_shape inner, broadcast;
	struct view v;

	MU_RETURN_IF_ERROR(
	    mu_shape_set(&inner, values->shape.rank - 1, values->shape.dim + 1, err));
	if (broadcast_shape(&default_value->shape, &inner, &broadcast, NULL) ||
	    !mu_shape_eq(&broadcast, &inner))
		return mu_invalid(
		    err,
		    "default_value.shape=%s and rt_input.flat_values.shape=%s are incompatible",
		    mu_shape_str(&default_value->shape), mu_shape_str(&values->shape));
	MU_RETURN_IF_ERROR(mu_tensor_new(out, values->dtype, &inner, err));
	broadcast_view(&v, &default_value->shape, &inner);
	view_read(out->dtype, out->data, default_value->data, &v);
	return 0;
}

/* The position of row v of the values in the output, counted in such rows; -1 if it is outside the
 * output. */
static int64_t ragged_dense_output_row(const struct levels *l, const struct mu_shape *out,
				       int64_t *at, int64_t v)
{
	int64_t row = 0, step = 1;

	for (unsigned i = l->n; i-- > 0; v = at[i]) {
		while (splits_of(l, i)[at[i] + 1] <= v) /* v rises, so rows only advance */
			at[i]++;
		int64_t column = v - splits_of(l, i)[at[i]];
		if (column >= out->dim[i + 1])
			row = -1;
		if (row >= 0)
			row += column * step;
		step *= out->dim[i + 1];
	}
	return row < 0 || v >= out->dim[0] ? -1 : row + v * step;
}

static int ragged_dense_fill(struct kernel_call *c, const struct levels *l, struct mu_err *err)
{
	const struct mu_tensor *values = kernel_in(c, VALUES);
	MU_AUTO_TENSOR default_row = {0};
	int64_t at[MU_MAX_RANK] = {0};
	struct mu_shape shape;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(output_shape(c, l, &shape, err));
	MU_RETURN_IF_ERROR(read_default(c, &default_row, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, values->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	int64_t row_elements = default_row.shape.count;
	for (int64_t i = 0; i < shape.count; i += row_elements)
		elems_copy(out->dtype, out->data, i, default_row.data, 0, row_elements);
	for (int64_t v = 0; v < values->shape.dim[0]; v++) {
		int64_t output_row = ragged_dense_output_row(l, &shape, at, v);
		if (output_row >= 0)
			elems_copy(out->dtype, out->data, output_row * row_elements, values->data,
				   v * row_elements, row_elements);
	}
	return 0;
}

static int ragged_dense_to_dense(struct kernel_call *c, struct mu_err *err)
{
	struct levels l = {0};
	int rc;

	if (kernel_in(c, VALUES)->shape.rank < 1)
		return mu_invalid(err, "values must be at least a vector");
	if (!(rc = read_levels(c, &l, err)))
		rc = ragged_dense_fill(c, &l, err);
	levels_fini(&l);
	return rc;
}

static const struct kernel rows[] = {
    {"RaggedTensorToTensor", .run = ragged_dense_to_dense},
};
KERNEL_TABLE(sparse_ragged_dense, rows)
