/* SPDX-License-Identifier: Apache-2.0 */
/* Window geometry over planes, rows and columns of an NDHWC tensor, shared by convolution and
 * pooling in three dimensions. */
#ifndef MU_TASK_KERNELS_NN_VOLUME_H
#define MU_TASK_KERNELS_NN_VOLUME_H

#include "task/kernels/nn/window.h"

enum { VOLUME_AXES = 3, VOLUME_RANK = 5 };

/* The attributes of each axis, as axis 0 of a struct window_attrs. */
struct volume_attrs {
	struct window_attrs axis[VOLUME_AXES];
};
struct volume {
	enum mu_dtype type; /* float or double */
	size_t size;        /* bytes of an element */
	int64_t batch, channels;
	struct window_axis axis[VOLUME_AXES];
};

/* Makes a struct volume_attrs the node's state, with ksize if the op has it. */
int volume_prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err);
/* Sets up windows over an input of this shape and type.  size: their sizes; NULL: ksize. */
int volume_init(struct volume *v, const struct kernel_call *c, enum mu_dtype type,
		const struct mu_shape *in, const int64_t *size, struct mu_err *err);
/* The shape of the window's output, for this number of channels. */
int volume_out_shape(const struct volume *v, int64_t channels, struct mu_shape *s,
		     struct mu_err *err);

/* Calls body for each tap inside the input at output position `at` (counted over batch, planes,
 * rows, columns), with the tap's number and the index of its first channel in the input. */
typedef void volume_tap(void *arg, int64_t tap, int64_t channels_at);
void volume_taps(const struct volume *v, int64_t at, volume_tap *body, void *arg);

#endif
