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
	/* Fractional pools: where the windows of rows and of columns begin, and the end of the last
	 * one.  Windows that overlap include the first element of the next one.  NULL: all windows
	 * have the size of their axis. */
	const int64_t *row_bounds, *column_bounds;
	bool overlapping;
	const char *in, *grad;
	const char *top; /* of three dimensions: the output, for the gradient */
	char *out;
	bool average, by_two, is_3d;
};

bool pool_has_maximum(enum mu_dtype t); /* there are loops for the maxima of this type */

/* Pools input 0 into output 0.  Threads take different lines of the output; those of the gradient
 * take different images. */
int pool_run(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
	     struct mu_err *err);
/* The gradient into output 0, of the shape of the pool's input; grad_at: the input that is the
 * output's gradient. */
int pool_run_backward(struct kernel_call *c, struct pool *p, const struct mu_shape *in,
		      unsigned grad_at, struct mu_err *err);
/* The second gradient of a maximum, of this shape: the elements of input 2 at the maxima. */
int pool_run_second_backward(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
			     struct mu_err *err);
/* Output 0: the maxima; output 1, of place_type: where they are in their image.  whole: where they
 * are in input 0. */
int pool_run_places(struct kernel_call *c, struct pool *p, const struct mu_shape *shape,
		    enum mu_dtype place_type, bool whole, struct mu_err *err);
/* Pools lines [from, to) of the output, counted over images, planes and rows; arg: the pool. */
void pool_lines(void *arg, int64_t from, int64_t to);
/* The gradient of images [from, to); arg: the pool. */
void pool_images_backward(void *arg, int64_t from, int64_t to);

#endif
