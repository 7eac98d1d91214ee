/* SPDX-License-Identifier: Apache-2.0 */
/* A transform is split by the factors of n (Cooley and Tukey). If n has a large factor, the
 * transform becomes a convolution with a chirp, computed by transforms of a power of two
 * (Bluestein), which takes five times as long for n = 400. */
#include "task/kernels/math/fft.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "task/kernels/engine/complex_of.h"

enum { LARGEST_FACTOR = 13 };

/* e^(-2 pi i k / n) */
static double _Complex fft_rotate(double k, double n)
{
	double angle = 2 * M_PI * k / n;

	return complex_of(cos(angle), -sin(angle));
}

/* The complex product without the checks for infinities of C's operator. */
static inline double _Complex multiply_complex(double _Complex x, double _Complex y)
{
	double a = creal(x), b = cimag(x), c = creal(y), d = cimag(y);

	return complex_of(a * c - b * d, a * d + b * c);
}

static inline double _Complex multiply_i(double _Complex x)
{
	return complex_of(-cimag(x), creal(x));
}

/* The transform of p numbers, p odd; `part`: the stride of x. */
static void transform_odd(const struct fft *f, int p, double _Complex *t, double _Complex *x,
			  int64_t part)
{
	double _Complex sum = t[0];

	for (int k = 1; k <= p / 2; k++) {
		double _Complex a = t[k], b = t[p - k];
		sum += t[k] = a + b;
		t[p - k] = a - b;
	}
	x[0] = sum;
	for (int j = 1; j <= p / 2; j++) {
		double _Complex even = t[0], odd = 0;
		for (int k = 1; k <= p / 2; k++) {
			double _Complex w = f->twiddles[j * k % p * (f->m / p)];
			even += creal(w) * t[k];
			odd += cimag(w) * t[p - k];
		}
		x[j * part] = even + multiply_i(odd);
		x[(p - j) * part] = even - multiply_i(odd);
	}
}

static void transform_4(const double _Complex t[4], double _Complex *x, int64_t part)
{
	double _Complex even = t[0] + t[2], odd = t[1] + t[3], even_rest = t[0] - t[2],
			odd_rest = multiply_i(t[1] - t[3]);

	x[0] = even + odd;
	x[part] = even_rest - odd_rest;
	x[2 * part] = even - odd;
	x[3 * part] = even_rest + odd_rest;
}

/* The transform of n numbers with a stride in `from`; n: the product of the factors from `level`
 * on.
 */
static void transform(const struct fft *f, int level, int64_t n, int64_t stride,
		      const double _Complex *from, double _Complex *to)
{
	int p = f->factor[level];
	int64_t part = n / p;

	for (int k = 0; k < p; k++)
		if (part == 1)
			to[k] = from[k * stride];
		else
			transform(f, level + 1, part, stride * p, from + k * stride, to + k * part);
	for (int64_t i = 0; i < part; i++) {
		double _Complex t[LARGEST_FACTOR], *x = to + i;
		for (int k = 0; k < p; k++)
			t[k] = multiply_complex(x[k * part], f->twiddles[i * k * stride]);
		if (p == 4) {
			transform_4(t, x, part);
		} else if (p == 2) {
			x[0] = t[0] + t[1];
			x[part] = t[0] - t[1];
		} else {
			transform_odd(f, p, t, x, part);
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
	double _Complex *product = work + f->m;

	memset(work, 0, (size_t)f->m * sizeof *work);
	for (int64_t i = 0; i < f->n; i++)
		work[i] = multiply_complex(x[i], f->chirp[i]);
	transform(f, 0, f->m, 1, work, product);
	for (int64_t i = 0; i < f->m; i++)
		product[i] = multiply_complex(product[i], f->reverse[i]);
	conjugate(f->m, product, 1);
	transform(f, 0, f->m, 1, product, work);
	conjugate(f->m, work, 1.0 / (double)f->m);
	for (int64_t i = 0; i < f->n; i++)
		x[i] = multiply_complex(work[i], f->chirp[i]);
}

/* Writes the small factors of n, and returns n divided by them: 1, or a number with a large factor.
 */
static int64_t find_factors(int64_t n, int *factor)
{
	int i = 0;

	for (int p = 4; p <= LARGEST_FACTOR; p = p == 4 ? 2 : p == 2 ? 3 : p + 2)
		for (; n % p == 0; n /= p)
			factor[i++] = p;
	if (!i)
		factor[0] = 1;
	return n;
}

static bool init_chirp(struct fft *f)
{
	double _Complex *x = calloc((size_t)f->m, sizeof *x);

	f->chirp = calloc((size_t)f->n, sizeof *f->chirp);
	f->reverse = calloc((size_t)f->m, sizeof *f->reverse);
	if (x && f->chirp && f->reverse) {
		for (int64_t i = 0; i < f->n; i++) {
			f->chirp[i] = fft_rotate((double)(i * i % (2 * f->n)), 2 * (double)f->n);
			x[i] = x[(f->m - i) % f->m] = conj(f->chirp[i]);
		}
		transform(f, 0, f->m, 1, x, f->reverse);
	}
	free(x);
	return x && f->chirp && f->reverse;
}

bool fft_init(struct fft *f, int64_t n)
{
	*f = (struct fft){.n = n, .m = n, .work = n};
	if (n > INT32_MAX)
		return false;
	bool has_large_factor = find_factors(n, f->factor) > 1;
	if (has_large_factor) {
		for (f->m = 1; f->m < 2 * n - 1;)
			f->m *= 2;
		f->work = 2 * f->m;
		find_factors(f->m, f->factor);
	}
	f->twiddles = calloc((size_t)f->m, sizeof *f->twiddles);
	for (int64_t i = 0; f->twiddles && i < f->m; i++)
		f->twiddles[i] = fft_rotate((double)i, (double)f->m);
	return f->twiddles && (!has_large_factor || init_chirp(f));
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
	if (f->chirp) {
		chirp(f, x, work);
	} else {
		memcpy(work, x, (size_t)f->n * sizeof *x);
		transform(f, 0, f->n, 1, work, x);
	}
	if (!forward)
		conjugate(f->n, x, 1.0 / (double)f->n);
}
