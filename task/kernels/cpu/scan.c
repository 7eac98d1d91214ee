/* SPDX-License-Identifier: Apache-2.0 */
/* Cumsum and Cumprod: each row along an axis is the one before it and one row of the input more. */
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/kernel_table.h"
#include "task/kernels/loops.h"

static int scan(struct kernel_call *c, enum reduce_op op, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct reduce_loops *l = &loops->reduce[op][in->dtype];
	bool exclusive = args_attr_bool(c->node, "exclusive", false);
	bool reverse = args_attr_bool(c->node, "reverse", false);
	int64_t at, outer = 1, inner = 1;
	struct mu_tensor *out;
	int axis, rc;

	if ((rc = args_int(c, 1, &at, err)))
		return rc;
	if (at < -in->shape.rank || at >= in->shape.rank)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "ScanOp: Expected scan axis in the range [%d, %d), but got %lld",
			       -in->shape.rank, in->shape.rank, (long long)at);
	if (!l->start)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
			       mu_dtype_name(in->dtype));
	if ((rc = kernel_out(c, 0, in->dtype, &in->shape, &out, err)) || !in->shape.count)
		return rc;
	axis = (int)(at < 0 ? at + in->shape.rank : at);
	for (int d = 0; d < axis; d++)
		outer *= in->shape.dim[d];
	for (int d = axis + 1; d < in->shape.rank; d++)
		inner *= in->shape.dim[d];
	int64_t n = in->shape.dim[axis];
	size_t row = (size_t)inner * mu_dtype_size(in->dtype);
	ptrdiff_t back = reverse ? (ptrdiff_t)row : -(ptrdiff_t)row; /* to the row before */
	for (int64_t o = 0; o < outer; o++)
		for (int64_t i = 0; i < n; i++) {
			size_t offset = (size_t)(o * n + (reverse ? n - 1 - i : i)) * row;
			char *to = (char *)out->data + offset;
			const char *from = (const char *)in->data + offset;
			if (i)
				memcpy(to, to + back, row);
			else
				l->start(to, inner);
			if (i || !exclusive)
				l->add(to, exclusive ? from + back : from, inner);
		}
	return 0;
}

static int cumsum(struct kernel_call *c, struct mu_err *err)
{
	return scan(c, RED_SUM, err);
}

static int cumprod(struct kernel_call *c, struct mu_err *err)
{
	return scan(c, RED_PROD, err);
}

static const struct kernel rows[] = {
    {"Cumsum", KERNEL_EXPENSIVE, .run = cumsum},
    {"Cumprod", KERNEL_EXPENSIVE, .run = cumprod},
};
KERNEL_TABLE(scan, rows)
