/* SPDX-License-Identifier: Apache-2.0 */
/* DecodeWav, EncodeWav and the ops of audio summaries. */
#include <math.h>

#include "lib/base/pb.h"
#include "lib/io/wav.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/summary_writer.h"

/* Field numbers of Summary.Audio. */
enum {
	AUDIO_RATE = 1,
	AUDIO_CHANNELS,
	AUDIO_FRAMES,
	AUDIO_FILE,
	AUDIO_TYPE,
};

/* Missing samples are zero; a missing channel repeats the last one. */
static int wav_decode(struct kernel_call *c, struct mu_err *err)
{
	int64_t channels = args_attr_int(c->node, "desired_channels", -1);
	int64_t frames = args_attr_int(c->node, "desired_samples", -1);
	struct mu_tensor *out;
	struct mu_shape shape;
	struct mu_wav w;

	if (kernel_in(c, 0)->shape.rank)
		return mu_invalid(err, "contents must be scalar, got shape %s",
				  mu_shape_str(&kernel_in(c, 0)->shape));
	MU_RETURN_IF_ERROR(mu_wav_open(&w, elems_span(kernel_in(c, 0), 0), err));
	channels = channels < 0 ? w.channels : channels;
	frames = frames < 0 ? (int64_t)w.frames : frames;
	MU_RETURN_IF_ERROR(mu_shape_set(&shape, 2, (int64_t[]){frames, channels}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &shape, &out, err));
	MU_RETURN_IF_ERROR(kernel_out_value(c, 1, MU_INT32, &w.rate, err));
	float *to = out->data;
	for (int64_t i = 0; i < frames; i++)
		for (int64_t k = 0; k < channels; k++) {
			unsigned from = k < w.channels ? (unsigned)k : w.channels - 1;
			*to++ = i < (int64_t)w.frames ? mu_wav_sample(&w, (size_t)i, from) : 0;
		}
	return 0;
}

static int wav_encode(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_BUF b = {0};
	int64_t rate;

	MU_RETURN_IF_ERROR(args_int(c, 1, &rate, err));
	if (in->shape.dim[1] <= 0 || in->shape.dim[1] > UINT16_MAX || rate <= 0)
		return mu_invalid(err, "%lld channels at %lld frames a second are no WAV file",
				  (long long)in->shape.dim[1], (long long)rate);
	MU_RETURN_IF_ERROR(mu_wav_write(&b, in->data, (size_t)in->shape.dim[0],
					(unsigned)in->shape.dim[1], (uint32_t)rate, err));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int put_sound(struct mu_buf *b, const char *tag, const float *samples, int64_t frames,
		     int64_t channels, float rate, struct mu_err *err)
{
	MU_AUTO_BUF file = {0};
	int rc = mu_wav_write(&file, samples, (size_t)frames, (unsigned)channels,
			      rate < 1 ? 1 : (uint32_t)lroundf(rate), err);

	if (rc)
		return mu_wrap(err, "summary '%s'", tag);
	size_t value = mu_pb_begin(b, SUMMARY_VALUE);
	mu_pb_put_str(b, VALUE_TAG, tag);
	size_t audio = mu_pb_begin(b, VALUE_AUDIO);
	mu_pb_put_float(b, AUDIO_RATE, rate);
	mu_pb_put_int(b, AUDIO_CHANNELS, channels);
	mu_pb_put_int(b, AUDIO_FRAMES, frames);
	mu_pb_put_bytes(b, AUDIO_FILE, mu_buf_span(&file));
	mu_pb_put_str(b, AUDIO_TYPE, "audio/wav");
	mu_pb_end(b, audio);
	mu_pb_end(b, value);
	return 0;
}

/* Appends a summary value for each of the first max_outputs sounds.  Input tag_at is the tag, the
 * next input has the sounds: [sounds, frames] or [sounds, frames, channels]. */
static int make_audio_summary(const struct kernel_call *c, unsigned tag_at, struct mu_buf *b,
			      struct mu_err *err)
{
	int64_t max_outputs = args_attr_int(c->node, "max_outputs", 3);
	float rate = args_attr_float(c->node, "sample_rate", 0);
	const struct mu_tensor *in = kernel_in(c, tag_at + 1);
	const unsigned rate_at = tag_at + 2;
	MU_AUTO_FREE char *tag = NULL;

	MU_RETURN_IF_ERROR(args_string(c, tag_at, &tag, err));
	if (c->n_in > rate_at && kernel_in(c, rate_at)->shape.count != 1)
		return mu_invalid(err, "sample_rate must have one element, not %s",
				  mu_shape_str(&kernel_in(c, rate_at)->shape));
	if (c->n_in > rate_at)
		rate = *MU_DATA(float, kernel_in(c, rate_at));
	if (in->shape.rank < 2 || in->shape.rank > 3)
		return mu_invalid(err, "Tensor must be 3-D or 2-D, got: %s",
				  mu_shape_str(&in->shape));
	int64_t frames = in->shape.dim[1], channels = in->shape.rank > 2 ? in->shape.dim[2] : 1;
	if (max_outputs < 1 || !(rate > 0) || rate >= 0x1p31f || channels > UINT16_MAX)
		return mu_invalid(err, "max_outputs and sample_rate must be > 0: %lld, %g",
				  (long long)max_outputs, (double)rate);
	for (int64_t i = 0; i < in->shape.dim[0] && i < max_outputs; i++) {
		MU_AUTO_FREE char *name = max_outputs > 1
					      ? mu_xasprintf("%s/audio/%lld", tag, (long long)i)
					      : mu_xasprintf("%s/audio", tag);
		MU_RETURN_IF_ERROR(put_sound(b, name, MU_DATA(float, in) + i * frames * channels,
					     frames, channels, rate, err));
	}
	return 0;
}

static int audio_summary(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	MU_RETURN_IF_ERROR(make_audio_summary(c, 0, &b, err));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int write_audio_summary(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	MU_RETURN_IF_ERROR(make_audio_summary(c, 2, &b, err));
	return summary_writer_put(c, &b, err);
}

static const struct kernel rows[] = {
    {"DecodeWav", .run = wav_decode},
    {"EncodeWav", .run = wav_encode},
    {"AudioSummary AudioSummaryV2", .run = audio_summary},
    {"WriteAudioSummary", .run = write_audio_summary},
};
KERNEL_TABLE(audio_wav, rows)
