/* SPDX-License-Identifier: Apache-2.0 */
/* WAV files with 16-bit samples. */
#ifndef MU_LIB_IO_WAV_H
#define MU_LIB_IO_WAV_H

#include "lib/base/buf.h"

struct mu_wav {
	uint32_t rate; /* frames per second */
	unsigned channels;
	size_t frames;       /* a frame is one sample per channel */
	struct mu_span data; /* little-endian samples, frame by frame; borrowed from the file */
};

/* The input is not trusted. */
int mu_wav_open(struct mu_wav *w, struct mu_span file, struct mu_err *err);  /* borrows the file */
float mu_wav_sample(const struct mu_wav *w, size_t frame, unsigned channel); /* in [-1, 1) */
/* Appends a file; samples outside the range of 16 bits are clamped. */
int mu_wav_write(struct mu_buf *out, const float *samples, size_t frames, unsigned channels,
		 uint32_t rate, struct mu_err *err);

#endif
