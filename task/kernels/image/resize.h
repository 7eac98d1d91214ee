/* SPDX-License-Identifier: Apache-2.0 */
/* The weights for resizing images on any device: each output position along an axis is a weighted
 * sum of certain input positions, its taps. */
#ifndef MU_TASK_KERNELS_IMAGE_RESIZE_H
#define MU_TASK_KERNELS_IMAGE_RESIZE_H

#include "task/runtime/kernel.h"

struct resize_taps {
	int64_t n;      /* output positions */
	int64_t *first; /* n + 1 elements: position i has the taps first[i] to first[i + 1] - 1 */
	int64_t *at;
	float *weight;
	struct mu_tensor memory[3]; /* of the lists; counts towards the tensor memory limit */
};
struct resize_axis {
	int64_t in, out;
	float scale;
	bool corners, centers;

	/* ScaleAndTranslate only; `scale` is the reciprocal of its input */
	float translation, kernel_scale;
	const struct resample_kernel *kernel;
};
struct resize {
	const struct resize_method *method;
	struct resize_axis axis[2];
	int64_t images, depth;
	struct resize_taps taps[2]; /* rows, columns */
	const struct mu_tensor *in;
	struct mu_tensor *out;
};

/* resize_gpu.c: r->out is in GPU memory. backward: `in` is the gradient of the output, `out` that
 * of the image. */
int gpu_resize(struct kernel_call *c, const struct resize *r, bool backward, struct mu_err *err);

#endif
