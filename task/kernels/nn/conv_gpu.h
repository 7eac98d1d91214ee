/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions on a GPU, behind one seam: what is to be summed has been checked (struct conv),
 * where it lies is on the GPU.  By cuDNN where it is installed and can (see
 * device/gpu_convolution.h); else by patches and matrix products for one group, by sums for more.
 */
#ifndef MU_TASK_KERNELS_NN_CONV_GPU_H
#define MU_TASK_KERNELS_NN_CONV_GPU_H

#include "task/device/gpu_convolution.h"
#include "task/kernels/engine/gpu_matmul.h"
#include "task/kernels/nn/conv.h"

/* Windows as our kernels have them; and as the library has them, which pads both sides alike. */
struct window_axis_args gpu_window_axis(const struct window_axis *x);
bool gpu_window_is_even(const struct window_axis *x);
struct gpu_convolution_axis gpu_even_axis(const struct window_axis *x);

struct gpu_conv { /* of one node */
	struct gpu *gpu;
	enum gpu_convolution_way way;
	struct gpu_plan *plan; /* the library's */
	void *transpose;
	struct gpu_matmul by;
	void *patches, *unpatch, *groups, *add, *sum;
};
int gpu_conv_init(struct gpu_conv *k, struct gpu *g, enum mu_dtype t, enum gpu_convolution_way way,
		  struct mu_err *err);
void gpu_conv_fini(struct gpu_conv *k);
/* Two of the three are read, the one that `way` names is written whole.  There is an image, and a
 * channel. */
int gpu_conv_run(struct kernel_call *c, const struct gpu_conv *k, const struct conv *g,
		 cuda_ptr input, cuda_ptr filter, cuda_ptr output, struct mu_err *err);

/* Bytes of patches that are made at once, of one image at least; for tests to change. */
extern int64_t gpu_conv_room;
/* True if the library is used at all. */
extern bool gpu_conv_by_library;

#endif
