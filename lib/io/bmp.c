/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/bmp.h"

#include <stdlib.h>
#include <string.h>

/* Offsets in the file header. */
enum { ROWS = 10, WIDTH = 18, HEIGHT = 22, BITS = 28, HEADER_BYTES = 32 };

static uint32_t bmp_number(struct mu_span file, size_t at, unsigned bytes)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < bytes; i++)
		n |= (uint32_t)(unsigned char)file.data[at + i] << 8 * i;
	return n;
}

static size_t row_bytes(const struct mu_bmp *p)
{
	return ((size_t)p->channels * p->width + 3) / 4 * 4;
}

int mu_bmp_open(struct mu_bmp *p, struct mu_span file, struct mu_err *err)
{
	if (file.len < HEADER_BYTES || memcmp(file.data, "BM", 2))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Incomplete bmp content, requires at least 32 bytes to find the "
			       "header size, width, height, and bpp, got %zu bytes",
			       file.len);
	int32_t width = (int32_t)bmp_number(file, WIDTH, 4),
		height = (int32_t)bmp_number(file, HEIGHT, 4);
	uint32_t rows = bmp_number(file, ROWS, 4), bits = bmp_number(file, BITS, 2);
	if (width <= 0 || !height || height == INT32_MIN)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "bmp image must have width > 0 and height != 0, not %d and %d",
			       (int)width, (int)height);
	if (bits != 8 && bits != 24 && bits != 32)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Number of channels inherent in the image must be 1, 3 or 4, was %u",
			       bits / 8);
	struct mu_bmp bmp = {.width = (uint32_t)width,
			     .height = (uint32_t)abs(height),
			     .channels = bits / 8,
			     .is_top_down = height < 0};
	size_t row_size = row_bytes(&bmp); /* less than 2^33, so the product does not overflow */
	if (rows > file.len || row_size * bmp.height > file.len - rows)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Incomplete bmp content, requires at least %zu bytes, got %zu bytes",
			       rows + row_size * bmp.height, file.len);
	bmp.rows = (struct mu_span){file.data + rows, row_size * bmp.height};
	*p = bmp;
	return 0;
}

void mu_bmp_pixels(const struct mu_bmp *p, unsigned channels, unsigned char *out)
{
	static const unsigned order[] = {2, 1, 0,
					 3}; /* a BMP file has the order blue, green, red */

	for (uint32_t y = 0; y < p->height; y++) {
		const char *row =
		    p->rows.data + (p->is_top_down ? y : p->height - 1 - y) * row_bytes(p);
		for (uint32_t x = 0; x < p->width; x++, row += p->channels)
			for (unsigned k = 0; k < channels; k++)
				*out++ = k == 3 && p->channels < 4
					     ? 255
					     : (unsigned char)row[p->channels == 1 ? 0 : order[k]];
	}
}
