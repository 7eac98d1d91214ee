/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of CheckNumerics and Where. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

/* Sets out[0] if there is an infinite element, out[1] if there is a NaN.  All threads write 1. */
#define WRONG_KERNEL(t)                                                                            \
	KERNEL(wrong_##t, check_numerics_args)                                                     \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const C(t) x = GET(t, a.in, i);                                            \
			if (!(x - x == 0))                                                         \
				PTR(int32_t, a.out)[x != x] = 1;                                   \
		}                                                                                  \
	}
EACH_FLT(WRONG_KERNEL)

#define TRUE_KERNEL(t)                                                                             \
	KERNEL(is_true_##t, unary_args)                                                            \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		PTR(int64_t, a.out)[i] = GET(t, a.in, i) != 0;                                     \
	}
EACH_EQ(TRUE_KERNEL)

KERNEL(where_put, where_args)
{
	const int64_t *counts = PTR(const int64_t, a.counts);

	EACH(i, a.n)
	{
		int64_t rest = i, row = i ? counts[i - 1] : 0;
		if (counts[i] == row)
			continue;
		for (int d = a.rank - 1; d >= 0; d--) {
			int64_t q = index_div(rest, a.dim[d]);
			PTR(int64_t, a.out)[row * a.rank + d] = rest - q * a.dim[d];
			rest = q;
		}
	}
}
