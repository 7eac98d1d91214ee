/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/bmp.h"

#include <stdlib.h>
#include <string.h>

/* Offsets in the file header. */
enum { ROWS_AT = 10, WIDTH = 18, HEIGHT = 22, BITS = 28, HEAD = 32 };

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
	if (file.len < HEAD || memcmp(file.data, "BM", 2))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Incomplete bmp content, requires at least 32 bytes to find the "
			       "header size, width, height, and bpp, got %zu bytes",
			       file.len);
	int32_t width = (int32_t)bmp_number(file, WIDTH, 4),
		height = (int32_t)bmp_number(file, HEIGHT, 4);
	uint32_t rows = bmp_number(file, ROWS_AT, 4), bits = bmp_number(file, BITS, 2);
	if (width <= 0 || !height || height == INT32_MIN)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "bmp image must have width > 0 and height != 0, not %d and %d",
			       (int)width, (int)height);
	if (bits != 8 && bits != 24 && bits != 32)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Number of channels inherent in the image must be 1, 3 or 4, was %u",
			       bits / 8);
	struct mu_bmp found = {.width = (uint32_t)width,
			       .height = (uint32_t)abs(height),
			       .channels = bits / 8,
			       .down = height < 0};
	size_t each = row_bytes(&found); /* under 2^34: the product fits */
	if (rows > file.len || each * found.height > file.len - rows)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Incomplete bmp content, requires at least %zu bytes, got %zu bytes",
			       rows + each * found.height, file.len);
	found.rows = (struct mu_span){file.data + rows, each * found.height};
	*p = found;
	return 0;
}

void mu_bmp_pixels(const struct mu_bmp *p, unsigned channels, unsigned char *out)
{
	static const unsigned from[] = {2, 1, 0, 3}; /* blue comes first there */

	for (uint32_t y = 0; y < p->height; y++) {
		const char *row = p->rows.data + (p->down ? y : p->height - 1 - y) * row_bytes(p);
		for (uint32_t x = 0; x < p->width; x++, row += p->channels)
			for (unsigned k = 0; k < channels; k++)
				*out++ = k == 3 && p->channels < 4
					     ? 255
					     : (unsigned char)row[p->channels == 1 ? 0 : from[k]];
	}
}
