/* SPDX-License-Identifier: Apache-2.0 */
/* InplaceAdd, InplaceSub and InplaceUpdate: add to, subtract from or replace rows of x. TensorFlow
 * always writes into x. Here the kernel copies x first if another step or node refers to it, so
 * other readers see no change. */
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"

/* op: BIN_COUNT replaces the rows. */
static int inplace_write_rows(struct kernel_call *c, enum binary_op op, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0), *at = kernel_in(c, 1), *v = kernel_in(c, 2);
	binary_loop *loop = op == BIN_COUNT ? NULL : loops->binary[op][x->dtype];
	struct mu_shape shape = x->shape;
	struct mu_tensor *out;
	const int64_t row = mu_shape_product(&shape, 1, shape.rank);

	if (op != BIN_COUNT && !loop && shape.count)
		return mu_invalid(err, "Unsupported data type: %s", mu_dtype_name(x->dtype));
	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, x->dtype, &shape, &out, err));
	if (out->data != x->data)
		elems_copy(out->dtype, out->data, 0, x->data, 0, shape.count);
	size_t size = elems_size(out->dtype);
	for (int64_t k = 0; k < at->shape.count && shape.count; k++) {
		int64_t n = MU_DATA(int32_t, at)[k] % shape.dim[0];
		char *to =
		    (char *)out->data + (size_t)((n < 0 ? n + shape.dim[0] : n) * row) * size;
		if (loop)
			loop(to, to, (const char *)v->data + (size_t)(k * row) * size, row,
			     BOTH_RUN);
		else
			elems_copy(out->dtype, to, 0, v->data, k * row, row);
	}
	return 0;
}

KERNEL_RUN(set, inplace_write_rows(c, BIN_COUNT, err))
KERNEL_RUN(inplace_add, inplace_write_rows(c, BIN_AddV2, err))
KERNEL_RUN(subtract, inplace_write_rows(c, BIN_Sub, err))

static int copy(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, x->dtype, &x->shape, &out, err));
	elems_copy(out->dtype, out->data, 0, x->data, 0, x->shape.count);
	return 0;
}

static const struct kernel rows[] = {
    {"DeepCopy", .run = copy},
    {"InplaceAdd", .run = inplace_add},
    {"InplaceSub", .run = subtract},
    {"InplaceUpdate", .run = set},
};
KERNEL_TABLE(array_inplace, rows)
