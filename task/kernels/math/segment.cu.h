/* SPDX-License-Identifier: Apache-2.0 */
/* Rows reduced by segment.  A thread computes one element of an output row from the rows that the
 * list (starts, picks) has for this output row, in the order of the list. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

#define SEGMENT_KERNEL(t, op, empty, expr)                                                         \
	KERNEL(segment_##op##_##t, segment_args)                                                   \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t r = index_div(i, a.row), in = i - r * a.row;                       \
			const int64_t first = PTR(const int64_t, a.starts)[r];                     \
			const int64_t end = PTR(const int64_t, a.starts)[r + 1];                   \
			C(t) x = empty;                                                            \
			for (int64_t k = first; k < end; k++) {                                    \
				int64_t from = PTR(const int64_t, a.picks)[k];                     \
				C(t) y = GET(t, a.data, from * a.row + in);                        \
				if (a.factors)                                                     \
					y *= (C(t))PTR(const double, a.factors)[k];                \
				x = k == first ? y : expr;                                         \
			}                                                                          \
			if (a.divisors && first < end)                                             \
				x /= (C(t))PTR(const double, a.divisors)[r];                       \
			PUT(t, a.out, i, x);                                                       \
		}                                                                                  \
	}
#define SEGMENT_KERNELS(t)                                                                         \
	SEGMENT_KERNEL(t, sum, 0, x + y)                                                           \
	SEGMENT_KERNEL(t, prod, 1, x *y)                                                           \
	SEGMENT_KERNEL(t, max, 0, larger(x, y))                                                    \
	SEGMENT_KERNEL(t, min, 0, smaller(x, y))
EACH_FLT(SEGMENT_KERNELS)
