/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation and its gradient, NHWC, float: the formulas of the CPU, with sums in double.
 *
 * norm_sums: a thread sums a piece of a channel's pixels; neighbouring threads read neighbouring
 * channels.  norm_forward, norm_backward: a thread computes the outputs and factors of a channel.
 * norm_map: a thread computes one element y = g * a + (x - middle) * k + b. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

#define F(address) PTR(float, address)

/* sums [pieces][2][channels]: the sums of g and of g * (x - middle). */
KERNEL(norm_sums, norm_args)
{
	EACH(i, a.pieces * a.channels)
	{
		int64_t piece = i / a.channels, ch = i % a.channels;
		double *out = PTR(double, a.sums) + piece * 2 * a.channels + ch;
		double s = 0, t = 0;
		for (int64_t p = piece; p < a.pixels; p += a.pieces) {
			double g = F(a.g)[p * a.channels + ch];
			s += g;
			t += g * (F(a.x)[p * a.channels + ch] - F(a.middle)[ch]);
		}
		out[0] = s;
		out[a.channels] = t;
	}
}

DEVICE double norm_total(const struct norm_args *a, int64_t ch, int which)
{
	double all = 0;

	for (int64_t piece = 0; piece < a->pieces; piece++)
		all += PTR(double, a->sums)[(piece * 2 + which) * a->channels + ch];
	return all;
}

/* Deviations are from the first pixel, see nn/batch_norm.c. */
DEVICE void norm_statistics(const struct norm_args *a, int64_t ch, float *mean, float *variance)
{
	double n = (double)a->pixels, sum = norm_total(a, ch, 0), m = sum / n;
	double first = a->pixels ? F(a->x)[ch] : 0;
	double v = (norm_total(a, ch, 1) - m * (sum - n * first)) / n;

	*mean = a->pixels ? (float)m : (float)NAN;
	*variance = a->pixels ? (float)(v > 0 ? v : 0) : (float)NAN;
}

KERNEL(norm_forward, norm_args)
{
	EACH(ch, a.channels)
	{
		float mean, variance, saved_mean = 0, saved_variance = 0, factor = (float)a.factor;
		double n = (double)a.pixels;
		if (a.training) {
			float bessel = (float)(n / (n > 1 ? n - 1 : 1));
			norm_statistics(&a, ch, &mean, &variance);
			saved_mean = a.pixels ? mean : 0;
			saved_variance = a.pixels ? variance : 0;
			F(a.out[0])
			[ch] = factor == 1 ? mean : (1 - factor) * F(a.mean)[ch] + factor * mean;
			F(a.out[1])
			[ch] = factor == 1
				   ? variance * bessel
				   : (1 - factor) * F(a.variance)[ch] + factor * variance * bessel;
		} else {
			F(a.out[0])[ch] = F(a.mean)[ch];
			F(a.out[1])[ch] = variance = F(a.variance)[ch];
		}
		F(a.out[2])[ch] = saved_mean;
		F(a.out[3])[ch] = saved_variance;
		F(a.k)[ch] = F(a.scale)[ch] / sqrt(variance + (float)a.epsilon);
		F(a.b)[ch] = F(a.offset)[ch];
	}
}

KERNEL(norm_backward, norm_args)
{
	EACH(ch, a.channels)
	{
		double n = a.pixels ? (double)a.pixels : 1;
		double inv = 1 / sqrt((double)F(a.variance)[ch] + a.epsilon);
		double dy = norm_total(&a, ch, 0), dyx = norm_total(&a, ch, 1);
		double scale = (double)F(a.scale)[ch] * inv;
		double slope = a.training ? -scale * inv * inv * dyx / n : 0;
		F(a.out[0])[ch] = (float)(dyx * inv);
		F(a.out[1])[ch] = (float)dy;
		F(a.a)[ch] = (float)scale;
		F(a.k)[ch] = (float)slope;
		F(a.b)[ch] = a.training ? (float)(-scale * dy / n) : 0;
	}
}

KERNEL(norm_map, norm_args)
{
	EACH(i, a.pixels * a.channels)
	{
		int64_t ch = i % a.channels;
		float y = F(a.b)[ch];
		if (a.add_g)
			y += F(a.g)[i] * F(a.a)[ch];
		if (a.add_x)
			y += (F(a.x)[i] - F(a.middle)[ch]) * F(a.k)[ch];
		F(a.y)[i] = y;
	}
}
#undef F
