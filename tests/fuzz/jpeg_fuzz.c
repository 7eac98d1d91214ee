/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the input as a JPEG file: the header, the pixels in several formats, and a crop. */
#include <stdint.h>
#include <stdlib.h>

#include "task/kernels/image/jpeg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PIXELS = 1 << 16 }; /* bounds the time of an input */

static unsigned char *alloc_pixels(void *arg, const struct jpeg_shape *s, struct mu_err *err)
{
	unsigned char **pixels = arg;

	*pixels = malloc((size_t)(s->height * s->width * s->channels) + 1);
	return *pixels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct jpeg_read_options options[] = {
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

	if (jpeg_shape(file, &s, &err) || s.height * s.width > MAX_PIXELS)
		return 0;
	for (size_t i = 0; i < MU_COUNT(options); i++) {
		unsigned char *pixels = NULL;
		jpeg_read(file, &options[i], alloc_pixels, &pixels, &err);
		free(pixels);
	}
	return 0;
}
