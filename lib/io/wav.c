/* SPDX-License-Identifier: Apache-2.0 */
/* A file is "RIFF", a length, "WAVE" and chunks: a name of four letters, a length, bytes, one more
 * where the length is odd.  "fmt " says how samples are kept, "data" has them; the rest is passed
 * over. */
#include "lib/io/wav.h"

#include <math.h>
#include <string.h>

enum { HEAD = 12, CHUNK = 8, FORMAT = 16, PCM = 1, SAMPLE = 2, FULL = 1 << 15 };

static uint32_t number(const char *at, unsigned bytes)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < bytes; i++)
		n |= (uint32_t)(unsigned char)at[i] << 8 * i;
	return n;
}

static bool named(const char *at, const char *name)
{
	return memcmp(at, name, 4) == 0;
}

static int read_format(struct mu_wav *w, const char *at, size_t len, struct mu_err *err)
{
	if (len < FORMAT)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad chunk size for WAV: Expected 16 or 18, but got %zu", len);
	uint32_t format = number(at, 2), bits = number(at + 14, 2), each = number(at + 12, 2);
	w->channels = number(at + 2, 2);
	w->rate = number(at + 4, 4);
	if (format != PCM)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad audio format for WAV: Expected 1 (PCM), but got%u", format);
	if (bits != 8 * SAMPLE)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Can only read 16-bit WAV files, but received %u", bits);
	if (!w->channels)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad number of channels for WAV: Expected at least 1, but got 0");
	if (each != w->channels * SAMPLE)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad bytes per sample in WAV header: Expected %u but got %u",
			       w->channels * SAMPLE, each);
	if (w->rate > INT32_MAX || number(at + 8, 4) != w->rate * each)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad bytes per second in WAV header: Expected %u but got %u "
			       "(sample_rate=%u, bytes_per_sample=%u)",
			       w->rate * each, number(at + 8, 4), w->rate, each);
	return 0;
}

int mu_wav_open(struct mu_wav *w, struct mu_span file, struct mu_err *err)
{
	*w = (struct mu_wav){0};
	if (file.len < HEAD || !named(file.data, "RIFF") || !named(file.data + 8, "WAVE"))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Header mismatch: Expected RIFF and WAVE in a WAV file of %zu bytes",
			       file.len);
	for (size_t at = HEAD; file.len - at >= CHUNK;) {
		const char *chunk = file.data + at;
		size_t len = number(chunk + 4, 4), left = file.len - at - CHUNK;
		if (named(chunk, "data") && w->channels) {
			size_t whole = len < left ? len : left;
			w->frames = whole / (w->channels * SAMPLE);
			w->data = (struct mu_span){chunk + CHUNK, whole};
			return len > left ? mu_fail(err, MU_INVALID_ARGUMENT,
						    "Data too short when trying to read string")
					  : 0;
		}
		if (len > left)
			break;
		int rc = named(chunk, "fmt ") ? read_format(w, chunk + CHUNK, len, err) : 0;
		if (rc)
			return rc;
		at += CHUNK + len + (len % 2 && len < left);
	}
	return mu_fail(err, MU_INVALID_ARGUMENT, "the WAV file has no %s",
		       w->channels ? "data" : "format before its data");
}

float mu_wav_sample(const struct mu_wav *w, size_t frame, unsigned channel)
{
	const char *at = w->data.data + (frame * w->channels + channel) * SAMPLE;

	return (float)(int16_t)number(at, SAMPLE) / FULL;
}

static void put(struct mu_buf *b, uint32_t n, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		mu_buf_putc(b, (char)(n >> 8 * i));
}

int mu_wav_write(struct mu_buf *out, const float *samples, size_t frames, unsigned channels,
		 uint32_t rate, struct mu_err *err)
{
	if (!channels || channels > UINT16_MAX / SAMPLE ||
	    frames > (INT32_MAX - 64) / SAMPLE / channels)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "%zu frames of %u channels are no WAV file", frames, channels);
	if (!rate || rate > INT32_MAX / (channels * SAMPLE))
		return mu_fail(err, MU_INVALID_ARGUMENT, "sample_rate must be positive: %u", rate);
	uint32_t bytes = (uint32_t)(frames * channels * SAMPLE);
	mu_buf_puts(out, "RIFF");
	put(out, HEAD - CHUNK + CHUNK + FORMAT + CHUNK + bytes, 4);
	mu_buf_puts(out, "WAVEfmt ");
	put(out, FORMAT, 4);
	put(out, PCM, 2);
	put(out, channels, 2);
	put(out, rate, 4);
	put(out, rate * channels * SAMPLE, 4);
	put(out, channels * SAMPLE, 2);
	put(out, 8 * SAMPLE, 2);
	mu_buf_puts(out, "data");
	put(out, bytes, 4);
	for (size_t i = 0; i < frames * channels; i++) {
		float v = roundf(samples[i] * FULL);
		v = v > FULL - 1 ? FULL - 1 : v >= -FULL ? v : -FULL; /* the last for NaN, too */
		put(out, (uint16_t)(int16_t)v, SAMPLE);
	}
	return 0;
}
