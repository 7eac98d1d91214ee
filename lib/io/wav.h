/* SPDX-License-Identifier: Apache-2.0 */
/* Sounds as WAV files of 16-bit samples. */
#ifndef MU_IO_WAV_H
#define MU_IO_WAV_H

#include "lib/base/buf.h"

struct mu_wav {
	uint32_t rate; /* frames a second */
	unsigned channels;
	size_t frames;       /* a sample for each channel */
	struct mu_span data; /* little-endian samples, frame by frame; borrows the file */
};

/* Any bytes may be given. */
int mu_wav_open(struct mu_wav *w, struct mu_span file, struct mu_err *err);  /* borrows the file */
float mu_wav_sample(const struct mu_wav *w, size_t frame, unsigned channel); /* in [-1, 1) */
/* Appends a file of such samples; what is beyond 16 bits is cut off. */
int mu_wav_write(struct mu_buf *out, const float *samples, size_t frames, unsigned channels,
		 uint32_t rate, struct mu_err *err);

#endif
