/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation and its gradient on a GPU. */

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/nn/checks.h"

static int lrn_gpu_run(struct kernel_call *c, const struct lrn_plan *p,
		       const struct mu_shape *shape, struct lrn_args *a, struct mu_err *err)
{
	int rc = gpu_out(c, 0, MU_FLOAT, shape, &a->out, err);

	a->n = shape->count;
	a->channels = p->n;
	a->radius = p->radius;
	a->bias = p->bias;
	a->alpha = p->alpha;
	a->beta = p->beta;
	return rc ? rc : gpu_run(kernel_gpu(c), a->y ? "lrn_back" : "lrn", a->n, a, err);
}

static int lrn_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct lrn_args a = {.x = gpu_address(kernel_in(c, 0))};
	struct lrn_plan p;

	MU_RETURN_IF_ERROR(check_lrn(c, 0, &p, err));
	return lrn_gpu_run(c, &p, &kernel_in(c, 0)->shape, &a, err);
}

static int lrn_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct lrn_args a = {.g = gpu_address(kernel_in(c, 0)),
			     .x = gpu_address(kernel_in(c, 1)),
			     .y = gpu_address(kernel_in(c, 2))};
	struct lrn_plan p;

	MU_RETURN_IF_ERROR(check_lrn(c, 1, &p, err));
	return lrn_gpu_run(c, &p, &kernel_in(c, 1)->shape, &a, err);
}

static const struct device_kernel rows[] = {
    GPU_ROW("LRN", lrn_gpu, "T", GPU_TYPE(MU_FLOAT)),
    GPU_ROW("LRNGrad", lrn_grad_gpu, "T", GPU_TYPE(MU_FLOAT)),
};
KERNEL_TABLE(nn_lrn_gpu, rows)
