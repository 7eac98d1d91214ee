/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives of the logarithm of the gamma function, and the Hurwitz zeta function. */
#ifndef MU_TASK_KERNELS_MATH_GAMMA_H
#define MU_TASK_KERNELS_MATH_GAMMA_H

/* The first derivative; NaN at 0, -1, -2, … */
double gamma_digamma(double x);
/* Derivative n + 1 for a whole n >= 0, else NaN. */
double gamma_polygamma(double n, double x);
/* The sum of (q + k)^-x over k = 0, 1, …, for x above 1. */
double gamma_zeta(double x, double q);

#endif
