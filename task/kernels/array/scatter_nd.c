/* SPDX-License-Identifier: Apache-2.0 */
/* Updates elements or slices at given positions: of zeros (ScatterNd), of a copy (TensorScatter…),
 * or of a reference or resource variable (ScatterNd…, ResourceScatterNd…). */
#include "task/kernels/array/checks.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/state/variables.h"

enum { OVERWRITE = -1 };

static int check_shapes(const struct mu_shape *table, const struct mu_shape *is,
			const struct mu_shape *updates_shape, int *depth, struct mu_err *err)
{
	/* as in TensorFlow, a scalar has no updates */
	if ((is->count || updates_shape->count) &&
	    !(table->count && is->count && updates_shape->count))
		return mu_invalid(err, "Indices and updates specified for empty output shape");
	if (is->rank < 1 || is->dim[is->rank - 1] > table->rank)
		return mu_invalid(err,
				  "Indices and updates specified for an output of shape %s: "
				  "indices have shape %s",
				  mu_shape_str(table), mu_shape_str(is));
	*depth = (int)is->dim[is->rank - 1];
	bool fits = updates_shape->rank == is->rank - 1 + table->rank - *depth;
	for (int d = 0; fits && d < updates_shape->rank; d++)
		fits = updates_shape->dim[d] ==
		       (d < is->rank - 1 ? is->dim[d] : table->dim[*depth + d - (is->rank - 1)]);
	if (!fits)
		return mu_invalid(
		    err, "Dimensions of updates %s must match indices %s and the output %s",
		    mu_shape_str(updates_shape), mu_shape_str(is), mu_shape_str(table));
	return 0;
}

static int flat_position(const struct mu_tensor *indices, int64_t i, int depth,
			 const struct mu_shape *table, int64_t *at, struct mu_err *err)
{
	*at = 0;
	for (int d = 0; d < depth; d++) {
		int64_t k = mu_tensor_int(indices, i * depth + d);
		if (k < 0 || k >= table->dim[d])
			return args_fail_position(indices, i, depth, "shape", table, NULL, err);
		*at = *at * table->dim[d] + k;
	}
	return 0;
}

/* True if the type has this update.  As in TensorFlow, bools are added with OR and subtracted with
 * XOR, and strings are added by concatenation. */
static bool update_is_supported(int op, enum mu_dtype t)
{
	return op == OVERWRITE || loops_binary_known(op, t) ||
	       (t == MU_STRING && op == BIN_AddV2) ||
	       (t == MU_BOOL && (op == BIN_AddV2 || op == BIN_Sub));
}

static void append_strings(struct mu_string *to, const struct mu_string *from, int64_t n)
{
	MU_AUTO_BUF joined = {0};

	for (int64_t i = 0; i < n; i++) {
		mu_buf_clear(&joined);
		mu_buf_put(&joined, to[i].data, to[i].len);
		mu_buf_put(&joined, from[i].data, from[i].len);
		mu_string_set(&to[i], joined.data, joined.len);
	}
}

static void update_row(int op, enum mu_dtype t, void *to, const void *from, int64_t n)
{
	if (op == OVERWRITE)
		elems_copy(t, to, 0, from, 0, n);
	else if (t == MU_STRING)
		append_strings(to, from, n);
	else if (t == MU_BOOL && op == BIN_AddV2)
		loops->reduce[RED_OR][t].add(to, from, n);
	else
		loops_binary(t == MU_BOOL ? BIN_NotEqual : op, t, to, to, from, n, BOTH_RUN);
}

/* table[indices[i]] op= updates[i].  The inputs `in` and `in` + 1 are the indices and the updates.
 * All shapes have been checked. */
static int scatter_nd_apply(const struct kernel_call *c, unsigned in, struct mu_tensor *table,
			    int depth, int op, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, in), *updates = kernel_in(c, in + 1);
	size_t size = elems_size(table->dtype);
	const int64_t row = mu_shape_product(&table->shape, depth, table->shape.rank);
	const int64_t n = mu_shape_product(&indices->shape, 0, indices->shape.rank - 1);
	int64_t at;

	for (int64_t i = 0; i < n; i++) {
		MU_RETURN_IF_ERROR(flat_position(indices, i, depth, &table->shape, &at, err));
		char *to = (char *)table->data + (size_t)(at * row) * size;
		const char *from = (const char *)updates->data + (size_t)(i * row) * size;
		update_row(op, table->dtype, to, from, row);
	}
	return 0;
}

int check_scatter_nd(const struct kernel_call *c, unsigned in, const struct mu_shape *table,
		     enum mu_dtype t, int *depth, struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_is_int(c, in, err));
	MU_RETURN_IF_ERROR(args_type(c, in + 1, t, err));
	return check_shapes(table, &kernel_in(c, in)->shape, &kernel_in(c, in + 1)->shape, depth,
			    err);
}

static int scatter_nd_check(const struct kernel_call *c, unsigned in, const struct mu_shape *table,
			    enum mu_dtype t, int op, int *depth, struct mu_err *err)
{
	if (!update_is_supported(op, t))
		return args_no_kernel(c, t, err);
	return check_scatter_nd(c, in, table, t, depth, err);
}

static int scatter_nd_zeros(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 1)->dtype;
	struct mu_shape shape;
	struct mu_tensor *out;
	int depth = 0;

	MU_RETURN_IF_ERROR(args_shape(c, 2, &shape, err));
	MU_RETURN_IF_ERROR(scatter_nd_check(c, 0, &shape, t, BIN_AddV2, &depth, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	elems_zero(t, out->data, 0, shape.count);
	return scatter_nd_apply(c, 0, out, depth, BIN_AddV2, err);
}

static int scatter_nd_copy(struct kernel_call *c, int op, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype t = in->dtype;
	struct mu_shape shape = in->shape;
	int64_t n = shape.count;
	const void *from = in->data;
	struct mu_tensor *out;
	int depth = 0;

	MU_RETURN_IF_ERROR(scatter_nd_check(c, 1, &shape, t, op, &depth, err));
	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, t, &shape, &out, err));
	if (out->data != from)
		elems_copy(t, out->data, 0, from, 0, n);
	return scatter_nd_apply(c, 1, out, depth, op, err);
}

static int scatter_nd_variable(struct kernel_call *c, int op, struct mu_err *err)
{
	VARIABLES_AUTO vs = {0};
	int depth = 0;

	MU_RETURN_IF_ERROR(variables_lock(c, 1, &vs, err));
	MU_RETURN_IF_ERROR(
	    scatter_nd_check(c, 1, &vs.t[0]->shape, vs.t[0]->dtype, op, &depth, err));
	MU_RETURN_IF_ERROR(scatter_nd_apply(c, 1, vs.t[0], depth, op, err));
	variable_forward(c);
	return 0;
}

#define SCATTER(name, op)                                                                          \
	KERNEL_RUN(copy_##name, scatter_nd_copy(c, op, err))                                       \
	KERNEL_RUN(variable_##name, scatter_nd_variable(c, op, err))
SCATTER(update, OVERWRITE)
SCATTER(add, BIN_AddV2)
SCATTER(sub, BIN_Sub)
SCATTER(max, BIN_Maximum)
SCATTER(min, BIN_Minimum)

static const struct kernel rows[] = {
    {"ScatterNd", .run = scatter_nd_zeros},
    {"ScatterNdNonAliasingAdd TensorScatterAdd", .run = copy_add},
    {"TensorScatterUpdate", .run = copy_update},
    {"TensorScatterSub", .run = copy_sub},
    {"TensorScatterMax", .run = copy_max},
    {"TensorScatterMin", .run = copy_min},
    {"ScatterNdUpdate ResourceScatterNdUpdate", .run = variable_update},
    {"ScatterNdAdd ResourceScatterNdAdd", .run = variable_add},
    {"ScatterNdSub ResourceScatterNdSub", .run = variable_sub},
    {"ScatterNdMax ResourceScatterNdMax", .run = variable_max},
    {"ScatterNdMin ResourceScatterNdMin", .run = variable_min},
};
KERNEL_TABLE(array_scatter_nd, rows)
