/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling over windows of an NHWC or NDHWC tensor: the driver of MaxPool, AvgPool and their
 * variants on the CPU. */
#ifndef MU_TASK_KERNELS_NN_POOL_H
#define MU_TASK_KERNELS_NN_POOL_H

#include "task/kernels/nn/window.h"

struct pool {
	enum mu_dtype type;
	size_t size;
	int64_t batch, channels;
	struct window_axis plane, row, column; /* one plane in two dimensions */
	/* Fractional pools: the first row or column of each window, and the end of the last window.
	 * Windows that overlap include the first element of the next one.  NULL: all windows have
	 * the size of their axis. */
	const int64_t *row_bounds, *column_bounds;
	bool overlapping;
	const char *in, *grad;
	const char *top; /* the pool's output, for gradients in three dimensions */
	char *out;
	bool average, by_two, is_3d;
};

bool pool_has_maximum(enum mu_dtype t); /* MaxPool has loops for this type */

/* Pools input 0 into output 0.  Threads divide the lines of the output; for gradients they divide
 * the images. */
int pool_run(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
	     struct mu_err *err);
/* Computes the gradient by the pool's input, of shape `in`, into output 0; grad_at: the index of
 * the op's input with the output's gradient. */
int pool_run_backward(struct kernel_call *c, struct pool *p, const struct mu_shape *in,
		      unsigned grad_at, struct mu_err *err);
/* Computes the second gradient of a maximum, of this shape: the elements of input 2 at the maxima.
 */
int pool_run_second_backward(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
			     struct mu_err *err);
/* Output 0: the maxima.  Output 1, of argmax_type: their indices in their image, or in input 0 if
 * include_batch. */
int pool_run_argmax(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
		    enum mu_dtype argmax_type, bool include_batch, struct mu_err *err);
/* Pools lines [from, to) of the output, counted over images, planes and rows; arg: the pool. */
void pool_lines(void *arg, int64_t from, int64_t to);
/* The gradient of images [from, to); arg: the pool. */
void pool_images_backward(void *arg, int64_t from, int64_t to);

#endif
