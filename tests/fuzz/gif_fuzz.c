/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes the input as a GIF file: all frames, and only the first. */
#include <stdint.h>
#include <stdlib.h>

#include "task/kernels/image/gif.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MAX_PIXELS = 1 << 16 }; /* bounds the time of an input */

static unsigned char *alloc_pixels(void *arg, const struct gif_shape *s, struct mu_err *err)
{
	unsigned char **pixels = arg;

	mu_fail(err, MU_RESOURCE_EXHAUSTED, "too many pixels");
	if (s->frames * s->height * s->width <= MAX_PIXELS)
		*pixels = malloc((size_t)(s->frames * s->height * s->width * 3));
	return *pixels;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span file = {(const char *)data, size};
	struct mu_err err;

	for (int all = 0; all < 2; all++) {
		unsigned char *pixels = NULL;
		gif_read(file, all, alloc_pixels, &pixels, &err);
		free(pixels);
	}
	return 0;
}
