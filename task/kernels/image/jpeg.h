/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG images, decoded and encoded by libjpeg-turbo, as in TensorFlow, with the same bytes.  A
 * build without libjpeg fails with UNIMPLEMENTED. */
#ifndef MU_TASK_KERNELS_IMAGE_JPEG_H
#define MU_TASK_KERNELS_IMAGE_JPEG_H

#include <stdbool.h>

#include "lib/base/buf.h"
#include "lib/base/err.h"

struct jpeg_shape {
	int64_t height, width, channels;
};
/* Reads the header of a file. */
int jpeg_shape(struct mu_span file, struct jpeg_shape *out, struct mu_err *err);

struct jpeg_read_options {
	int channels;      /* 1 or 3; 0: as many as the file has */
	unsigned ratio;    /* downscaling by 1, 2, 4 or 8 */
	bool fancy, fast;  /* fancy chroma upsampling; the fast DCT */
	bool truncated_ok; /* the missing part of a truncated file is grey */
	bool crops;
	int64_t top, left, height, width; /* of the crop */
};
/* alloc(arg, shape) returns memory for the pixels, or NULL with err set. */
typedef unsigned char *jpeg_alloc_fn(void *arg, const struct jpeg_shape *shape, struct mu_err *err);
int jpeg_read(struct mu_span file, const struct jpeg_read_options *options, jpeg_alloc_fn *alloc,
	      void *arg, struct mu_err *err);

struct jpeg_write_options {
	int quality; /* 0 to 100 */
	bool progressive, optimize, downsample;
	int density_unit, x_density, y_density; /* 0: none, 1: inch, 2: cm */
	struct mu_span xmp;
};
/* Appends the file of an image of 1 or 3 channels. */
int jpeg_write(struct mu_buf *b, const unsigned char *pixels, const struct jpeg_shape *s,
	       const struct jpeg_write_options *options, struct mu_err *err);

#endif
