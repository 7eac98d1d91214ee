/* SPDX-License-Identifier: Apache-2.0 */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

static int cast(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype to = args_attr_type(c->node, "DstT", MU_DT_INVALID);
	struct mu_tensor *out;

	if (to == in->dtype) {
		kernel_out_take(c, 0, mu_tensor_ref(in));
		return 0;
	}
	if ((unsigned)to >= MU_DT_COUNT || !convert_known(to, in->dtype))
		return mu_fail(err, MU_UNIMPLEMENTED, "Cast %s to %s is not supported",
			       mu_dtype_name(in->dtype), mu_dtype_name(to));

	MU_RETURN_IF_ERROR(kernel_out(c, 0, to, &in->shape, &out, err));
	convert(to, out->data, in->dtype, in->data, in->shape.count);
	return 0;
}

/* The shape of a bitcast: a larger type takes the last dimension, a smaller one adds one. */
static int bitcast_shape(const struct mu_tensor *in, enum mu_dtype to, struct mu_shape *out,
			 struct mu_err *err)
{
	int64_t from_size = (int64_t)mu_dtype_size(in->dtype), to_size = (int64_t)mu_dtype_size(to);
	int rank = in->shape.rank;

	*out = in->shape;
	if (!from_size || !to_size)
		return mu_fail(err, MU_UNIMPLEMENTED, "Bitcast from %s to %s is not supported",
			       mu_dtype_name(in->dtype), mu_dtype_name(to));
	if (from_size > to_size)
		return mu_shape_push(out, from_size / to_size, err);
	if (from_size == to_size)
		return 0;
	if (!rank || in->shape.dim[rank - 1] != to_size / from_size)
		return mu_invalid(err, "Cannot bitcast from %s to %s", mu_dtype_name(in->dtype),
				  mu_dtype_name(to));
	return mu_shape_set(out, rank - 1, in->shape.dim, err);
}

static int bitcast(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype to = args_attr_type(c->node, "type", MU_DT_INVALID);
	struct mu_tensor *out;
	struct mu_shape shape;
	int rc = bitcast_shape(in, to, &shape, err);

	if (rc || (rc = kernel_out(c, 0, to, &shape, &out, err)))
		return rc;
	if (shape.count)
		memcpy(out->data, in->data, mu_tensor_bytes(out));
	return 0;
}

static const struct kernel rows[] = {
    {"Cast", .run = cast},
    {"Bitcast", .run = bitcast},
};
KERNEL_TABLE(math_cast, rows)
