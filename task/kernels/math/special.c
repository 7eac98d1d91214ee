/* SPDX-License-Identifier: Apache-2.0 */
/* The inverse normal distribution by Halley's method from a rough start; the incomplete gamma and
 * beta functions by series or continued fractions, depending on the argument. Derivatives by a
 * parameter are computed term by term beside the value. */
#include "task/kernels/math/special.h"

#include <math.h>
#include <stdbool.h>

#include "task/kernels/math/gamma.h"

/* Terms of a series or a fraction: enough for parameters of a million. */
enum { MAX_TERMS = 10000, HALLEY_STEPS = 4 };
static const double tiny = 1e-300, epsilon = 0x1p-53;

/* ---- the normal distribution ---- */

/* The x > 0 that is exceeded with probability q <= 0.5.  The start value is that of Hastings,
 * accurate to 5e-4. */
static double upper_quantile(double q)
{
	double t = sqrt(-2 * log(q)), x;

	x = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
		    (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
	for (int i = 0; i < HALLEY_STEPS; i++) {
		double density = exp(-x * x / 2) * M_SQRT1_2 * M_2_SQRTPI / 2;
		double u = (erfc(x * M_SQRT1_2) / 2 - q) / density;
		if (!isfinite(u))
			break;
		x += u / (1 - u * x / 2);
	}
	return x;
}

double special_ndtri(double p)
{
	if (!(p >= 0 && p <= 1))
		return NAN;
	if (p == 0 || p == 1)
		return p == 0 ? -INFINITY : INFINITY;
	return p < 0.5 ? -upper_quantile(p) : upper_quantile(1 - p);
}

double special_erfinv(double x)
{
	double size = fabs(x), y;

	if (!(size <= 1))
		return NAN;
	if (size == 1)
		return copysign(INFINITY, x);
	if (size > 0.5)
		return copysign(upper_quantile((1 - size) / 2) * M_SQRT1_2, x);
	y = x / M_2_SQRTPI;
	y += y * y * y / 3;
	for (int i = 0; i < HALLEY_STEPS; i++) {
		double u = (erf(y) - x) / (M_2_SQRTPI * exp(-y * y));
		y -= u / (1 + u * y);
	}
	return y;
}

/* ---- the incomplete gamma function ---- */

/* A function e^log * value of a, and the derivatives of log and value by a. */
struct part {
	double log, log_slope, value, value_slope;
};

/* x^a e^-x / gamma(a + 1) times the sum of x^n / ((a + 1) … (a + n)) */
static struct part lower_series(double a, double x)
{
	double term = 1, term_slope = 0;
	struct part p = {a * log(x) - x - lgamma(a + 1), log(x) - gamma_digamma(a + 1), 1, 0};

	for (int n = 1; n < MAX_TERMS; n++) {
		double f = x / (a + n);
		term_slope = term_slope * f - term * f / (a + n);
		term *= f;
		p.value += term;
		p.value_slope += term_slope;
		if (term < p.value * epsilon && fabs(term_slope) < fabs(p.value_slope) * epsilon)
			break;
	}
	return p;
}

/* x^a e^-x / gamma(a) times Legendre's continued fraction, by Lentz's method */
static struct part upper_fraction(double a, double x)
{
	double b = x + 1 - a, c = 1 / tiny, c_slope = 0, d = 1 / b, d_slope = d * d;
	struct part p = {a * log(x) - x - lgamma(a), log(x) - gamma_digamma(a), d, d_slope};

	for (int i = 1; i < MAX_TERMS; i++) {
		double k = -i * (i - a), old_c = c, e = k * d, e_slope = i * d + k * d_slope, step;
		b += 2;
		d_slope = e_slope - 1;
		d = 1 / (fabs(e + b) < tiny ? tiny : e + b);
		d_slope = -d_slope * d * d;
		c = b + k / old_c;
		c_slope = -1 + (i - k * c_slope / old_c) / old_c;
		c = fabs(c) < tiny ? tiny : c;
		step = c * d;
		double step_slope = c_slope * d + c * d_slope;
		p.value_slope = p.value_slope * step + p.value * step_slope;
		p.value *= step;
		/* for a whole a, the value converges before its slope */
		if (fabs(step - 1) <= epsilon &&
		    fabs(p.value * step_slope) <= fabs(p.value_slope) * epsilon)
			break;
	}
	return p;
}

static bool use_series(double a, double x)
{
	return x <= 1 || x <= a;
}

/* True if the result needs neither a series nor a fraction. *value is then `at_zero` (no mass
 * below x), `at_infinity` (all mass below x), or NaN. */
static bool gamma_edge(double a, double x, double at_zero, double at_infinity, double *value)
{
	if (!(a > 0) || !(x >= 0) || (isinf(a) && isinf(x)))
		*value = NAN;
	else if (x == 0 || isinf(a))
		*value = at_zero;
	else
		*value = at_infinity;
	return !(a > 0 && x > 0 && isfinite(a) && isfinite(x));
}

static double regularized_gamma(double a, double x, bool is_lower)
{
	double edge;

	if (gamma_edge(a, x, !is_lower, is_lower, &edge))
		return edge;
	bool series = use_series(a, x);
	struct part p = series ? lower_series(a, x) : upper_fraction(a, x);
	double s = exp(p.log) * p.value;
	return series == is_lower ? s : 1 - s;
}

double special_igamma(double a, double x)
{
	return x == 0 ? 0 : regularized_gamma(a, x, true); /* for a <= 0 too */
}

double special_igammac(double a, double x)
{
	return regularized_gamma(a, x, false);
}

double special_igamma_grad_a(double a, double x)
{
	double edge;

	if (x == 0)
		return 0; /* for a <= 0 too */
	if (gamma_edge(a, x, 0, 0, &edge))
		return edge;
	bool series = use_series(a, x);
	struct part p = series ? lower_series(a, x) : upper_fraction(a, x);
	double slope = exp(p.log) * (p.value * p.log_slope + p.value_slope);
	return series ? slope : -slope;
}

/* The cumulative probability of a sample stays constant: dx = -(derivative by a) / density. The
 * density is the factor before the series or fraction, times a / x or 1 / x. */
double special_gamma_sample_grad(double a, double x)
{
	double edge;

	if (gamma_edge(a, x, 0, 0, &edge))
		return edge;
	if (use_series(a, x)) {
		struct part p = lower_series(a, x);
		return -(p.value * p.log_slope + p.value_slope) * x / a;
	}
	struct part p = upper_fraction(a, x);
	return (p.value * p.log_slope + p.value_slope) * x;
}

/* ---- the incomplete beta function ---- */

static double not_tiny(double x)
{
	return fabs(x) < tiny ? tiny : x;
}

static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 / not_tiny(1 - (a + b) * x / (a + 1)), h = d;

	for (int m = 1; m < MAX_TERMS; m++) {
		double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		d = 1 / not_tiny(1 + even * d);
		c = not_tiny(1 + even / c);
		h *= c * d;
		d = 1 / not_tiny(1 + odd * d);
		c = not_tiny(1 + odd / c);
		h *= c * d;
		if (fabs(c * d - 1) <= epsilon)
			break;
	}
	return h;
}

double special_betainc(double a, double b, double x)
{
	if (!(a > 0 && b > 0 && x >= 0 && x <= 1))
		return NAN;
	if (x == 0 || x == 1)
		return x;
	double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}
