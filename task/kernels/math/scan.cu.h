/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products: a thread for each line along the axis, in the CPU's order, or a block
 * for each piece of a long one, in an order that the shape alone decides. */
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
				const C(t) y = GET(t, a.in, at);                                   \
				if (a.exclusive)                                                   \
					PUT(t, a.out, at, x);                                      \
				x = (expr);                                                        \
				if (!a.exclusive)                                                  \
					PUT(t, a.out, at, x);                                      \
			}                                                                          \
		}                                                                                  \
	}
/* So many elements at a time: each thread's with those of all before it. */
#define SCAN_BLOCK_KERNEL(t, name, start, expr)                                                    \
	DEVICE C(t) name##_pair_##t(C(t) x, C(t) y)                                                \
	{                                                                                          \
		return (C(t))(expr);                                                               \
	}                                                                                          \
	BLOCK_KERNEL(name##_block_##t, scan_block_args)                                            \
	{                                                                                          \
		SHARED C(t) room[ROW_THREADS];                                                     \
		const int me = (int)threadIdx.x;                                                   \
		for (int64_t b = blockIdx.x; b < a.of.outer * a.of.inner * a.pieces;               \
		     b += gridDim.x) {                                                             \
			const int64_t line = b / a.pieces, from = b % a.pieces * a.piece;          \
			const int64_t end = from + a.piece < a.of.n ? from + a.piece : a.of.n;     \
			const int64_t first =                                                      \
			    line / a.of.inner * a.of.n * a.of.inner + line % a.of.inner;           \
			C(t) carry = a.carried ? PTR(const C(t), a.sums)[b] : (C(t))(start);       \
			for (int64_t tile = from; tile < end; tile += ROW_THREADS) {               \
				const int64_t i = tile + me;                                       \
				const int64_t at =                                                 \
				    first + (a.of.reverse ? a.of.n - 1 - i : i) * a.of.inner;      \
				room[me] = i < end ? GET(t, a.of.in, at) : (C(t))(start);          \
				SYNC();                                                            \
				for (int step = 1; step < ROW_THREADS; step *= 2) {                \
					C(t) x = room[me];                                         \
					if (me >= step)                                            \
						x = name##_pair_##t(room[me - step], x);           \
					SYNC();                                                    \
					room[me] = x;                                              \
					SYNC();                                                    \
				}                                                                  \
				const C(t) before = me ? room[me - 1] : (C(t))(start);             \
				const C(t) with = room[me], all = room[ROW_THREADS - 1];           \
				SYNC();                                                            \
				if (i < end && !a.totals)                                          \
					PUT(t, a.of.out, at,                                       \
					    name##_pair_##t(carry,                                 \
							    a.of.exclusive ? before : with));      \
				carry = name##_pair_##t(carry, all);                               \
			}                                                                          \
			if (a.totals && me == 0)                                                   \
				PTR(C(t), a.sums)[b] = carry;                                      \
		}                                                                                  \
	}
#define SCAN_KERNELS(t)                                                                            \
	SCAN_KERNEL(t, Cumsum, 0, x + y)                                                           \
	SCAN_KERNEL(t, Cumprod, 1, x *y)                                                           \
	SCAN_BLOCK_KERNEL(t, Cumsum, 0, x + y)                                                     \
	SCAN_BLOCK_KERNEL(t, Cumprod, 1, x *y)
EACH_NUM(SCAN_KERNELS)
