/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products on a GPU. */
#include "task/kernels/math/scan_gpu.h"

#include <stdio.h>

#include "task/kernels/math/checks.h"

int gpu_scan(struct kernel_call *c, const char *op, enum mu_dtype t, const struct scan_args *a,
	     struct mu_err *err)
{
	enum { BLOCK_MIN_LENGTH = 256 };
	const int64_t lines = a->outer * a->inner;
	char block[32];

	if (a->n < BLOCK_MIN_LENGTH)
		return gpu_run_type(kernel_gpu(c), op, t, a->n ? lines : 0, a, err);
	snprintf(block, sizeof block, "%s_block", op);
	return gpu_run_rows(kernel_gpu(c), block, t, lines, a, err);
}

static int scan_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct scan_plan p;

	MU_RETURN_IF_ERROR(check_scan(c, &p, err));
	struct scan_args a = {0, gpu_address(in), p.outer, p.n, p.inner, p.exclusive, p.reverse};
	int rc = gpu_out(c, 0, in->dtype, &in->shape, &a.out, err);
	return rc || !in->shape.count ? rc : gpu_scan(c, c->node->op, in->dtype, &a, err);
}

static const struct device_kernel rows[] = {
    {.k = {"Cumsum", .run = scan_gpu}, .type_attr = "T", .types = GPU_NUM, .host_in = 1 << 1},
    {.k = {"Cumprod", .run = scan_gpu}, .type_attr = "T", .types = GPU_NUM, .host_in = 1 << 1},
};
KERNEL_TABLE(math_scan_gpu, rows)
