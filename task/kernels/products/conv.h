/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of NHWC tensors with HWIO filters.
 *
 * Input channels and output channels fall into `groups` equal parts; each output channel sees only
 * its own group.  One group is Conv2D, as many groups as input channels is a depthwise convolution
 * (whose filter [rows, columns, channels, multiplier] has the same bytes as [rows, columns, 1,
 * channels * multiplier]). */
#ifndef MU_TASK_KERNELS_PRODUCTS_CONV_H
#define MU_TASK_KERNELS_PRODUCTS_CONV_H

#include "task/kernels/window.h"

struct conv {
	enum mu_dtype type; /* float or double */
	int64_t batch, channels, filters, groups;
	struct window_axis row, column;
};

/* The mathematics, loop by loop: what the fast path is tested against, and what runs for shapes
 * that it does not take.  Outputs are written whole.  A shape without outputs or taps is fine. */
void conv_plain(const struct conv *g, const void *input, const void *filter, void *output);
void conv_plain_input(const struct conv *g, const void *filter, const void *grad, void *input);
void conv_plain_filter(const struct conv *g, const void *input, const void *grad, void *filter);

/* The same, spread over the pool: patches and matrix products for one group, direct loops for
 * depthwise convolutions. */
int conv_run(struct kernel_call *c, const struct conv *g, const void *input, const void *filter,
	     void *output, struct mu_err *err);
int conv_run_input(struct kernel_call *c, const struct conv *g, const void *filter,
		   const void *grad, void *input, struct mu_err *err);
int conv_run_filter(struct kernel_call *c, const struct conv *g, const void *input,
		    const void *grad, void *filter, struct mu_err *err);

static inline int64_t conv_group_channels(const struct conv *g)
{
	return g->groups ? g->channels / g->groups : 0;
}
static inline int64_t conv_group_filters(const struct conv *g)
{
	return g->groups ? g->filters / g->groups : 0;
}

#endif
