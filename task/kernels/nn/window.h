/* SPDX-License-Identifier: Apache-2.0 */
/* Window geometry over rows and columns of an NHWC tensor, shared by convolution and pooling.
 * Attributes are read once; sizes are checked each step.
 *
 * window_axis_set accepts only sizes below 2^31, so positions inside a padded input may be computed
 * in int64_t without further checks. */
#ifndef MU_TASK_KERNELS_NN_WINDOW_H
#define MU_TASK_KERNELS_NN_WINDOW_H

#include "task/runtime/kernel.h"

enum window_padding { WINDOW_VALID, WINDOW_SAME, WINDOW_EXPLICIT };
enum { WINDOW_ROWS, WINDOW_COLUMNS, WINDOW_AXES };

struct window_attrs {
	enum window_padding padding;
	int64_t stride[WINDOW_AXES], dilation[WINDOW_AXES];
	int64_t size[WINDOW_AXES];   /* pooling: ksize */
	int64_t pad[WINDOW_AXES][2]; /* WINDOW_EXPLICIT: before, after */
	int64_t depth_size, depth_stride; /* pooling: over channels */
};
struct window_axis {
	int64_t in, size, stride, dilation, out, pad; /* pad: zeros before the first element */
};

/* Strides, dilations, padding and data format of a convolution. */
int window_attrs_conv(const struct mu_node *n, struct window_attrs *a, struct mu_err *err);
/* Padding and data format of a pooling op and, unless they are inputs (the V2 ops), ksize and
 * strides. */
int window_attrs_pool(const struct mu_node *n, struct window_attrs *a, struct mu_err *err);
/* Checks and sets ksize and strides, four numbers each. */
int window_pool_set(struct window_attrs *a, const int64_t ksize[4], const int64_t strides[4],
		    struct mu_err *err);
/* Sets up a window of `size` over `in` elements; computes out and pad. */
int window_axis_set(struct window_axis *x, const struct window_attrs *a, int axis, int64_t in,
		    int64_t size, struct mu_err *err);

/* Sets the taps [*from, *to) that are inside the input at output position o, and returns the input
 * element of the first one. */
static inline int64_t window_clip(const struct window_axis *x, int64_t o, int64_t *from,
				  int64_t *to)
{
	int64_t at = o * x->stride - x->pad, d = x->dilation;
	int64_t first = at < 0 ? (-at + d - 1) / d : 0;
	int64_t end = at < x->in ? (x->in - at + d - 1) / d : 0;

	*to = end < x->size ? end : x->size;
	*from = first < *to ? first : *to;
	return at + *from * d;
}

#endif
