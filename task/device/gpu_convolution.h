/* SPDX-License-Identifier: Apache-2.0 */
/* 2-D convolutions by cuDNN, if it is installed: NHWC, the filter as [filters, rows, columns,
 * channels of a group], the same padding on both sides.  Sums are in float for the 16-bit types; in
 * TF32 for float only if MUSTER_TF32=1 allows it. */
#ifndef MU_TASK_DEVICE_GPU_CONVOLUTION_H
#define MU_TASK_DEVICE_GPU_CONVOLUTION_H

#include "task/device/gpu.h"

enum gpu_convolution_direction {
	GPU_CONVOLUTION_FORWARD,
	GPU_CONVOLUTION_TO_INPUT,
	GPU_CONVOLUTION_TO_FILTER,
	GPU_CONVOLUTION_DIRECTIONS
};
struct gpu_convolution_axis {
	int64_t in, size, stride, dilation, out, pad; /* pad: before and after */
};
struct gpu_convolution {
	enum mu_dtype type;
	enum gpu_convolution_direction direction;
	int64_t batch, channels, filters, groups;
	struct gpu_convolution_axis row, column;
};
struct gpu_convolution_at { /* addresses; the convolution reads two and writes the third */
	cuda_ptr input, filter, output;
};

extern bool gpu_convolution_is_enabled; /* tests disable it */
/* False: cuDNN is disabled, not installed or does not start. */
bool gpu_convolution_is_available(const struct gpu *g);
/* *is_launched false: cuDNN cannot compute it, and nothing was launched.  `holder` names the owner
 * of the workspace. */
int gpu_convolution(struct gpu *g, const struct gpu_convolution *c,
		    const struct gpu_convolution_at *at, const char *holder, bool *is_launched,
		    struct mu_err *err);

#endif
