/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as BMP files: one, three or four bytes a pixel, not packed, no palette. */
#ifndef MU_IO_BMP_H
#define MU_IO_BMP_H

#include "lib/base/buf.h"

struct mu_bmp {
	uint32_t width, height;
	unsigned channels;   /* 1, 3 (RGB) or 4 (RGBA) */
	bool down;           /* the first row is the topmost */
	struct mu_span rows; /* all of them, each filled up to four bytes; borrows the file */
};

/* Any bytes may be given. */
int mu_bmp_open(struct mu_bmp *p, struct mu_span file, struct mu_err *err); /* borrows the file */
/* height * width * channels (1, 3 or 4) bytes; where the file says nothing of alpha, all is there.
 */
void mu_bmp_pixels(const struct mu_bmp *p, unsigned channels, unsigned char *out);

#endif
