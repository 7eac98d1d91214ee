/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of float or double for tests that run with both types. */
#ifndef MU_TESTS_KERNELS_NUMBERS_H
#define MU_TESTS_KERNELS_NUMBERS_H

#include "lib/base/mem.h"
#include "lib/tensor/dtype.h"

static inline double number(enum mu_dtype t, const void *p, int64_t i)
{
	return t == MU_FLOAT ? (double)((const float *)p)[i] : ((const double *)p)[i];
}

/* Returns a new array of pseudo-random numbers in [-1, 1), which depend only on the seed. */
static inline void *numbers(enum mu_dtype t, int64_t n, uint32_t seed)
{
	void *p = mu_xcalloc((size_t)n + 1, mu_dtype_size(t));

	for (int64_t i = 0; i < n; i++) {
		seed = seed * 1664525u + 1013904223u;
		double d = (double)(seed >> 8) / (1 << 23) - 1;
		if (t == MU_FLOAT)
			((float *)p)[i] = (float)d;
		else
			((double *)p)[i] = d;
	}
	return p;
}

#endif
