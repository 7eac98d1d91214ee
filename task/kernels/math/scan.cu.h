/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products: a thread for each line along the axis, in the CPU's order; for long
 * lines a block for each, ROW_THREADS elements at a time. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/block.h"

#define SCAN_KERNEL(t, name, start, expr)                                                          \
	KERNEL(name##_##t, scan_args)                                                              \
	{                                                                                          \
		EACH(line, a.outer *a.inner)                                                       \
		{                                                                                  \
			const int64_t first = line / a.inner * a.n * a.inner + line % a.inner;     \
			C(t) x = start;                                                            \
			for (int64_t i = 0; i < a.n; i++) {                                        \
				const int64_t at =                                                 \
				    first + (a.reverse ? a.n - 1 - i : i) * a.inner;               \
				const C(t) y = GET(t, a.in, at), before = x;                       \
				x = (expr);                                                        \
				PUT(t, a.out, at, a.exclusive ? before : x);                       \
			}                                                                          \
		}                                                                                  \
	}
#define SCAN_BLOCK_KERNEL(t, name, start, expr)                                                    \
	DEVICE C(t) name##_pair_##t(C(t) x, C(t) y)                                                \
	{                                                                                          \
		return (C(t))(expr);                                                               \
	}                                                                                          \
	BLOCK_KERNEL(name##_block_##t, scan_args)                                                  \
	{                                                                                          \
		SHARED C(t) shared[ROW_THREADS];                                                   \
		const int me = (int)threadIdx.x;                                                   \
		for (int64_t line = blockIdx.x; line < a.outer * a.inner; line += gridDim.x) {     \
			const int64_t first = line / a.inner * a.n * a.inner + line % a.inner;     \
			C(t) carry = (C(t))(start);                                                \
			for (int64_t tile = 0; tile < a.n; tile += ROW_THREADS) {                  \
				const int64_t i = tile + me;                                       \
				const int64_t at =                                                 \
				    first + (a.reverse ? a.n - 1 - i : i) * a.inner;               \
				shared[me] = i < a.n ? GET(t, a.in, at) : (C(t))(start);           \
				SYNC();                                                            \
				for (int step = 1; step < ROW_THREADS; step *= 2) {                \
					C(t) x = shared[me];                                       \
					if (me >= step)                                            \
						x = name##_pair_##t(shared[me - step], x);         \
					SYNC();                                                    \
					shared[me] = x;                                            \
					SYNC();                                                    \
				}                                                                  \
				const C(t) before = me ? shared[me - 1] : (C(t))(start);           \
				const C(t) with = shared[me], all = shared[ROW_THREADS - 1];       \
				SYNC();                                                            \
				if (i < a.n)                                                       \
					PUT(t, a.out, at,                                          \
					    name##_pair_##t(carry, a.exclusive ? before : with));  \
				carry = name##_pair_##t(carry, all);                               \
			}                                                                          \
		}                                                                                  \
	}
#define SCAN_KERNELS(t)                                                                            \
	SCAN_KERNEL(t, Cumsum, 0, x + y)                                                           \
	SCAN_KERNEL(t, Cumprod, 1, x *y)                                                           \
	SCAN_BLOCK_KERNEL(t, Cumsum, 0, x + y)                                                     \
	SCAN_BLOCK_KERNEL(t, Cumprod, 1, x *y)
EACH_NUM(SCAN_KERNELS)
