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
	int rc = kernel_out(c, 0, to, &in->shape, &out, err);
	if (!rc)
		convert(to, out->data, in->dtype, in->data, in->shape.count);
	return rc;
}

/* The same bits as another type of the same size. */
static int bitcast(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype to = args_attr_type(c->node, "type", MU_DT_INVALID);
	struct mu_tensor *out;

	if (!mu_dtype_size(in->dtype) || mu_dtype_size(in->dtype) != mu_dtype_size(to))
		return mu_fail(err, MU_UNIMPLEMENTED, "Bitcast from %s to %s is not supported",
			       mu_dtype_name(in->dtype), mu_dtype_name(to));
	int rc = kernel_out(c, 0, to, &in->shape, &out, err);
	if (!rc && in->shape.count)
		memcpy(out->data, in->data, (size_t)in->shape.count * mu_dtype_size(to));
	return rc;
}

static const struct kernel rows[] = {
    {"Cast", .run = cast},
    {"Bitcast", .run = bitcast},
};
KERNEL_TABLE(math_cast, rows)
