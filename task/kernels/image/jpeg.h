/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG pictures, read and written by libjpeg-turbo, which TensorFlow has too: the same bytes.  A
 * build that did not find it answers UNIMPLEMENTED. */
#ifndef MU_TASK_KERNELS_IMAGE_JPEG_H
#define MU_TASK_KERNELS_IMAGE_JPEG_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct jpeg_shape {
	int64_t height, width, channels;
};
/* Contents of a file's header. */
int jpeg_shape(struct mu_span file, struct jpeg_shape *out, struct mu_err *err);

struct jpeg_reading {
	int channels;      /* 1 or 3; 0: as many as the file has */
	unsigned ratio;    /* made smaller by 1, 2, 4 or 8 */
	bool fancy, fast;  /* how colours are spread; which transform */
	bool truncated_ok; /* what a file that is cut short lacks is grey */
	bool crops;
	int64_t top, left, height, width; /* of the crop */
};
/* alloc(arg, shape) gives memory for the pixels, or NULL with err set. */
typedef unsigned char *jpeg_alloc_fn(void *arg, const struct jpeg_shape *shape, struct mu_err *err);
int jpeg_read(struct mu_span file, const struct jpeg_reading *how, jpeg_alloc_fn *alloc, void *arg,
	      struct mu_err *err);

struct jpeg_writing {
	int quality; /* 0 to 100 */
	bool progressive, optimize, downsample;
	int density_unit, x_density, y_density; /* 0: none, 1: inch, 2: cm */
	struct mu_span xmp;
};
/* Appends a file of 1 or 3 channels. */
int jpeg_write(struct mu_buf *b, const unsigned char *pixels, const struct jpeg_shape *s,
	       const struct jpeg_writing *how, struct mu_err *err);

#endif
