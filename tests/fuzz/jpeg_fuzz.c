/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a JPEG file: its head, its pixels in several forms, and a part of it. */
#include <stdint.h>
#include <stdlib.h>

#include "task/kernels/image/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_PIXELS = 1 << 16 }; /* more take time, and nothing else */

static unsigned char *alloc_pixels(void *arg, const struct jpeg_shape *s, struct mu_err *err)
{
	unsigned char **pixels = arg;

	*pixels = malloc((size_t)(s->height * s->width * s->channels) + 1);
	return *pixels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct jpeg_read_options ways[] = {
	    {.channels = 3, .ratio = 1, .fancy = true, .truncated_ok = true},
	    {.channels = 1, .ratio = 2, .fast = true},
	    {.ratio = 1,
	     .truncated_ok = true,
	     .crops = true,
	     .top = 1,
	     .left = 3,
	     .height = 2,
	     .width = 2}};
	struct mu_span file = {(const char *)data, size};
	struct jpeg_shape s;
	struct mu_err err;

	if (jpeg_shape(file, &s, &err) || s.height * s.width > MOST_PIXELS)
		return 0;
	for (size_t i = 0; i < MU_COUNT(ways); i++) {
		unsigned char *pixels = NULL;
		jpeg_read(file, &ways[i], alloc_pixels, &pixels, &err);
		free(pixels);
	}
	return 0;
}
