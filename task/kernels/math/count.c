/* SPDX-License-Identifier: Apache-2.0 */
/* Bincount, histograms of equal width, and PopulationCount. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/sparse/count_rows.h"

/* ---- Bincount, DenseBincount ---- */

struct bins {
	const struct mu_tensor *values, *weights;
	int64_t columns, n;
	bool binary_output; /* 1 for each value that is present, instead of counts */
};

/* Values, size and weights are inputs in[0] to in[2]. */
static int read_bins(const struct kernel_call *c, const unsigned *in, struct bins *b,
		     struct mu_err *err)
{
	*b = (struct bins){.values = kernel_in(c, in[0]), .weights = kernel_in(c, in[2])};
	MU_RETURN_IF_ERROR(args_int(c, in[1], &b->n, err));
	if (b->n < 0)
		return mu_invalid(err, "size (%lld) must be non-negative", (long long)b->n);
	if (b->weights->shape.count && !mu_shape_eq(&b->weights->shape, &b->values->shape))
		return mu_invalid(
		    err,
		    "`weights` must be the same shape as `arr` or a length-0 `Tensor`, in which "
		    "case it acts as all weights equal to 1. Received %s",
		    mu_shape_str(&b->weights->shape));
	if (!loops->binary[BIN_AddV2][b->weights->dtype])
		return mu_fail(err, MU_UNIMPLEMENTED, "no bins of type %s",
			       mu_dtype_name(b->weights->dtype));
	for (int64_t i = 0; i < b->values->shape.count; i++)
		if (mu_tensor_int(b->values, i) < 0)
			return mu_invalid(err, "Input arr must be non-negative!");
	return 0;
}

/* Adds value i to its bin of the row. */
static void count_one(const struct bins *b, int64_t i, int64_t row, struct mu_tensor *out)
{
	enum mu_dtype t = b->weights->dtype;
	size_t size = mu_dtype_size(t);
	int64_t v = mu_tensor_int(b->values, i), one = 1;
	uint64_t unit = 0;

	if (v >= b->n)
		return;
	convert(t, &unit, MU_INT64, &one, 1);
	char *at = (char *)out->data + (size_t)(row * b->n + v) * size;
	const char *w = b->weights->shape.count && !b->binary_output
			    ? (const char *)b->weights->data + (size_t)i * size
			    : (const char *)&unit;
	if (b->binary_output)
		memcpy(at, w, size);
	else
		loops->binary[BIN_AddV2][t](at, at, w, 1, BOTH_RUN);
}

static int count_bins(struct kernel_call *c, const struct bins *b, const struct mu_shape *shape,
		      struct mu_err *err)
{
	enum mu_dtype t = b->weights->dtype;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, shape, &out, err));
	elems_zero(t, out->data, 0, shape->count);
	for (int64_t i = 0; i < b->values->shape.count; i++)
		count_one(b, i, i / b->columns, out);
	return 0;
}

static int bincount(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;
	struct bins b;

	MU_RETURN_IF_ERROR(read_bins(c, (unsigned[]){0, 1, 2}, &b, err));
	b.columns = b.values->shape.count;
	shape = mu_shape_vec(b.n);
	return count_bins(c, &b, &shape, err);
}

static int dense_bincount(struct kernel_call *c, struct mu_err *err)
{
	const int rank = kernel_in(c, 0)->shape.rank;
	struct mu_shape shape;
	struct bins b;

	MU_RETURN_IF_ERROR(read_bins(c, (unsigned[]){0, 1, 2}, &b, err));
	if (rank > 2)
		return mu_invalid(err, "Shape must be at most rank 2 but is rank %d", rank);
	b.binary_output = args_attr_bool(c->node, "binary_output", false);
	b.columns = rank == 2 ? b.values->shape.dim[1] : b.values->shape.count;
	MU_RETURN_IF_ERROR(
	    mu_shape_splice(&shape, &b.values->shape, rank == 2, rank - (rank == 2), 1, &b.n, err));
	return count_bins(c, &b, &shape, err);
}

/* ---- RaggedBincount: splits, values, size, weights ---- */

static int ragged_bincount(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *splits = kernel_in(c, 0);
	struct bins b = {.values = kernel_in(c, 1),
			 .weights = kernel_in(c, 3),
			 .binary_output = args_attr_bool(c->node, "binary_output", false)};
	struct ragged_rows rows = {.splits = MU_DATA(int64_t, splits)};
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(args_int(c, 2, &b.n, err));
	if (b.n < 0)
		return mu_invalid(err, "size (%lld) must be non-negative", (long long)b.n);
	if (!splits->shape.count)
		return mu_invalid(err, "Splits must be non-empty");
	MU_RETURN_IF_ERROR(check_ragged_rows(splits, b.values->shape.count, err));
	if (b.weights->shape.count && b.weights->shape.count < b.values->shape.count)
		return mu_invalid(err, "weights are %s for values of shape %s",
				  mu_shape_str(&b.weights->shape), mu_shape_str(&b.values->shape));
	MU_RETURN_IF_ERROR(kernel_out_dims(c, 0, b.weights->dtype, 2,
					   (int64_t[]){splits->shape.count - 1, b.n}, &out, err));
	elems_zero(out->dtype, out->data, 0, out->shape.count);
	for (int64_t i = 0; i < b.values->shape.count; i++) {
		if (mu_tensor_int(b.values, i) < 0)
			return mu_invalid(err, "Input must be non-negative");
		count_one(&b, i, ragged_row_next(&rows, i), out);
	}
	return 0;
}

/* ---- SparseBincount: indices, values, shape, size, weights ---- */

static bool entry_is_within(const struct mu_tensor *indices, const int64_t *dims, int rank,
			    int64_t i)
{
	for (int d = 0; d < rank; d++) {
		int64_t x = MU_DATA(int64_t, indices)[i * rank + d];
		if (x < 0 || x >= dims[d])
			return false;
	}
	return true;
}

static int sparse_bincount(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 0), *values = kernel_in(c, 1);
	struct mu_shape shape = mu_shape_scalar();
	int64_t dims[MU_MAX_RANK];
	struct mu_tensor *out;
	struct bins b;
	int rank;

	MU_RETURN_IF_ERROR(args_ints(c, 2, dims, MU_MAX_RANK, &rank, err));
	MU_RETURN_IF_ERROR(read_bins(c, (unsigned[]){1, 3, 4}, &b, err));
	if (rank < 1 || rank > 2 || indices->shape.rank != 2 || indices->shape.dim[1] != rank ||
	    indices->shape.dim[0] != values->shape.count)
		return mu_invalid(
		    err, "positions %s, values %s and a shape of rank %d (of 1 or 2) do not fit",
		    mu_shape_str(&indices->shape), mu_shape_str(&values->shape), rank);
	b.binary_output = args_attr_bool(c->node, "binary_output", false);
	for (int64_t i = 0; i < values->shape.count; i++)
		if (!entry_is_within(indices, dims, rank, i))
			return mu_invalid(err,
					  "Sparse index tuple indices[%lld, :] is out of bounds",
					  (long long)i);
	if (rank == 2)
		MU_RETURN_IF_ERROR(mu_shape_push(&shape, dims[0], err));
	MU_RETURN_IF_ERROR(mu_shape_push(&shape, b.n, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, b.weights->dtype, &shape, &out, err));
	elems_zero(b.weights->dtype, out->data, 0, shape.count);
	for (int64_t i = 0; i < values->shape.count; i++)
		count_one(&b, i, rank == 2 ? MU_DATA(int64_t, indices)[2 * i] : 0, out);
	return 0;
}

/* ---- HistogramFixedWidth ---- */

static int histogram(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *values = kernel_in(c, 0), *range = kernel_in(c, 1);
	enum mu_dtype type = args_attr_type(c->node, "dtype", MU_INT32);
	struct mu_tensor *out;
	int64_t n;

	MU_RETURN_IF_ERROR(args_int(c, 2, &n, err));
	double low = convert_element(range, 0), high = convert_element(range, 1);
	if (!(low < high))
		return mu_invalid(err,
				  "value_range should satisfy value_range[0] < value_range[1], but "
				  "got '[%g, %g]'",
				  low, high);
	if (n <= 0)
		return mu_invalid(err, "nbins should be a positive number, but got '%lld'",
				  (long long)n);
	struct mu_shape shape = mu_shape_vec(n);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &shape, &out, err));
	elems_zero(type, out->data, 0, n);
	double step = (high - low) / (double)n;
	for (int64_t i = 0; i < values->shape.count; i++) {
		double value = convert_element(values, i);
		if (isnan(value) && n > 1)
			return mu_invalid(err, "Histogram values must not contain NaN");
		double at = (fmax(value, low) - low) / step;
		int64_t bin = at < (double)(n - 1) ? (int64_t)at : n - 1;
		if (type == MU_INT64)
			MU_DATA(int64_t, out)[bin]++;
		else
			MU_DATA(int32_t, out)[bin]++;
	}
	return 0;
}

/* ---- PopulationCount ---- */

static int population_count(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	size_t size = mu_dtype_size(in->dtype);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_UINT8, &in->shape, &out, err));
	for (int64_t i = 0; i < in->shape.count; i++) {
		uint64_t bits = 0;
		memcpy(&bits, (const char *)in->data + (size_t)i * size, size);
		MU_DATA(uint8_t, out)[i] = (uint8_t)__builtin_popcountll(bits);
	}
	return 0;
}

static const struct kernel rows[] = {
    {"Bincount", .run = bincount},
    {"DenseBincount", .run = dense_bincount},
    {"RaggedBincount", .run = ragged_bincount},
    {"SparseBincount", .run = sparse_bincount},
    {"HistogramFixedWidth", .run = histogram},
    {"PopulationCount", .run = population_count},
};
KERNEL_TABLE(math_count, rows)
