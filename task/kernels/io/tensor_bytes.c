/* SPDX-License-Identifier: Apache-2.0 */
/* SerializeTensor and ParseTensor: convert tensors to serialized TensorProtos, and back. */
#include "lib/tensor/encoded.h"
#include "lib/tensor/tensor_proto.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

/* True for variants that have an encoding, such as the state of an iterator; false for lists and
 * datasets. */
static bool objects_are_serializable(const struct mu_tensor *t)
{
	for (int64_t i = 0; i < t->shape.count; i++)
		if (!mu_encoded_of(MU_DATA(struct mu_object *, t)[i]))
			return false;
	return true;
}

static int serialize_tensor(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_BUF b = {0};

	if (in->dtype == MU_RESOURCE || (in->dtype == MU_VARIANT && !objects_are_serializable(in)))
		return args_no_kernel(c, in->dtype, err);
	mu_tensor_write(&b, in);
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
