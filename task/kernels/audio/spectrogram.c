/* SPDX-License-Identifier: Apache-2.0 */
/* AudioSpectrogram and Mfcc: the spectra of the windows of a sound, and their mel-frequency
 * cepstral coefficients. As in TensorFlow, the arithmetic is in double. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/math/fft.h"

enum { MAX_WINDOW_SIZE = 1 << 24, MAX_BANDS = 1 << 16 };

/* ---- AudioSpectrogram ---- */

struct windows {
	int64_t size, stride, channels, frames, samples, bins;
	bool magnitude_squared;
	struct fft fft;
	double *hann; /* periodic Hann window */
	double _Complex *x, *work;
};

static void windows_fini(struct windows *w)
{
	fft_fini(&w->fft);
	free(w->hann);
	free(w->x);
	free(w->work);
}

static int windows_init(struct windows *w, struct mu_err *err)
{
	int64_t n = 1;

	while (n < w->size)
		n *= 2;
	w->bins = n / 2 + 1;
	if (!fft_init(&w->fft, n) || !(w->hann = malloc((size_t)w->size * sizeof *w->hann)) ||
	    !(w->x = malloc((size_t)n * sizeof *w->x)) ||
	    !(w->work = malloc((size_t)w->fft.work * sizeof *w->work)))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for a window of %lld",
			       (long long)w->size);
	for (int64_t i = 0; i < w->size; i++)
		w->hann[i] = 0.5 - 0.5 * cos(2 * M_PI * (double)i / (double)w->size);
	return 0;
}

static void spectrum_of(const struct windows *w, const float *from, float *to)
{
	for (int64_t i = 0; i < w->fft.n; i++)
		w->x[i] = i < w->size ? (double)from[i * w->channels] * w->hann[i] : 0;
	fft_run(&w->fft, true, w->x, w->work);
	for (int64_t i = 0; i < w->bins; i++) {
		double re = creal(w->x[i]), im = cimag(w->x[i]), square = re * re + im * im;
		to[i] = (float)(w->magnitude_squared ? square : sqrt(square));
	}
}

/* [samples, channels] to [channels, frames, bins] */
static int spectrogram(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct windows w = {.size = args_attr_int(c->node, "window_size", 0),
			    .stride = args_attr_int(c->node, "stride", 0),
			    .magnitude_squared =
				args_attr_bool(c->node, "magnitude_squared", false)};
	struct mu_tensor *out;
	struct mu_shape shape;
	int rc;

	if (w.size < 2 || w.size > MAX_WINDOW_SIZE || w.stride < 1)
		return mu_invalid(err,
				  "window_size must be from 2 to %d and stride above 0: %lld, %lld",
				  MAX_WINDOW_SIZE, (long long)w.size, (long long)w.stride);
	w.samples = in->shape.dim[0];
	w.channels = in->shape.dim[1];
	w.frames = w.samples < w.size ? 0 : 1 + (w.samples - w.size) / w.stride;
	if (!(rc = windows_init(&w, err)) &&
	    !(rc = mu_shape_set(&shape, 3, (int64_t[]){w.channels, w.frames, w.bins}, err)))
		rc = kernel_out(c, 0, MU_FLOAT, &shape, &out, err);
	for (int64_t k = 0; !rc && k < w.channels; k++)
		for (int64_t i = 0; i < w.frames; i++)
			spectrum_of(&w, MU_DATA(float, in) + i * w.stride * w.channels + k,
				    MU_DATA(float, out) + (k * w.frames + i) * w.bins);
	windows_fini(&w);
	return rc;
}

/* ---- Mfcc ---- */

/* A bank of triangular filters.  The bands overlap: a bin adds the share `weight` of its magnitude
 * to the band below it, and the rest to the band above it. */
struct mel {
	int64_t bins, bands, coefficients;
	int64_t first, last; /* bins between the frequency limits */
	double *centre; /* of each band, in mel */
	double *weight; /* of each bin */
	int64_t *below; /* the band below each bin; -1: none */
	double *energy; /* buffer for the bands of a frame */
	double *cosine; /* of 4 * bands angles: a full circle */
};

static double mel_of(double hertz)
{
	return 1127 * log1p(hertz / 700);
}

static void mel_fini(struct mel *m)
{
	free(m->centre);
	free(m->weight);
	free(m->below);
	free(m->energy);
	free(m->cosine);
}

static int mel_init(struct mel *m, double rate, double lower, double upper, struct mu_err *err)
{
	m->centre = calloc((size_t)m->bands + 1, sizeof *m->centre);
	m->weight = calloc((size_t)m->bins, sizeof *m->weight);
	m->below = calloc((size_t)m->bins, sizeof *m->below);
	m->energy = calloc((size_t)m->bands, sizeof *m->energy);
	m->cosine = calloc((size_t)m->bands * 4, sizeof *m->cosine);
	if (!m->centre || !m->weight || !m->below || !m->energy || !m->cosine)
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for %lld bands",
			       (long long)m->bands);
	for (int64_t i = 0; i < 4 * m->bands; i++)
		m->cosine[i] = cos((double)i * M_PI / (double)(2 * m->bands));
	double low = mel_of(lower), step = (mel_of(upper) - low) / (double)(m->bands + 1);
	double bin_hertz = 0.5 * rate / (double)(m->bins - 1);
	for (int64_t i = 0; i <= m->bands; i++)
		m->centre[i] = low + step * (double)(i + 1);
	if (upper / bin_hertz >= (double)m->bins)
		return mu_invalid(
		    err, "the spectrogram's %lld bins do not reach %g Hz at %g frames a second",
		    (long long)m->bins, upper, rate);
	m->first = (int64_t)(1.5 + lower / bin_hertz);
	m->last = (int64_t)(upper / bin_hertz);
	for (int64_t i = m->first, above = 0; i <= m->last; i++) {
		double at = mel_of((double)i * bin_hertz);
		while (above < m->bands && m->centre[above] < at)
			above++;
		double from = above ? m->centre[above - 1] : low;
		m->below[i] = above - 1;
		m->weight[i] = (m->centre[above] - at) / (m->centre[above] - from);
	}
	return 0;
}

static void cepstrum_of(const struct mel *m, const float *spectrum, float *to)
{
	static const double min_energy = 1e-12; /* before the logarithm */
	double n = (double)m->bands;

	for (int64_t k = 0; k < m->bands; k++)
		m->energy[k] = 0;
	for (int64_t i = m->first; i <= m->last; i++) {
		double size = sqrt((double)spectrum[i]), part = size * m->weight[i];
		int64_t below = m->below[i];
		if (below >= 0)
			m->energy[below] += part;
		if (below + 1 < m->bands)
			m->energy[below + 1] += size - part;
	}
	for (int64_t k = 0; k < m->bands; k++)
		m->energy[k] = log(m->energy[k] < min_energy ? min_energy : m->energy[k]);
	for (int64_t i = 0; i < m->coefficients; i++) {
		double sum = 0;
		for (int64_t k = 0, at = i; k < m->bands; k++) { /* at: i (2 k + 1) modulo 4 n */
			sum += m->cosine[at] * m->energy[k];
			at += 2 * i;
			at -= at >= 4 * m->bands ? 4 * m->bands : 0;
		}
		to[i] = (float)(sqrt(2 / n) * sum);
	}
}

/* [channels, frames, bins] to [channels, frames, coefficients] */
static int mfcc(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	float upper = args_attr_float(c->node, "upper_frequency_limit", 4000);
	float lower = args_attr_float(c->node, "lower_frequency_limit", 20);
	struct mel m = {.bands = args_attr_int(c->node, "filterbank_channel_count", 40),
			.coefficients = args_attr_int(c->node, "dct_coefficient_count", 13)};
	struct mu_tensor *out;
	struct mu_shape shape;
	int64_t rate;
	int rc;

	MU_RETURN_IF_ERROR(args_int(c, 1, &rate, err));
	m.bins = in->shape.dim[2];
	if (m.bands < 1 || m.bands > MAX_BANDS || m.coefficients < 1 || m.coefficients > m.bands)
		return mu_invalid(err, "%lld coefficients cannot be had of %lld bands",
				  (long long)m.coefficients, (long long)m.bands);
	if (m.bins < 2 || rate <= 0 || !(lower >= 0) || !(upper > lower))
		return mu_invalid(err,
				  "%lld bins from %g to %g Hz at %lld frames a second are no bands",
				  (long long)m.bins, (double)lower, (double)upper, (long long)rate);
	if (!(rc = mel_init(&m, (double)rate, (double)lower, (double)upper, err)) &&
	    !(rc = mu_shape_set(
		  &shape, 3, (int64_t[]){in->shape.dim[0], in->shape.dim[1], m.coefficients}, err)))
		rc = kernel_out(c, 0, MU_FLOAT, &shape, &out, err);
	for (int64_t i = 0; !rc && i < in->shape.dim[0] * in->shape.dim[1]; i++)
		cepstrum_of(&m, MU_DATA(float, in) + i * m.bins,
			    MU_DATA(float, out) + i * m.coefficients);
	mel_fini(&m);
	return rc;
}

static const struct kernel rows[] = {
    {"AudioSpectrogram", KERNEL_EXPENSIVE, .run = spectrogram},
    {"Mfcc", KERNEL_EXPENSIVE, .run = mfcc},
};
KERNEL_TABLE(audio_spectrogram, rows)
