/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of NHWC tensors with HWIO filters.
 *
 * Input and output channels form `groups` equal parts; an output channel depends only on the
 * input channels of its group. Conv2D has one group. A depthwise convolution has as many groups as
 * input channels; its filter [rows, columns, channels, multiplier] has the same bytes as [rows,
 * columns, 1, channels * multiplier]. */
#ifndef MU_TASK_KERNELS_NN_CONV_H
#define MU_TASK_KERNELS_NN_CONV_H

#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/nn/window.h"

struct conv {
	enum mu_dtype type; /* float, double or int32 */
	int64_t batch, channels, filters, groups;
	struct window_axis row, column;
};

/* The tensor that is computed from the two others. */
enum conv_direction { CONV_OUTPUT, CONV_INPUT_GRAD, CONV_FILTER_GRAD };

/* Computes the convolution by its definition, in the calling thread.  x is the input or its
 * gradient, w the filter or its gradient, y the output or its gradient.  The computed tensor is
 * written whole.  A shape without outputs or taps is fine. */
void conv_plain(const struct conv *g, enum conv_direction direction, void *x, void *w, void *y);
/* The same over the pool: matrix products, direct sums (conv_direct.h), or sums over vectors of
 * filters (conv_grouped.h). */
int conv_run(struct kernel_call *c, const struct conv *g, enum conv_direction direction, void *x,
	     void *w, void *y, struct mu_err *err);

/* Calls `window` for each output position, with x and w at the first tap inside the input.
 * pixel: elements of x from pixel to pixel; steps: the steps between taps. */
typedef void conv_window(const struct conv *g, enum conv_direction direction,
			 const struct conv_taps *t, void *x, void *w, void *y);
void conv_windows(const struct conv *g, enum conv_direction direction, int64_t pixel,
		  const struct conv_taps *steps, void *x, void *w, void *y, conv_window *window);

static inline int64_t conv_group_channels(const struct conv *g)
{
	return g->groups ? g->channels / g->groups : 0;
}
static inline int64_t conv_group_filters(const struct conv *g)
{
	return g->groups ? g->filters / g->groups : 0;
}

#endif
