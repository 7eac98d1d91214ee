/* SPDX-License-Identifier: Apache-2.0 */
/* LowerBound and UpperBound on a GPU. */
#include <string.h>

#include "task/kernels/array/checks.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

static int bound_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "bound", "T", state, err);
}

static int bound_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *sorted = kernel_in(c, 0), *values = kernel_in(c, 1);
	enum mu_dtype type;
	struct mu_tensor *out;
	int rc = check_bound(c, &type, err);

	if (rc || (rc = gpu_out(c, 0, type, &values->shape, &out, err)))
		return rc;
	const struct bound_args a = {.out = gpu_address(out),
				     .in = gpu_address(values),
				     .sorted = gpu_address(sorted),
				     .rows = values->shape.dim[0],
				     .values = values->shape.dim[1],
				     .n = sorted->shape.dim[1],
				     .upper = strcmp(c->node->op, "UpperBound") == 0,
				     .wide = type == MU_INT64};
	return gpu_run(o->gpu, o->kernel, values->shape.count, &a, err);
}

static const struct gpu_kernel rows[] = {
    {.k = {"LowerBound", .run = bound_gpu, .prepare = bound_prepare},
     .type_attr = "T",
     .types = GPU_REAL | GPU_INT,
     .device_out = 1},
    {.k = {"UpperBound", .run = bound_gpu, .prepare = bound_prepare},
     .type_attr = "T",
     .types = GPU_REAL | GPU_INT,
     .device_out = 1},
};
GPU_KERNEL_TABLE(array_search_gpu, rows)
