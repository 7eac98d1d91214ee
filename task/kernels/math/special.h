/* SPDX-License-Identifier: Apache-2.0 */
/* Special functions of doubles, to about the last digits of a double.  Every loop in them is
 * bounded. */
#ifndef MU_TASK_KERNELS_MATH_SPECIAL_H
#define MU_TASK_KERNELS_MATH_SPECIAL_H

/* The quantile of the normal distribution for probability p; the inverse of erf. */
double special_ndtri(double p);
double special_erfinv(double x);
/* The regularized incomplete gamma functions, lower and upper, and the derivative of the lower one
 * by a. */
double special_igamma(double a, double x);
double special_igammac(double a, double x);
double special_igamma_grad_a(double a, double x);
/* The derivative by a of a sample of the gamma distribution with parameter a. */
double special_gamma_sample_grad(double a, double sample);
/* The regularized incomplete beta function. */
double special_betainc(double a, double b, double x);

/* The exponential integral Ei, Dawson's integral, Spence's function, both of Fresnel's integrals.
 */
double special_expint(double x);
double special_dawsn(double x);
double special_spence(double x);
double special_fresnel_cos(double x);
double special_fresnel_sin(double x);
double special_j0(double x);
double special_j1(double x);
double special_y0(double x);
double special_y1(double x);
/* Modified Bessel functions; those with e are scaled by e^-|x| and e^x. */
double special_i0e(double x);
double special_i1e(double x);
double special_k0e(double x);
double special_k1e(double x);

#endif
