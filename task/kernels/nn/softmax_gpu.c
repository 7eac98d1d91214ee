/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax, cross entropies, biases on a GPU. */

#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/nn/checks.h"

static int softmax_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct softmax_args a = {.in = gpu_address(in),
				 .logarithm = strcmp(c->node->op, "LogSoftmax") == 0};

	MU_RETURN_IF_ERROR(gpu_out(c, 0, in->dtype, &in->shape, &a.out, err));
	if (!in->shape.count)
		return 0;
	a.n = in->shape.dim[in->shape.rank - 1];
	a.rows = in->shape.count / a.n;
	return gpu_run_rows(kernel_gpu(c), "softmax", in->dtype, a.rows, &a, err);
}

/* Loss and gradient, of rows of `shape`. */
static int xent_run(struct kernel_call *c, const char *kernel, const struct mu_shape *shape,
		    struct xent_args *a, struct mu_err *err)
{
	struct mu_shape rows = mu_shape_vec(shape->dim[0]);
	const enum mu_dtype t = kernel_in(c, 0)->dtype;

	MU_RETURN_IF_ERROR(gpu_out(c, 0, t, &rows, &a->loss, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 1, t, shape, &a->back, err));
	a->rows = shape->dim[0];
	a->n = shape->dim[1];
	a->logits = gpu_address(kernel_in(c, 0));
	a->labels = gpu_address(kernel_in(c, 1));
	if (!a->n)
		return gpu_fill(kernel_gpu(c), &c->out[0].tensor, 0, err);
	return gpu_run_rows(kernel_gpu(c), kernel, t, a->rows, a, err);
}

static int cross_entropy(struct kernel_call *c, struct mu_err *err)
{
	struct xent_args a = {0};
	struct mu_shape common;
	struct view logits, labels;

	MU_RETURN_IF_ERROR(check_cross_entropy(c, &common, err));
	broadcast_view(&logits, &kernel_in(c, 0)->shape, &common);
	broadcast_view(&labels, &kernel_in(c, 1)->shape, &common);
	a.logit_row = logits.stride[0];
	a.logit_column = logits.stride[1];
	a.label_row = labels.stride[0];
	a.label_column = labels.stride[1];
	return xent_run(c, "xent", &common, &a, err);
}

static int sparse_cross_entropy_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *shape = &kernel_in(c, 0)->shape;

	MU_RETURN_IF_ERROR(check_sparse_cross_entropy(c, err));
	struct xent_args a = {.logit_row = shape->dim[1], .logit_column = 1};
	const bool is_int64 = kernel_in(c, 1)->dtype == MU_INT64;
	return xent_run(c, is_int64 ? "sparse_xent_i64" : "sparse_xent_i32", shape, &a, err);
}

static int bias_add_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor in = *kernel_in(c, 0), bias = *kernel_in(c, 1); /* may be reused */
	struct mu_tensor x = in, y = bias, sum;
	struct mu_axis_split ch;
	uint64_t out;

	MU_RETURN_IF_ERROR(check_bias(c, &ch, err));
	MU_RETURN_IF_ERROR(gpu_out_reuse(c, 0, 0, in.dtype, &in.shape, &out, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&x.shape, 3, (int64_t[]){ch.outer, ch.n, ch.inner}, err));
	MU_RETURN_IF_ERROR(mu_shape_set(&y.shape, 2, (int64_t[]){ch.n, 1}, err));
	sum = c->out[0].tensor;
	sum.shape = x.shape;
	return gpu_binary(kernel_gpu(c), "AddV2", &sum, &x, &y, err);
}

static const struct device_kernel rows[] = {
    GPU_ROW("Softmax LogSoftmax", softmax_gpu, "T", GPU_FLT),
    GPU_ROW("SoftmaxCrossEntropyWithLogits", cross_entropy, "T", GPU_FLT),
    GPU_ROW("SparseSoftmaxCrossEntropyWithLogits", sparse_cross_entropy_gpu, "T", GPU_FLT,
	    .device_in = 2),
    GPU_ROW("BiasAdd", bias_add_gpu, "T", GPU_FLT),
};
KERNEL_TABLE(nn_softmax_gpu, rows)
