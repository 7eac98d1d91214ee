/* SPDX-License-Identifier: Apache-2.0 */
/* BMP images: one, three or four bytes per pixel, uncompressed, without a palette. */
#ifndef MU_LIB_IO_BMP_H
#define MU_LIB_IO_BMP_H

#include "lib/base/buf.h"

struct mu_bmp {
	uint32_t width, height;
	unsigned channels;   /* 1, 3 (RGB) or 4 (RGBA) */
	bool is_top_down;    /* the top row is first */
	struct mu_span rows; /* all rows, each padded to four bytes; borrowed from the file */
};

/* The input is not trusted. */
int mu_bmp_open(struct mu_bmp *p, struct mu_span file, struct mu_err *err); /* borrows the file */
/* Writes height * width * channels (1, 3 or 4) bytes.  Without an alpha channel in the file alpha
 * is 255. */
void mu_bmp_pixels(const struct mu_bmp *p, unsigned channels, unsigned char *out);

#endif
