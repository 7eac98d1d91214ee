/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation in training, and its gradient, by NVIDIA's library where it is installed:
 * NHWC, float, of more than one pixel.  What has been trained is normalised by our own kernels,
 * which read and write each element once; the library does no better there. */
#ifndef MU_TASK_DEVICE_GPU_NORM_H
#define MU_TASK_DEVICE_GPU_NORM_H

#include "task/device/gpu.h"
#include "task/device/gpu_plan.h"

struct gpu_norm {
	bool back;
	int64_t batch, rows, columns, channels;
	double epsilon;
	double factor; /* of this batch in the running statistics */
};

/* All float, x, y and their gradients like the image, the rest one element a channel. */
struct gpu_norm_at {
	cuda_ptr x, y, scale, offset;
	/* Mixed with this batch's by the factor; of a factor of 1 only written. */
	cuda_ptr mean, variance;
	/* This batch's mean and 1 / sqrt(variance + epsilon): written, and read by the gradient. */
	cuda_ptr own_mean, own_inverse;
	cuda_ptr y_grad, x_grad, scale_grad, offset_grad;
};

/* The caller keeps the plan from one run to the next. */
struct gpu_plan *gpu_norm_plan_new(void);

/* Whether the library is there and knows what is meant.  Nothing is launched. */
int gpu_norm_plan_for(struct gpu *g, struct gpu_plan *plan, const struct gpu_norm *what, bool *can,
		      struct mu_err *err);
/* Launches it.  *done false: the library cannot, nothing has been launched. */
int gpu_norm(struct gpu *g, struct gpu_plan *plan, const struct gpu_norm *what,
	     const struct gpu_norm_at *at, bool *done, struct mu_err *err);

#endif
