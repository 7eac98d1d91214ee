/* SPDX-License-Identifier: Apache-2.0 */
/* Powers of two are split in halves (Cooley and Tukey). Any other n becomes a convolution with a
 * chirp, computed by transforms of a power of two (Bluestein). */
#include "task/kernels/math/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/math/complex_of.h"

static double _Complex fft_rotate(double part, double of)
{
	double angle = 2 * M_PI * part / of;

	return complex_of(cos(angle), -sin(angle));
}

/* The product by hand: C's own looks for infinities. */
static inline double _Complex multiply_complex(double _Complex x, double _Complex y)
{
	double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);

	return complex_of(a * c - b * d, a * d + b * c);
}

static void fft_reorder(int64_t m, double _Complex *x)
{
	for (int64_t i = 1, k = 0; i < m; i++) {
		int64_t bit = m >> 1;
		for (; k & bit; bit >>= 1)
			k ^= bit;
		k ^= bit;
		if (i < k) {
			double _Complex t = x[i];
			x[i] = x[k];
			x[k] = t;
		}
	}
}

static void power_of_two(const struct fft *f, double _Complex *x)
{
	fft_reorder(f->m, x);
	for (int64_t half = 1; half < f->m; half *= 2) {
		int64_t step = f->m / (2 * half);
		for (int64_t from = 0; from < f->m; from += 2 * half)
			for (int64_t k = 0; k < half; k++) {
				double _Complex *a = x + from + k, *b = a + half;
				double _Complex t = multiply_complex(*b, f->twiddles[k * step]);
				*b = *a - t;
				*a += t;
			}
	}
}

static void conjugate(int64_t n, double _Complex *x, double scale)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = complex_of(creal(x[i]) * scale, -cimag(x[i]) * scale);
}

static void chirp(const struct fft *f, double _Complex *x, double _Complex *work)
{
	memset(work, 0, (size_t)f->m * sizeof *work);
	for (int64_t i = 0; i < f->n; i++)
		work[i] = multiply_complex(x[i], f->chirp[i]);
	power_of_two(f, work);
	for (int64_t i = 0; i < f->m; i++)
		work[i] = multiply_complex(work[i], f->reverse[i]);
	conjugate(f->m, work, 1);
	power_of_two(f, work);
	conjugate(f->m, work, 1.0 / (double)f->m);
	for (int64_t i = 0; i < f->n; i++)
		x[i] = multiply_complex(work[i], f->chirp[i]);
}

bool fft_init(struct fft *f, int64_t n)
{
	bool whole = !(n & (n - 1));

	*f = (struct fft){.n = n, .m = 1};
	if (n > INT32_MAX)
		return false;
	while (f->m < (whole ? n : 2 * n - 1))
		f->m *= 2;
	f->twiddles = calloc((size_t)f->m / 2 + 1, sizeof *f->twiddles);
	for (int64_t i = 0; f->twiddles && i < f->m / 2; i++)
		f->twiddles[i] = fft_rotate((double)i, (double)f->m);
	if (whole)
		return f->twiddles;
	f->chirp = calloc((size_t)n, sizeof *f->chirp);
	f->reverse = calloc((size_t)f->m, sizeof *f->reverse);
	if (!f->twiddles || !f->chirp || !f->reverse)
		return false;
	for (int64_t i = 0; i < n; i++)
		f->chirp[i] = fft_rotate((double)(i * i % (2 * n)), 2 * (double)n);
	for (int64_t i = 0; i < n; i++)
		f->reverse[i] = f->reverse[(f->m - i) % f->m] = conj(f->chirp[i]);
	power_of_two(f, f->reverse);
	return true;
}

void fft_fini(struct fft *f)
{
	free(f->twiddles);
	free(f->chirp);
	free(f->reverse);
}

void fft_run(const struct fft *f, bool forward, double _Complex *x, double _Complex *work)
{
	if (!forward)
		conjugate(f->n, x, 1);
	if (f->chirp)
		chirp(f, x, work);
	else
		power_of_two(f, x);
	if (!forward)
		conjugate(f->n, x, 1.0 / (double)f->n);
}
