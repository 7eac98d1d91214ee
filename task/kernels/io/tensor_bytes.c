/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors as strings that hold a TensorProto, and back. */
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

static int serialize_tensor(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	if (kernel_in(c, 0)->dtype == MU_RESOURCE || kernel_in(c, 0)->dtype == MU_VARIANT)
		return args_no_kernel(c, kernel_in(c, 0)->dtype, err);
	mu_tensor_write(&b, kernel_in(c, 0));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int parse_tensor(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype want = args_attr_type(c->node, "out_type", MU_DT_INVALID);
	struct mu_tensor t;
	int rc;

	if (kernel_in(c, 0)->shape.rank)
		return mu_invalid(err, "Expected `serialized` to be a scalar, got shape: %s",
				  mu_shape_str(&kernel_in(c, 0)->shape));
	if (mu_tensor_parse(&t, elems_span(kernel_in(c, 0), 0), err))
		return mu_wrap(err, "Could not parse `serialized` as TensorProto");
	if (t.dtype != want) {
		rc = mu_invalid(err, "Type mismatch between parsed tensor (%s) and dtype (%s)",
				mu_dtype_name(t.dtype), mu_dtype_name(want));
		mu_tensor_unref(&t);
		return rc;
	}
	kernel_out_take(c, 0, t);
	return 0;
}

static const struct kernel rows[] = {
    {"SerializeTensor", .run = serialize_tensor},
    {"ParseTensor", .run = parse_tensor},
};
KERNEL_TABLE(io_tensor_bytes, rows)
