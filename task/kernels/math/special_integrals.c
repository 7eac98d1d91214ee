/* SPDX-License-Identifier: Apache-2.0 */
/* Three methods by argument. Near 0: the power series, as long as its terms do not cancel. Far
 * away: the asymptotic series, from where its smallest term is below a double's precision. Between
 * them: sums over equal steps, which are accurate for functions that fall off like a bell curve. */
#include <complex.h>
#include <math.h>

#include "task/kernels/engine/complex_of.h"
#include "task/kernels/math/special.h"

enum { TERMS = 400 };
static const double euler = 0.57721566490153286061;

double special_expint(double x)
{
	double sum = 0, term = 1;

	if (!(x >= 0) || isinf(x)) /* TensorFlow has no value at infinity */
		return NAN;
	if (x == 0)
		return -INFINITY;
	if (x > 40) {
		for (int k = 1; k < 40 && term > 0x1p-54; k++) {
			sum += term;
			term *= k / x;
		}
		/* two factors, since e^x alone may overflow */
		return exp(x / 2) * (exp(x / 2) / x * sum);
	}
	for (int k = 1; k < TERMS; k++) {
		term *= x / k;
		sum += term / k;
		if (term < sum * 0x1p-54)
			break;
	}
	return euler + log(x) + sum;
}

/* Rybicki's sum over equal steps, with steps n and -n in one term; the error is e^-(pi / 2 h)^2. */
double special_dawsn(double x)
{
	const double h = 0.25;
	double size = fabs(x), sum = 0, term = 1;

	if (size < 10) {
		for (int n = 1; n * h < size + 7; n += 2) {
			double up = n * h - size, down = n * h + size;
			/* near 0: e^(-x²) e^(-n²h²) sinh(2 x n h), without cancellation */
			sum += (size < 0.5
				    ? 2 * exp(-size * size - n * h * n * h) * sinh(2 * size * n * h)
				    : exp(-up * up) - exp(-down * down)) /
			       n;
		}
		return copysign(sum * M_2_SQRTPI / 2, x);
	}
	for (int k = 1; k < 50 && term > 0x1p-54; k++) {
		sum += term;
		term *= (2 * k - 1) / (2 * x * x);
	}
	return sum / (2 * x);
}

/* The sum of z^k / k², |z| <= 0.5 */
static double dilogarithm(double z)
{
	double sum = 0, power = z;

	for (int k = 1; k < 64; k++, power *= z)
		sum += power / ((double)k * k);
	return sum;
}

double special_spence(double x)
{
	if (!(x >= 0) || isinf(x))
		return NAN;
	if (x == 0)
		return M_PI * M_PI / 6;
	if (x < 0.5)
		return M_PI * M_PI / 6 - log(x) * log1p(-x) - dilogarithm(x);
	if (x > 1.5)
		return -log(x) * log(x) / 2 - special_spence(1 / x);
	return dilogarithm(1 - x);
}

/* C + i S: the series, or a continued fraction of the complex error function. */
static double _Complex fresnel(double x)
{
	double t = M_PI / 2 * x * x;

	if (x < 1.5) {
		double _Complex sum = 0, term = x;
		for (int k = 0; k < 60; k++) {
			sum += term / (2 * k + 1);
			term *= complex_of(0, t) / (k + 1);
		}
		return sum;
	}
	if (!(x < 1e8))
		return complex_of(0.5, 0.5);
	double _Complex b = complex_of(1, -2 * t), c = 1e300, d = 1 / b, h = d, step;
	for (int k = 1; k < TERMS; k++) {
		double a = -(2.0 * k - 1) * 2 * k;
		b += 4;
		d = 1 / (a * d + b);
		c = b + a / c;
		step = c * d;
		h *= step;
		if (cabs(step - 1) < 0x1p-52)
			break;
	}
	h *= complex_of(x, -x);
	return complex_of(0.5, 0.5) * (1 - complex_of(cos(t), sin(t)) * h);
}

double special_fresnel_cos(double x)
{
	return isnan(x) ? x : copysign(creal(fresnel(fabs(x))), x);
}

double special_fresnel_sin(double x)
{
	return isnan(x) ? x : copysign(cimag(fresnel(fabs(x))), x);
}

/* ---- modified Bessel functions of order n, 0 or 1 ---- */

static double scaled_i(int n, double x)
{
	double sum = 0, term = 1, quarter = x * x / 4;

	if (x > 30) {
		if (isinf(x))
			return 0;
		for (int k = 1; k < 60 && fabs(term) > 0x1p-55; k++) {
			sum += term;
			term *= ((2.0 * k - 1) * (2 * k - 1) - 4 * n) / (8 * k * x);
		}
		return sum / sqrt(2 * M_PI * x);
	}
	for (int k = 1; k < TERMS && term > sum * 0x1p-54; k++) {
		sum += term;
		term *= quarter / ((double)k * (k + n));
	}
	return exp(-x) * sum * (n ? x / 2 : 1);
}

double special_i0e(double x)
{
	return scaled_i(0, fabs(x));
}

double special_i1e(double x)
{
	return isnan(x) ? x : copysign(scaled_i(1, fabs(x)), x);
}

/* The integral of e^-x(cosh t - 1) cosh(n t) over t from 0 on, in equal steps. */
static double scaled_k(int n, double x)
{
	double h = fmin(0.125, 0.5 / sqrt(x)), sum = 0.5;

	if (!(x > 0))
		return x == 0 ? INFINITY : NAN;
	if (isinf(x))
		return 0;
	for (int i = 1; i < 2 * TERMS; i++) {
		double half = sinh(i * h / 2), term = exp(-2 * x * half * half);
		term *= n ? cosh(i * h) : 1;
		sum += term;
		if (term < sum * 0x1p-60)
			break;
	}
	return h * sum;
}

/* Near 0, where the sum of steps converges slowly: the logarithm and a series. */
static double k_near_0(int n, double x)
{
	double quarter = x * x / 4, term = 1, sum = 0, i = 0, harmonic = 0;

	for (int k = 0; k < 60; k++) {
		i += term;
		sum += term * (n ? 2 * harmonic + 1.0 / (k + 1) : harmonic);
		term *= quarter / ((k + 1.0) * (k + 1 + n));
		harmonic += 1.0 / (k + 1);
	}
	double log_half = log(x / 2) + euler;
	return n ? 1 / x + x / 2 * (log_half * i - sum / 2) : sum - log_half * i;
}

double special_k0e(double x)
{
	if (x < 0)
		return INFINITY;
	return x > 0 && x < 1 ? exp(x) * k_near_0(0, x) : scaled_k(0, x);
}

/* As in TensorFlow, NaN at infinity, and Y below 0 is Y at 0. */
double special_j0(double x)
{
	return isinf(x) ? NAN : j0(x);
}

double special_j1(double x)
{
	return isinf(x) ? NAN : j1(x);
}

double special_y0(double x)
{
	return x < 0 ? -INFINITY : isinf(x) ? NAN : y0(x);
}

double special_y1(double x)
{
	return x < 0 ? -INFINITY : isinf(x) ? NAN : y1(x);
}

double special_k1e(double x)
{
	if (x < 0)
		return INFINITY;
	return x > 0 && x < 1 ? exp(x) * k_near_0(1, x) : scaled_k(1, x);
}
