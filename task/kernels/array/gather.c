/* SPDX-License-Identifier: Apache-2.0 */
/* Gather and GatherNd: rows or slices of a tensor or variable by index. */
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/state/variables.h"

/* Gathers params along axis; the first `batch` dimensions are common to params and indices. */
static int gather_along(struct kernel_call *c, const struct mu_tensor *params,
			const struct mu_tensor *indices, int axis, int batch, struct mu_err *err)
{
	const struct mu_shape *ps = &params->shape, *is = &indices->shape;
	const struct mu_axis_split s = mu_shape_split(ps, axis);
	struct mu_shape shape;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(
	    mu_shape_splice(&shape, ps, axis, 1, is->rank - batch, is->dim + batch, err));
	for (int d = 0; d < batch; d++)
		if (ps->dim[d] != is->dim[d])
			return mu_invalid(
			    err,
			    "params.shape[%d]: %lld should be equal to indices.shape[%d]: %lld", d,
			    (long long)ps->dim[d], d, (long long)is->dim[d]);
	MU_RETURN_IF_ERROR(args_is_int(c, 1, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, params->dtype, &shape, &out, err));
	struct picks p = {mu_shape_product(ps, 0, batch), mu_shape_product(ps, batch, axis),
			  mu_shape_product(is, batch, is->rank), s.inner, s.n};
	return move_picks(out, params, indices, &p, err);
}

static int gather_checked(struct kernel_call *c, const struct mu_tensor *params, int64_t axis,
			  struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 1);
	int64_t batch = args_attr_int(c->node, "batch_dims", 0);

	if (params->shape.rank < 1)
		return mu_invalid(err, "params must be at least 1 dimensional");
	if (axis < -params->shape.rank || axis >= params->shape.rank)
		return mu_invalid(err, "Expected axis in the range [%d, %d), but got %lld",
				  -params->shape.rank, params->shape.rank, (long long)axis);
	axis = axis < 0 ? axis + params->shape.rank : axis;
	batch = batch < 0 ? batch + indices->shape.rank : batch;
	if (batch < 0 || batch > indices->shape.rank || batch > axis)
		return mu_invalid(
		    err,
		    "batch_dims (%lld) must be at most the rank of indices (%d) and axis (%lld)",
		    (long long)batch, indices->shape.rank, (long long)axis);
	return gather_along(c, params, indices, (int)axis, (int)batch, err);
}

KERNEL_RUN(gather, gather_checked(c, kernel_in(c, 0), 0, err))

static int gather_v2(struct kernel_call *c, struct mu_err *err)
{
	int64_t axis;

	MU_RETURN_IF_ERROR(args_int(c, 2, &axis, err));
	return gather_checked(c, kernel_in(c, 0), axis, err);
}

static int variable_value(struct kernel_call *c, struct mu_tensor *out, struct mu_err *err)
{
	struct variable *v;
	int rc = variable_in(c, 0, &v, err);

	if (!rc) {
		rc = variable_read(v, out, err);
		variable_put(v);
	}
	return rc;
}

static int resource_gather(struct kernel_call *c, struct mu_err *err)
{
	int64_t batch = args_attr_int(c->node, "batch_dims", 0);
	MU_AUTO_TENSOR params = {0};

	MU_RETURN_IF_ERROR(variable_value(c, &params, err));
	if (batch < 0)
		return mu_invalid(err, "batch_dims is negative (%lld)", (long long)batch);
	return gather_checked(c, &params, batch, err);
}

/* ---- GatherNd ---- */

static int gather_nd_of(struct kernel_call *c, const struct mu_tensor *params, struct mu_err *err)
{
	const struct mu_tensor *indices = kernel_in(c, 1);
	const struct mu_shape *ps = &params->shape, *is = &indices->shape;
	struct mu_shape shape;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(args_is_int(c, 1, err));
	if (is->rank < 1 || is->dim[is->rank - 1] > ps->rank)
		return mu_invalid(
		    err, "index innermost dimension length must be <= params rank; saw: %s vs. %s",
		    mu_shape_str(is), mu_shape_str(ps));
	int depth = (int)is->dim[is->rank - 1];
	const int64_t n = mu_shape_product(is, 0, is->rank - 1);
	MU_RETURN_IF_ERROR(
	    mu_shape_splice(&shape, is, is->rank - 1, 1, ps->rank - depth, ps->dim + depth, err));
	if (n && !ps->count)
		return mu_invalid(err,
				  "Requested more than 0 entries, but params is empty.  Params "
				  "shape: %s",
				  mu_shape_str(ps));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, params->dtype, &shape, &out, err));
	return move_positions(c, out, params, indices, n, depth, err);
}

KERNEL_RUN(gather_nd, gather_nd_of(c, kernel_in(c, 0), err))

static int resource_gather_nd(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_TENSOR params = {0};

	MU_RETURN_IF_ERROR(variable_value(c, &params, err));
	return gather_nd_of(c, &params, err);
}

static const struct kernel rows[] = {
    {"Gather", .run = gather},
    {"GatherV2", .run = gather_v2},
    {"ResourceGather", .run = resource_gather},
    {"GatherNd", .run = gather_nd},
    {"ResourceGatherNd", .run = resource_gather_nd},
};
KERNEL_TABLE(array_gather, rows)
