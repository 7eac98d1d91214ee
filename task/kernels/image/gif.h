/* SPDX-License-Identifier: Apache-2.0 */
/* GIF images, decoded by giflib, as in TensorFlow. */
#ifndef MU_TASK_KERNELS_IMAGE_GIF_H
#define MU_TASK_KERNELS_IMAGE_GIF_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct gif_shape {
	int64_t frames, height, width; /* 3 channels */
};
/* alloc(arg, shape) returns memory for the pixels, or NULL with err set. */
typedef unsigned char *gif_alloc_fn(void *arg, const struct gif_shape *shape, struct mu_err *err);
/* Decodes all frames or the first frame.  Where a frame is transparent or smaller than the canvas,
 * it shows the previous frame.  A truncated file yields the frames before the truncation. */
int gif_read(struct mu_span file, bool all_frames, gif_alloc_fn *alloc, void *arg,
	     struct mu_err *err);

#endif
