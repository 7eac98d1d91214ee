/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as PNG. */
#ifndef MU_IO_PNG_H
#define MU_IO_PNG_H

#include "lib/base/buf.h"

struct mu_png_shape {
	uint32_t height, width;
	unsigned channels; /* 1 (grey), 2 (grey, alpha), 3 (RGB) or 4 (RGBA) */
	unsigned bits;     /* of a channel: 8 or 16 (uint16_t) */
	int level;         /* of compression, 0 to 9; -1: zlib's own choice */
};

/* Appends a PNG of such pixels, which stand row by row. */
int mu_png_write(struct mu_buf *out, const void *pixels, const struct mu_png_shape *s,
		 struct mu_err *err);

/* A picture to be read: opened, then inflated, then asked for its pixels, in whatever form.  Any
 * bytes may be given; memory is asked for only as far as the file can fill it. */
struct mu_png {
	uint32_t width, height;
	unsigned bits, colour; /* of a sample; as the file numbers kinds of colour */
	bool interlaced, has_clear;
	uint16_t clear[4]; /* samples; none of a kind with alpha */
	unsigned colours;  /* in the palette: red, green, blue, alpha */
	unsigned char palette[256][4];
	uint32_t gamma;        /* in 100,000ths; 0: not said */
	struct mu_span chunks; /* from the first with pixels on; borrows the file */
	size_t packed;         /* bytes of pixels in them */
	unsigned char *rows;   /* each behind one byte */
};

int mu_png_open(struct mu_png *p, struct mu_span file, struct mu_err *err); /* borrows the file */
unsigned mu_png_channels(const struct mu_png *p); /* that the picture has by itself */
int mu_png_rows(struct mu_png *p, struct mu_err *err);
/* Of an inflated picture: height * width * channels (1 to 4) numbers of 8 or 16 bits. */
int mu_png_pixels(const struct mu_png *p, unsigned channels, unsigned bits, void *out,
		  struct mu_err *err);
void mu_png_fini(struct mu_png *p);

#endif
