/* SPDX-License-Identifier: Apache-2.0 */
/* TopK and InTopK on a GPU. */
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/math/checks.h"

static int top_k_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct top_k_args a = {.in = gpu_address(in)};
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_top_k(c, &a.k, &shape, err));
	a.n = in->shape.dim[in->shape.rank - 1];
	if (a.n > INT32_MAX)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s of %lld columns is not here", c->node->op,
			       (long long)a.n);
	MU_RETURN_IF_ERROR(gpu_out(c, 0, in->dtype, &shape, &a.out, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 1, MU_INT32, &shape, &a.at, err));
	if (!shape.count)
		return 0;
	a.rows = in->shape.count / a.n;
	return gpu_run_rows(kernel_gpu(c), "top_k", in->dtype, a.rows, &a, err);
}

static int in_top_k_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0), *targets = kernel_in(c, 1);
	struct top_k_args a = {.in = gpu_address(in),
			       .targets = gpu_address(targets),
			       .wide = targets->dtype == MU_INT64};

	MU_RETURN_IF_ERROR(check_in_top_k(c, &a.k, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, MU_BOOL, &targets->shape, &a.out, err));
	if (!targets->shape.count)
		return 0;
	a.rows = in->shape.dim[0];
	a.n = in->shape.dim[1];
	return gpu_run_rows(kernel_gpu(c), "in_top_k", MU_FLOAT, a.rows, &a, err);
}

/* The output of indices is in GPU memory, although it is int32. */
static const struct device_kernel rows[] = {
    GPU_ROW("TopK TopKV2", top_k_gpu, "T", GPU_NUM, .host_in = 1 << 1, .device_out = 1 << 1),
    GPU_ROW("InTopK InTopKV2", in_top_k_gpu, NULL, 0, .host_in = 1 << 2, .device_in = 1 << 1),
};
KERNEL_TABLE(math_top_k_gpu, rows)
