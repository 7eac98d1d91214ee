/* SPDX-License-Identifier: Apache-2.0 */
/* Pools by NVIDIA's library, where it is installed: NHWC, padding alike on both sides and less than
 * a window.  Averages are of what lies in the image; of them, gradients too.  Gradients of the
 * largest are not its: it finds them by comparing with the output, which a caller of the op may
 * have lost, and says nothing of several that are as large. */
#ifndef MU_TASK_DEVICE_GPU_POOLING_H
#define MU_TASK_DEVICE_GPU_POOLING_H

#include "task/device/gpu_convolution.h"

struct gpu_pooling {
	enum mu_dtype type;
	bool average, back; /* back: of averages */
	int64_t batch, channels;
	struct gpu_convolution_axis row, column;
};

/* The caller keeps the plan from one run to the next. */
struct gpu_plan *gpu_pooling_plan_new(void);

/* Launches it: from the one to the other, of a gradient from the output's to the input's.  *done
 * false: the library is not there or cannot, nothing has been launched. */
int gpu_pooling(struct gpu *g, struct gpu_plan *plan, const struct gpu_pooling *what, cuda_ptr from,
		cuda_ptr to, bool *done, struct mu_err *err);

#endif
