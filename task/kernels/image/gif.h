/* SPDX-License-Identifier: Apache-2.0 */
/* GIF pictures, read by giflib, which TensorFlow has too. */
#ifndef MU_TASK_KERNELS_IMAGE_GIF_H
#define MU_TASK_KERNELS_IMAGE_GIF_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct gif_shape {
	int64_t frames, height, width; /* 3 channels */
};
/* alloc(arg, shape) gives memory for the pixels, or NULL with err set. */
typedef unsigned char *gif_alloc_fn(void *arg, const struct gif_shape *shape, struct mu_err *err);
/* Each frame shows what the earlier ones left where it is transparent or smaller.  all: every frame,
 * otherwise the first one.  A file that is cut short has the frames before the cut. */
int gif_read(struct mu_span file, bool all, gif_alloc_fn *alloc, void *arg, struct mu_err *err);

#endif
