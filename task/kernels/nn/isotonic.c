/* SPDX-License-Identifier: Apache-2.0 */
/* Isotonic regression: the non-increasing sequence that is nearest to each row by squared distance,
 * found by pooling adjacent violators. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

/* Adjacent elements that share one value, their mean. */
struct isotonic_block {
	double sum;
	int64_t n;
};

static double block_mean(const struct isotonic_block *b)
{
	return b->sum / (double)b->n;
}

/* blocks: space for n blocks. */
static void isotonic_row(const double *x, int64_t n, double *y, int32_t *segments,
			 struct isotonic_block *blocks)
{
	int64_t n_blocks = 0, at = 0;

	for (int64_t i = 0; i < n; i++) {
		blocks[n_blocks++] = (struct isotonic_block){x[i], 1};
		while (n_blocks > 1 &&
		       block_mean(&blocks[n_blocks - 2]) < block_mean(&blocks[n_blocks - 1])) {
			n_blocks--;
			blocks[n_blocks - 1].sum += blocks[n_blocks].sum;
			blocks[n_blocks - 1].n += blocks[n_blocks].n;
		}
	}
	for (int64_t b = 0; b < n_blocks; b++)
		for (int64_t end = at + blocks[b].n; at < end; at++) {
			y[at] = block_mean(&blocks[b]);
			segments[at] = (int32_t)b;
		}
}

static int isotonic_regression(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	enum mu_dtype type = args_attr_type(c->node, "output_dtype", MU_FLOAT);
	int64_t n = in->shape.rank ? in->shape.dim[in->shape.rank - 1] : 1;
	MU_AUTO_TENSOR wide = {0};
	MU_AUTO_TENSOR fitted = {0};
	struct mu_tensor *out, *segments;

	MU_RETURN_IF_ERROR(convert_tensor(&wide, MU_DOUBLE, in, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&fitted, MU_DOUBLE, &in->shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, type, &in->shape, &out, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 1, MU_INT32, &in->shape, &segments, err));
	if (!in->shape.count)
		return 0;
	MU_AUTO_FREE struct isotonic_block *blocks = mu_xcalloc((size_t)n + 1, sizeof *blocks);
	for (int64_t i = 0; i < in->shape.count; i += n)
		isotonic_row(MU_DATA(double, &wide) + i, n, MU_DATA(double, &fitted) + i,
			     MU_DATA(int32_t, segments) + i, blocks);
	convert(type, out->data, MU_DOUBLE, fitted.data, in->shape.count);
	return 0;
}

static const struct kernel rows[] = {
    {"IsotonicRegression", KERNEL_EXPENSIVE, .run = isotonic_regression},
};
KERNEL_TABLE(nn_isotonic, rows)
