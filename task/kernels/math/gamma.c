/* SPDX-License-Identifier: Apache-2.0 */
/* Far from 0 these functions are a few terms of an asymptotic series whose coefficients are the
 * Bernoulli numbers. Near 0 a recurrence shifts the argument first. */
#include "task/kernels/math/gamma.h"

#include <math.h>
#include <stdbool.h>

enum { TERMS = 10, ASYMPTOTIC_MIN = 12 };

/* B2, B4, … */
static const double bernoulli[TERMS] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
					5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
					43867.0 / 798, -174611.0 / 330};

/* log x - 1 / 2x - the sum of B2j / 2j x^2j */
static double digamma_asymptotic(double x)
{
	double square = 1 / (x * x), power = square, sum = 0;

	for (int j = 0; j < TERMS; j++, power *= square)
		sum += bernoulli[j] / (2 * (j + 1)) * power;
	return log(x) - 0.5 / x - sum;
}

double gamma_digamma(double x)
{
	double sum = 0;

	if (x <= 0 && floor(x) == x)
		return NAN;
	if (x < 0) /* reflected: psi(1 - x) - pi / tan(pi x); x - rint(x) is exact */
		return gamma_digamma(1 - x) - M_PI / tan(M_PI * (x - rint(x)));
	for (; x < ASYMPTOTIC_MIN; x++)
		sum -= 1 / x;
	return sum + digamma_asymptotic(x);
}

/* zeta for a whole x and q below 0.  The terms of q, q + 1, ..., -fraction are those of
 * zeta(x, fraction) - zeta(x, 1 - q), with the sign (-1)^x; the next term is that of 1 - fraction.
 * ceil(q) - q is exact. */
static double zeta_below(double x, double q)
{
	double sign = fmod(x, 2) == 0 ? 1 : -1, fraction = ceil(q) - q;

	return gamma_zeta(x, 1 - fraction) +
	       sign * (gamma_zeta(x, fraction) - gamma_zeta(x, 1 - q));
}

double gamma_zeta(double x, double q)
{
	bool whole = floor(x) == x;
	double sum = 0, edge, factor, power;

	if (x == 1)
		return INFINITY;
	if (!(x > 1) || (q <= 0 && !whole))
		return NAN;
	if (q <= 0 && floor(q) == q)
		return fmod(x, 2) == 0 ? INFINITY : NAN;
	if (q < 0)
		return zeta_below(x, q);
	for (; q < ASYMPTOTIC_MIN; q++)
		sum += pow(q, -x);
	edge = pow(q, -x);
	sum += edge * q / (x - 1) + 0.5 * edge;
	/* B2j / (2j)! x (x + 1) … (x + 2j - 2) q^(1 - x - 2j) */
	factor = x / 2;
	power = edge / q;
	for (int j = 0; j < TERMS; j++) {
		int at = 2 * (j + 1);

		sum += bernoulli[j] * factor * power;
		factor *= (x + at - 1) / (at + 1) * ((x + at) / (at + 2));
		power /= q * q;
	}
	return sum;
}

double gamma_polygamma(double n, double x)
{
	if (n == 0)
		return gamma_digamma(x);
	if (!(n > 0) || floor(n) != n)
		return NAN;
	return (fmod(n, 2) == 0 ? -1 : 1) * exp(lgamma(n + 1)) * gamma_zeta(n + 1, x);
}
