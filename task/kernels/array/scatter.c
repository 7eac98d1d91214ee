/* SPDX-License-Identifier: Apache-2.0 */
/* Scatter ops on rows of variables (reference or resource), and UnsortedSegment ops. */
#include <float.h>

#include "lib/tensor/half.h"
#include "task/kernels/array/checks.h"
#include "task/kernels/array/rows.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/state/variables.h"

enum { OVERWRITE = -1 };

int check_scatter(const struct mu_tensor *table, const struct mu_shape *indices,
		  const struct mu_tensor *updates, int64_t *row, struct mu_err *err)
{
	if (updates->dtype != table->dtype)
		return mu_invalid(err, "updates are %s, the variable is %s",
				  mu_dtype_name(updates->dtype), mu_dtype_name(table->dtype));
	if (updates->shape.rank || !table->shape.rank)
		return rows_check_update_shape(&table->shape, indices, &updates->shape, row, err);
	*row = table->shape.dim[0] ? table->shape.count / table->shape.dim[0] : 0;
	return 0;
}

/* table[indices[i]] op= updates[i]; a scalar update applies to all rows. */
static int scatter_rows(struct mu_tensor *table, const struct mu_tensor *indices,
			const struct mu_tensor *updates, int op, struct mu_err *err)
{
	bool is_scalar = updates->shape.rank == 0;
	int64_t row = 1;

	if (op != OVERWRITE && !loops_binary_known(op, table->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "scatter has no kernel for type %s",
			       mu_dtype_name(table->dtype));
	MU_RETURN_IF_ERROR(check_scatter(table, &indices->shape, updates, &row, err));
	MU_RETURN_IF_ERROR(rows_check(indices, table->shape.dim[0], err));
	size_t size = elems_size(table->dtype);
	for (int64_t i = 0; i < indices->shape.count; i++) {
		int64_t at = mu_tensor_int(indices, i) * row;
		char *to = (char *)table->data + (size_t)at * size;
		const char *from =
		    (const char *)updates->data + (is_scalar ? 0 : (size_t)(i * row) * size);
		if (op != OVERWRITE)
			loops_binary(op, table->dtype, to, to, from, row,
				     is_scalar ? RIGHT_SCALAR : BOTH_RUN);
		else if (is_scalar)
			elems_fill(table->dtype, to, 0, from, row);
		else
			elems_copy(table->dtype, to, 0, from, 0, row);
	}
	return 0;
}

static int scatter(struct kernel_call *c, int op, struct mu_err *err)
{
	VARIABLES_AUTO vs = {0};

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	MU_RETURN_IF_ERROR(scatter_rows(vs.t[0], kernel_in(c, 1), kernel_in(c, 2), op, err));
	variable_forward(c);
	return 0;
}

#define SCATTER(name, op) KERNEL_RUN(name, scatter(c, op, err))
SCATTER(scatter_update, OVERWRITE)
SCATTER(scatter_add, BIN_AddV2)
SCATTER(scatter_sub, BIN_Sub)
SCATTER(scatter_mul, BIN_Mul)

static int scatter_div(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *updates = kernel_in(c, 2);

	/* TensorFlow checks this for handles only */
	if (!c->in[0].ref && convert_any_zero(updates))
		return mu_invalid(err, "updates must not contain 0");
	return scatter(c, BIN_Div, err);
}

SCATTER(scatter_max, BIN_Maximum)
SCATTER(scatter_min, BIN_Minimum)

/* ---- segments ---- */

/* The largest finite number of the op's type; 16-bit floats are computed as floats. */
static float largest_float(const struct kernel_call *c)
{
	enum mu_dtype t = args_attr_type(c->node, "T", MU_FLOAT);

	return t == MU_HALF ? HALF_MAX : t == MU_BFLOAT16 ? BFLOAT16_MAX : FLT_MAX;
}

/* Initialises the output.  The maximum of an empty segment is the lowest finite number, and its
 * minimum the largest, not an infinity. */
static void start_segments(const struct kernel_call *c, struct mu_tensor *t, enum reduce_op op)
{
	const float largest = largest_float(c);

	loops->reduce[op][t->dtype].start(t->data, t->shape.count);
	for (int64_t i = 0; (op == RED_MAX || op == RED_MIN) && i < t->shape.count; i++)
		if (t->dtype == MU_FLOAT)
			MU_DATA(float, t)[i] = op == RED_MAX ? -largest : largest;
		else if (t->dtype == MU_DOUBLE)
			MU_DATA(double, t)[i] = op == RED_MAX ? -DBL_MAX : DBL_MAX;
}

int check_unsorted_segment(const struct kernel_call *c, struct mu_shape *shape, int64_t *row,
			   struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0), *ids = kernel_in(c, 1);
	int64_t n;

	MU_RETURN_IF_ERROR(args_int(c, 2, &n, err));
	if (!mu_shape_part_eq(&data->shape, 0, &ids->shape, 0, ids->shape.rank))
		return mu_invalid(err, "data.shape = %s does not start with segment_ids.shape = %s",
				  mu_shape_str(&data->shape), mu_shape_str(&ids->shape));
	*row = mu_shape_product(&data->shape, ids->shape.rank, data->shape.rank);
	return mu_shape_splice(shape, &data->shape, 0, ids->shape.rank, 1, &n, err);
}

/* out[ids[i]] op= data[i]; negative ids are dropped. */
static int unsorted_segment(struct kernel_call *c, enum reduce_op op, struct mu_err *err)
{
	const struct mu_tensor *data = kernel_in(c, 0), *ids = kernel_in(c, 1);
	const struct reduce_loops *l = &loops->reduce[op][data->dtype];
	struct mu_tensor *out;
	struct mu_shape shape;
	int64_t row;

	if (!l->start)
		return args_no_kernel(c, data->dtype, err);
	MU_RETURN_IF_ERROR(check_unsorted_segment(c, &shape, &row, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, data->dtype, &shape, &out, err));
	const int64_t n = shape.dim[0];
	size_t size = mu_dtype_size(data->dtype);
	start_segments(c, out, op);
	for (int64_t i = 0; i < ids->shape.count && row; i++) {
		int64_t id = mu_tensor_int(ids, i);
		if (id < 0)
			continue;
		if (id >= n)
			return mu_invalid(err, "segment_ids[%lld] = %lld is out of range [0, %lld)",
					  (long long)i, (long long)id, (long long)n);
		l->add((char *)out->data + (size_t)(id * row) * size,
		       (const char *)data->data + (size_t)(i * row) * size, row);
	}
	return 0;
}

#define UNSORTED(name, op) KERNEL_RUN(name, unsorted_segment(c, op, err))
UNSORTED(unsorted_sum, RED_SUM)
UNSORTED(unsorted_prod, RED_PROD)
UNSORTED(unsorted_max, RED_MAX)
UNSORTED(unsorted_min, RED_MIN)

static const struct kernel rows[] = {
    {"ScatterUpdate ResourceScatterUpdate", .run = scatter_update},
    {"ScatterAdd ResourceScatterAdd", .run = scatter_add},
    {"ScatterSub ResourceScatterSub", .run = scatter_sub},
    {"ScatterMul ResourceScatterMul", .run = scatter_mul},
    {"ScatterDiv ResourceScatterDiv", .run = scatter_div},
    {"ScatterMax ResourceScatterMax", .run = scatter_max},
    {"ScatterMin ResourceScatterMin", .run = scatter_min},
    {"UnsortedSegmentSum", .run = unsorted_sum},
    {"UnsortedSegmentProd", .run = unsorted_prod},
    {"UnsortedSegmentMax", .run = unsorted_max},
    {"UnsortedSegmentMin", .run = unsorted_min},
};
KERNEL_TABLE(array_scatter, rows)
