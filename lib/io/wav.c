/* SPDX-License-Identifier: Apache-2.0 */
/* A file has "RIFF", a length, "WAVE" and chunks.  A chunk has a name of four letters, a length,
 * data, and a pad byte if the length is odd.  "fmt " has the sample format, "data" the samples;
 * other chunks are skipped. */
#include "lib/io/wav.h"

#include <math.h>
#include <string.h>

enum { HEADER = 12, CHUNK = 8, FORMAT = 16, PCM = 1, SAMPLE = 2, FULL_SCALE = 1 << 15 };

static uint32_t wav_number(const char *at, unsigned bytes)
{
	uint32_t n = 0;

	for (unsigned i = 0; i < bytes; i++)
		n |= (uint32_t)(unsigned char)at[i] << 8 * i;
	return n;
}

static bool has_name(const char *at, const char *name)
{
	return memcmp(at, name, 4) == 0;
}

static int read_format(struct mu_wav *w, const char *at, size_t len, struct mu_err *err)
{
	if (len < FORMAT)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad chunk size for WAV: Expected 16 or 18, but got %zu", len);
	uint32_t format = wav_number(at, 2), bits = wav_number(at + 14, 2),
		 frame_bytes = wav_number(at + 12, 2);
	w->channels = wav_number(at + 2, 2);
	w->rate = wav_number(at + 4, 4);
	if (format != PCM)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad audio format for WAV: Expected 1 (PCM), but got%u", format);
	if (bits != 8 * SAMPLE)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Can only read 16-bit WAV files, but received %u", bits);
	if (!w->channels)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad number of channels for WAV: Expected at least 1, but got 0");
	if (frame_bytes != w->channels * SAMPLE)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad bytes per sample in WAV header: Expected %u but got %u",
			       w->channels * SAMPLE, frame_bytes);
	if (w->rate > INT32_MAX || wav_number(at + 8, 4) != w->rate * frame_bytes)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Bad bytes per second in WAV header: Expected %u but got %u "
			       "(sample_rate=%u, bytes_per_sample=%u)",
			       w->rate * frame_bytes, wav_number(at + 8, 4), w->rate, frame_bytes);
	return 0;
}

int mu_wav_open(struct mu_wav *w, struct mu_span file, struct mu_err *err)
{
	*w = (struct mu_wav){0};
	if (file.len < HEADER || !has_name(file.data, "RIFF") || !has_name(file.data + 8, "WAVE"))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Header mismatch: Expected RIFF and WAVE in a WAV file of %zu bytes",
			       file.len);
	for (size_t at = HEADER; file.len - at >= CHUNK;) {
		const char *chunk = file.data + at;
		size_t len = wav_number(chunk + 4, 4), remaining = file.len - at - CHUNK;
		if (has_name(chunk, "data") && w->channels) {
			size_t n_bytes = len < remaining ? len : remaining;
			w->frames = n_bytes / (w->channels * SAMPLE);
			w->data = (struct mu_span){chunk + CHUNK, n_bytes};
			return len > remaining
				   ? mu_fail(err, MU_INVALID_ARGUMENT,
					     "Data too short when trying to read string")
				   : 0;
		}
		if (len > remaining)
			break;
		int rc = has_name(chunk, "fmt ") ? read_format(w, chunk + CHUNK, len, err) : 0;
		if (rc)
			return rc;
		at += CHUNK + len + (len % 2 && len < remaining);
	}
	return mu_fail(err, MU_INVALID_ARGUMENT, "the WAV file has no %s",
		       w->channels ? "data" : "format before its data");
}

float mu_wav_sample(const struct mu_wav *w, size_t frame, unsigned channel)
{
	const char *at = w->data.data + (frame * w->channels + channel) * SAMPLE;

	return (float)(int16_t)wav_number(at, SAMPLE) / FULL_SCALE;
}

static void wav_put_number(struct mu_buf *b, uint32_t n, unsigned bytes)
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
			       "a WAV file cannot have %zu frames of %u channels", frames,
			       channels);
	if (!rate || rate > INT32_MAX / (channels * SAMPLE))
		return mu_fail(err, MU_INVALID_ARGUMENT, "sample_rate must be positive: %u", rate);
	uint32_t bytes = (uint32_t)(frames * channels * SAMPLE);
	mu_buf_puts(out, "RIFF");
	wav_put_number(out, HEADER - CHUNK + CHUNK + FORMAT + CHUNK + bytes, 4);
	mu_buf_puts(out, "WAVEfmt ");
	wav_put_number(out, FORMAT, 4);
	wav_put_number(out, PCM, 2);
	wav_put_number(out, channels, 2);
	wav_put_number(out, rate, 4);
	wav_put_number(out, rate * channels * SAMPLE, 4);
	wav_put_number(out, channels * SAMPLE, 2);
	wav_put_number(out, 8 * SAMPLE, 2);
	mu_buf_puts(out, "data");
	wav_put_number(out, bytes, 4);
	for (size_t i = 0; i < frames * channels; i++) {
		float v = roundf(samples[i] * FULL_SCALE);
		v = v > FULL_SCALE - 1 ? FULL_SCALE - 1
		    : v >= -FULL_SCALE ? v
				       : -FULL_SCALE; /* NaN becomes -FULL */
		wav_put_number(out, (uint16_t)(int16_t)v, SAMPLE);
	}
	return 0;
}
