/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_ENGINE_COMPLEX_OF_H
#define MU_TASK_KERNELS_ENGINE_COMPLEX_OF_H

/* CMPLX, which clang lacks.  Unlike re + im * I it is correct for infinities and NaN. */
static inline double _Complex complex_of(double re, double im)
{
	union {
		double part[2];
		double _Complex number;
	} z = {{re, im}};

	return z.number;
}

#endif
