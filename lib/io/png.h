/* SPDX-License-Identifier: Apache-2.0 */
/* PNG images, through libpng.  TensorFlow uses it too, so the pixels are the same. */
#ifndef MU_LIB_IO_PNG_H
#define MU_LIB_IO_PNG_H

#include "lib/base/buf.h"

struct mu_png_shape {
	uint32_t height, width;
	unsigned channels; /* 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) */
	unsigned bits;     /* of a channel: 8 or 16 (uint16_t) */
	int level;         /* of compression, 0 to 9; -1: zlib's default */
};

/* Appends a PNG of pixels that are stored row by row. */
int mu_png_write(struct mu_buf *out, const void *pixels, const struct mu_png_shape *s,
		 struct mu_err *err);

/* A PNG reader for untrusted input.  mu_png_open rejects a file that is too short for the size in
 * its header, so a small file cannot cause large allocations. */
struct mu_png {
	uint32_t width, height;
	unsigned channels; /* of the file; a palette has 3, or 4 with transparency */
	/* private */
	struct png_struct_def *png;
	struct png_info_def *info;
	struct mu_span file, remaining; /* borrowed */
	char message[128];              /* libpng's error */
};

/* Reads the header.  The struct must not be moved until mu_png_fini. */
int mu_png_open(struct mu_png *p, struct mu_span file, struct mu_err *err);
/* Converts the pixels to `channels` (1 to 4) of `bits` (8 or 16); out has room for height * width *
 * channels samples.  At most one call per open. */
int mu_png_read(struct mu_png *p, unsigned channels, unsigned bits, void *out, struct mu_err *err);
void mu_png_fini(struct mu_png *p);

#endif
