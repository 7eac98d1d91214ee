/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions of one dimension of [outer, reduced, inner].  A thread computes one piece of one
 * output; neighbouring threads read neighbouring elements.  The order is fixed, so that results are
 * the same in every run. */
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

#define REDUCE_KERNEL(t, op, start, expr)                                                          \
	KERNEL(op##_##t, reduce_args)                                                              \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		EACH(i, a.outer *a.pieces *a.inner)                                                \
		{                                                                                  \
			int64_t in = i % a.inner, piece = i / a.inner % a.pieces;                  \
			int64_t at = (i / a.inner / a.pieces * a.reduced) * a.inner + in;          \
			T x = (T)(start);                                                          \
			for (int64_t r = piece; r < a.reduced; r += a.pieces) {                    \
				const T y = GET(t, a.in, at + r * a.inner);                        \
				x = (T)(expr);                                                     \
			}                                                                          \
			PUT(t, a.out, i, a.scale == 1 ? x : (T)(x * a.scale));                     \
		}                                                                                  \
	}
#define LOWEST_f32   (-INFINITY)
#define LOWEST_f64   (-INFINITY)
#define LOWEST_f16   (-INFINITY)
#define LOWEST_bf16  (-INFINITY)
#define LOWEST_i64   INT64_MIN
#define HIGHEST_f32  INFINITY
#define HIGHEST_f64  INFINITY
#define HIGHEST_f16  INFINITY
#define HIGHEST_bf16 INFINITY
#define HIGHEST_i64  INT64_MAX
#define REDUCTIONS(t)                                                                              \
	REDUCE_KERNEL(t, Sum, 0, x + y)                                                            \
	REDUCE_KERNEL(t, Prod, 1, x *y)                                                            \
	REDUCE_KERNEL(t, Max, LOWEST_##t, larger(x, y))                                            \
	REDUCE_KERNEL(t, Min, HIGHEST_##t, smaller(x, y))                                          \
	REDUCE_KERNEL(t, SumSquares, 0, x + y * y)
EACH_NUM(REDUCTIONS)
REDUCE_KERNEL(u8, All, 1, x &&y)
REDUCE_KERNEL(u8, Any, 0, x || y)

/* The index of the first of the largest or smallest elements. */
#define ARGMAX_KERNEL(t)                                                                           \
	KERNEL(argmax_##t, argmax_args)                                                            \
	{                                                                                          \
		EACH(i, a.outer *a.inner)                                                          \
		{                                                                                  \
			int64_t at = i / a.inner * a.n * a.inner + i % a.inner, best = 0;          \
			C(t) top = GET(t, a.in, at);                                               \
			for (int64_t k = 1; k < a.n; k++) {                                        \
				C(t) x = GET(t, a.in, at + k * a.inner);                           \
				if (a.smallest ? x < top : x > top) {                              \
					top = x;                                                   \
					best = k;                                                  \
				}                                                                  \
			}                                                                          \
			index_put(a.out, i, best, a.wide);                                         \
		}                                                                                  \
	}
EACH_NUM(ARGMAX_KERNEL)
