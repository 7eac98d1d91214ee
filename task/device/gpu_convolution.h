/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of images by NVIDIA's library, where it is installed: NHWC, the filter as [filters,
 * rows, columns, channels of a group], padding alike on both sides.  Sums are made in float for the
 * 16-bit types; in TF32 for float only where MUSTER_TF32=1 allows it. */
#ifndef MU_TASK_DEVICE_GPU_CONVOLUTION_H
#define MU_TASK_DEVICE_GPU_CONVOLUTION_H

#include "task/device/gpu.h"

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
struct gpu_convolution_at { /* two are read; `way` selects the one that is written */
	cuda_ptr input, filter, output;
};

extern bool gpu_convolution_is_enabled; /* tests disable it */
/* False: cuDNN is disabled, not installed or does not start. */
bool gpu_convolution_is_available(const struct gpu *g);
/* *done false: cuDNN cannot compute it, and nothing has been launched.  `holder` names the owner of
 * the workspace. */
int gpu_convolution(struct gpu *g, const struct gpu_convolution *what,
		    const struct gpu_convolution_at *at, const char *holder, bool *done,
		    struct mu_err *err);

#endif
