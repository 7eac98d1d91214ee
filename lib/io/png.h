/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures as PNG: 8 bits a channel. */
#ifndef MU_IO_PNG_H
#define MU_IO_PNG_H

#include "lib/base/buf.h"

/* Appends a PNG of height x width pixels, row by row, of 1 (grey), 2 (grey, alpha), 3 (RGB) or 4
 * (RGBA) bytes each. */
int mu_png_write(struct mu_buf *out, const unsigned char *pixels, uint32_t height, uint32_t width,
		 unsigned channels, struct mu_err *err);

#endif
