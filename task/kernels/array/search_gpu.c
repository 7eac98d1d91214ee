/* SPDX-License-Identifier: Apache-2.0 */
/* LowerBound and UpperBound on a GPU. */
#include <string.h>

#include "task/kernels/array/checks.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

static int bound_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *sorted = kernel_in(c, 0), *values = kernel_in(c, 1);
	enum mu_dtype type;

	MU_RETURN_IF_ERROR(check_bound(c, &type, err));
	struct bound_args a = {.in = gpu_address(values),
			       .sorted = gpu_address(sorted),
			       .rows = values->shape.dim[0],
			       .values = values->shape.dim[1],
			       .n = sorted->shape.dim[1],
			       .upper = strcmp(c->node->op, "UpperBound") == 0,
			       .wide = type == MU_INT64};
	MU_RETURN_IF_ERROR(gpu_out(c, 0, type, &values->shape, &a.out, err));
	return gpu_run_type(kernel_gpu(c), "bound", sorted->dtype, values->shape.count, &a, err);
}

static const struct device_kernel rows[] = {
    GPU_ROW("LowerBound UpperBound", bound_gpu, "T", GPU_REAL | GPU_INT, .device_out = 1),
};
KERNEL_TABLE(array_search_gpu, rows)
