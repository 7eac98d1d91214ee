/* SPDX-License-Identifier: Apache-2.0 */
/* A vector added along the channel dimension, and its gradient. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/columns.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/nn/checks.h"

struct mu_axis_split bias_channels(const struct kernel_call *c)
{
	const struct mu_shape *s = &kernel_in(c, 0)->shape;
	bool first = strncmp(args_attr_string(c->node, "data_format", "NHWC"), "NC", 2) == 0;

	return mu_shape_split(s, first ? 1 : s->rank - 1);
}

int check_bias(const struct kernel_call *c, struct mu_axis_split *ch, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *bias = kernel_in(c, 1);

	*ch = bias_channels(c);
	if (bias->shape.dim[0] != ch->n)
		return mu_invalid(err,
				  "Must provide as many biases as the last dimension of the input "
				  "tensor: %s vs. %s",
				  mu_shape_str(&bias->shape), mu_shape_str(&in->shape));
	return 0;
}

static int bias_add(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_axis_split ch;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(check_bias(c, &ch, err));
	binary_loop *add = loops->binary[BIN_AddV2][in->dtype];
	if (!add)
		return args_no_kernel(c, in->dtype, err);
	MU_RETURN_IF_ERROR(kernel_out_reuse(c, 0, 0, in->dtype, &in->shape, &out, err));
	size_t size = mu_dtype_size(out->dtype);
	const char *x = kernel_in(c, 0)->data, *b = kernel_in(c, 1)->data;
	char *o = out->data;
	int64_t rows = ch.inner == 1 ? ch.outer : ch.outer * ch.n;
	int64_t run = ch.inner == 1 ? ch.n : ch.inner;
	if (!run)
		return 0;
	for (int64_t r = 0; r < rows; r++, x += (size_t)run * size, o += (size_t)run * size)
		add(o, x, ch.inner == 1 ? b : b + (size_t)(r % ch.n) * size, run,
		    ch.inner == 1 ? BOTH_RUN : RIGHT_SCALAR);
	return 0;
}

static int bias_add_grad(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const struct reduce_loops *sum = &loops->reduce[RED_SUM][in->dtype];
	struct mu_axis_split ch = bias_channels(c);
	struct mu_tensor *out;

	if (!sum->start)
		return args_no_kernel(c, in->dtype, err);
	struct mu_shape shape = mu_shape_vec(ch.n);
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	size_t size = mu_dtype_size(in->dtype);
	const char *x = in->data;
	char *o = out->data;
	sum->start(o, ch.n);
	if (!in->shape.count)
		return 0;
	if (ch.inner == 1)
		columns_reduce(sum, size, o, x, ch.outer, ch.n);
	else
		for (int64_t r = 0; r < ch.outer * ch.n; r++)
			sum->row(o + (size_t)(r % ch.n) * size, x + (size_t)(r * ch.inner) * size,
				 ch.inner);
	return 0;
}

static const struct kernel rows[] = {
    {"BiasAdd BiasAddV1", .run = bias_add},
    {"BiasAddGrad", .run = bias_add_grad},
};
KERNEL_TABLE(nn_bias, rows)
