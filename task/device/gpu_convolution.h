/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of images by NVIDIA's library, where it is installed: NHWC, the filter as [filters,
 * rows, columns, channels of a group], padding alike on both sides.  Sums are made in float for the
 * 16-bit types; in TF32 for float only where MUSTER_TF32=1 allows it. */
#ifndef MU_TASK_DEVICE_GPU_CONVOLUTION_H
#define MU_TASK_DEVICE_GPU_CONVOLUTION_H

#include "task/device/gpu.h"
#include "task/device/gpu_plan.h"

enum gpu_convolution_way {
	GPU_CONVOLUTION_FORWARD,
	GPU_CONVOLUTION_TO_INPUT,
	GPU_CONVOLUTION_TO_FILTER,
	GPU_CONVOLUTION_WAYS
};
struct gpu_convolution_axis {
	int64_t in, size, stride, dilation, out, pad; /* pad: before and after */
};
struct gpu_convolution {
	enum mu_dtype type;
	enum gpu_convolution_way way;
	int64_t batch, channels, filters, groups;
	struct gpu_convolution_axis row, column;
};
struct gpu_convolution_at { /* two are read, the one that `way` names is written whole */
	cuda_ptr input, filter, output;
};

/* The caller keeps the plan from one run to the next. */
struct gpu_plan *gpu_convolution_plan_new(void);

/* Chooses an algorithm; *can is false if the library has none.  Nothing is launched. */
int gpu_convolution_plan_for(struct gpu *g, struct gpu_plan *plan,
			     const struct gpu_convolution *what, bool *can, struct mu_err *err);
/* Launches it, after plan_for said that the library can.  *done false: it could not after all,
 * nothing has been launched.  Its workspace is taken in the name of `holder`. */
int gpu_convolution(struct gpu *g, struct gpu_plan *plan, const struct gpu_convolution *what,
		    const struct gpu_convolution_at *at, const char *holder, bool *done,
		    struct mu_err *err);

#endif
