/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter, ScatterNd, TensorScatter and UnsortedSegment ops on a GPU.  All sort the updates by the
 * row that they change (array/scatter.cu.h). */
#include <float.h>
#include <stdio.h>
#include <string.h>

#include "lib/tensor/half.h"
#include "task/kernels/array/checks.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/gpu_runs.h"
#include "task/kernels/state/variables.h"

/* The operation of an op, by the end of its name. */
static const struct mode {
	const char *ending, *kernel;
	int64_t int_identity;  /* the value of an empty segment */
	double float_identity; /* of Max and Min: the factor of the largest finite value */
} modes[] = {
    {"Update", "update", 0, 0},    {"ScatterNd", "add", 0, 0},
    {"Add", "add", 0, 0},          {"Sum", "add", 0, 0},
    {"Sub", "sub", 0, 0},          {"Mul", "mul", 0, 0},
    {"Prod", "mul", 1, 1},         {"Div", "div", 0, 0},
    {"Max", "max", INT64_MIN, -1}, /* the smallest value */
    {"Min", "min", INT64_MAX, +1},
};

static const struct mode *mode_of(const char *op)
{
	const struct mode *mode = modes;

	while (!mu_ends_with(op, mode->ending))
		mode++;
	return mode;
}

/* The bits of the value of an empty segment. */
static uint64_t empty_segment_bits(enum mu_dtype t, const struct mode *mode)
{
	double largest = t == MU_DOUBLE     ? DBL_MAX
			 : t == MU_HALF     ? (double)HALF_MAX
			 : t == MU_BFLOAT16 ? (double)BFLOAT16_MAX
					    : (double)FLT_MAX;
	bool is_extremum = mode->int_identity == INT64_MIN || mode->int_identity == INT64_MAX;
	double v = mode->float_identity * (is_extremum ? largest : 1);
	float f = (float)v; /* converted to the 16-bit types */
	uint64_t bits = 0;

	if (t == MU_INT64)
		return (uint64_t)mode->int_identity;
	if (t == MU_DOUBLE)
		memcpy(&bits, &v, sizeof v);
	else
		convert(t, &bits, MU_FLOAT, &f, 1);
	return bits;
}

/* table[positions] op= updates, for n positions of `depth` numbers and slices of `row` elements. */
static int scatter_gpu_put(struct kernel_call *c, const struct mu_tensor *table,
			   const struct mu_tensor *indices, const struct mu_tensor *updates,
			   int64_t n, int depth, int64_t row, struct mu_err *err)
{
	char kernel[32];
	struct scatter_args a = {.table = gpu_address(table),
				 .updates = gpu_address(updates),
				 .one = updates->shape.count == 1 && n * row != 1};
	GPU_RUNS_AUTO runs = {0};

	if (!n || !row || !table->shape.count)
		return 0;
	snprintf(kernel, sizeof kernel, "scatter_%s", mode_of(c->node->op)->kernel);
	MU_RETURN_IF_ERROR(
	    gpu_runs_make(c, indices, n, &table->shape, depth, row, &runs, &a.by, err));
	return gpu_run_type(kernel_gpu(c), kernel, table->dtype, n * row, &a, err);
}

/* ---- Scatter, UnsortedSegment ---- */

static int scatter_rows_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 1), *updates = kernel_in(c, 2);
	VARIABLES_AUTO vs = {0};
	int64_t row;

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	MU_RETURN_IF_ERROR(check_scatter(vs.t[0], &indices->shape, updates, &row, err));
	MU_RETURN_IF_ERROR(
	    scatter_gpu_put(c, vs.t[0], indices, updates, indices->shape.count, 1, row, err));
	variable_forward(c);
	return 0;
}

static int unsorted_segment_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0), *ids = kernel_in(c, 1);
	struct fill_args f = {.value = empty_segment_bits(data->dtype, mode_of(c->node->op))};
	struct mu_shape shape;
	int64_t row;

	MU_RETURN_IF_ERROR(check_unsorted_segment(c, &shape, &row, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, data->dtype, &shape, &f.out, err));
	f.n = shape.count;
	MU_RETURN_IF_ERROR(gpu_run_width(kernel_gpu(c), "fill", data->dtype, f.n, &f, err));
	return scatter_gpu_put(c, &c->out[0].tensor, ids, data, ids->shape.count, 1, row, err);
}

/* ---- ScatterNd, TensorScatter ---- */

/* Applies the updates, input `in` + 1, at the indices, input `in`.  Both have been checked. */
static int put_slices(struct kernel_call *c, unsigned in, const struct mu_tensor *table, int depth,
		      struct mu_err *err)
{
	const struct mu_shape *is = &kernel_in(c, in)->shape;
	int64_t row = mu_shape_product(&table->shape, depth, table->shape.rank);
	int64_t n = mu_shape_product(is, 0, is->rank - 1);

	return scatter_gpu_put(c, table, kernel_in(c, in), kernel_in(c, in + 1), n, depth, row,
			       err);
}

static int scatter_nd_zeros_gpu(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 1)->dtype;
	struct mu_tensor *out = &c->out[0].tensor;
	struct mu_shape shape;
	uint64_t at;
	int depth;

	MU_RETURN_IF_ERROR(args_shape(c, 2, &shape, err));
	MU_RETURN_IF_ERROR(check_scatter_nd(c, 0, &shape, t, &depth, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, t, &shape, &at, err));
	MU_RETURN_IF_ERROR(gpu_fill(kernel_gpu(c), out, 0, err));
	return put_slices(c, 0, out, depth, err);
}

static int scatter_nd_copy_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor in = *kernel_in(c, 0); /* the output may reuse its memory */
	struct mu_tensor *out = &c->out[0].tensor;
	uint64_t at;
	int depth;

	MU_RETURN_IF_ERROR(check_scatter_nd(c, 1, &in.shape, in.dtype, &depth, err));
	MU_RETURN_IF_ERROR(gpu_out_reuse(c, 0, 0, in.dtype, &in.shape, &at, err));
	if (out->data != in.data)
		MU_RETURN_IF_ERROR(gpu_copy_within(kernel_gpu(c), at, gpu_address(&in),
						   mu_tensor_bytes(out), err));
	return put_slices(c, 1, out, depth, err);
}

static int scatter_nd_variable_gpu(struct kernel_call *c, struct mu_err *err)
{
	VARIABLES_AUTO vs = {0};
	int depth;

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	MU_RETURN_IF_ERROR(check_scatter_nd(c, 1, &vs.t[0]->shape, vs.t[0]->dtype, &depth, err));
	MU_RETURN_IF_ERROR(put_slices(c, 1, vs.t[0], depth, err));
	variable_forward(c);
	return 0;
}

/* at: the input with the indices; host: a bit for each input that the host reads. */
#define ROW(ops, fn, attr, set, at, host)                                                          \
	GPU_ROW(ops, fn, attr, set, .device_in = 1 << (at), .host_in = host)
static const struct device_kernel rows[] = {
    ROW("ScatterUpdate ScatterAdd ScatterSub ScatterMul ScatterDiv ScatterMax ScatterMin",
	scatter_rows_gpu, "T", GPU_FLT, 1, 0),
    ROW("ResourceScatterUpdate ResourceScatterAdd ResourceScatterSub ResourceScatterMul "
	"ResourceScatterDiv ResourceScatterMax ResourceScatterMin",
	scatter_rows_gpu, "dtype", GPU_FLT, 1, 0),
    ROW("UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMax UnsortedSegmentMin",
	unsorted_segment_gpu, "T", GPU_NUM, 1, 1 << 2),
    ROW("ScatterNdUpdate ScatterNdAdd ScatterNdSub ScatterNdMax ScatterNdMin "
	"ResourceScatterNdUpdate ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMax "
	"ResourceScatterNdMin",
	scatter_nd_variable_gpu, "T", GPU_FLT, 1, 0),
    ROW("TensorScatterUpdate TensorScatterAdd TensorScatterSub TensorScatterMax TensorScatterMin "
	"ScatterNdNonAliasingAdd",
	scatter_nd_copy_gpu, "T", GPU_NUM, 1, 0),
    ROW("ScatterNd", scatter_nd_zeros_gpu, "T", GPU_NUM, 0, 1 << 2),
};
KERNEL_TABLE(array_scatter_gpu, rows)
