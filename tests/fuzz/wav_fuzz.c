/* SPDX-License-Identifier: Apache-2.0 */
/* Parses the input as a WAV file, whose samples must be less than 1, and as a BMP file. */
#include <stdint.h>
#include <stdlib.h>

#include "lib/io/bmp.h"
#include "lib/io/wav.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct mu_span file = {(const char *)data, size};
	struct mu_bmp picture;
	struct mu_err err;
	struct mu_wav w;
	float loudest = 0;

	if (mu_wav_open(&w, file, &err) == 0)
		for (size_t i = 0; i < w.frames; i++)
			for (unsigned k = 0; k < w.channels; k++)
				loudest = mu_wav_sample(&w, i, k) > loudest
					      ? mu_wav_sample(&w, i, k)
					      : loudest;
	if (loudest >= 1)
		abort();
	if (mu_bmp_open(&picture, file, &err) == 0) {
		unsigned char *out = malloc((size_t)picture.height * picture.width * 4);
		mu_bmp_pixels(&picture, picture.channels, out);
		mu_bmp_pixels(&picture, 4, out);
		free(out);
	}
	return 0;
}
