/* SPDX-License-Identifier: Apache-2.0 */
/* TopK and InTopK, one block for each row.  Larger values come first, then lower indices; NaN comes
 * last.  TopK finds its k values one after another, each the first of those that come after the
 * previous one, so it needs no scratch memory. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/block.h"
#include "task/kernels/engine/cuda/index.h"

#define RANKED(t)                                                                                  \
	struct ranked_##t {                                                                        \
		C(t) v;                                                                            \
		int64_t at; /* -1: none, which comes last */                                       \
	};                                                                                         \
	DEVICE bool ahead_##t(struct ranked_##t x, struct ranked_##t y)                            \
	{                                                                                          \
		if (x.at < 0 || y.at < 0)                                                          \
			return y.at < 0;                                                           \
		if (x.v > y.v || (x.v == x.v && y.v != y.v))                                       \
			return true;                                                               \
		if (x.v < y.v || (y.v == y.v && x.v != x.v))                                       \
			return false;                                                              \
		return x.at < y.at;                                                                \
	}                                                                                          \
	BLOCK_REDUCE(struct ranked_##t, block_first_##t, ahead_##t(x, y) ? x : y)
EACH_NUM(RANKED)

#define TOP_K_KERNEL(t)                                                                            \
	BLOCK_KERNEL(top_k_##t, top_k_args)                                                        \
	{                                                                                          \
		SHARED struct ranked_##t shared[ROW_THREADS];                                      \
		for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {                   \
			struct ranked_##t last = {0, -1};                                          \
			for (int64_t j = 0; j < a.k; j++) {                                        \
				struct ranked_##t best = {0, -1};                                  \
				EACH_OF_ROW(c, a.n)                                                \
				{                                                                  \
					struct ranked_##t x = {GET(t, a.in, row * a.n + c), c};    \
					if ((!j || ahead_##t(last, x)) && ahead_##t(x, best))      \
						best = x;                                          \
				}                                                                  \
				last = block_first_##t(shared, best);                              \
				if (threadIdx.x == 0) {                                            \
					PUT(t, a.out, row *a.k + j, last.v);                       \
					PTR(int32_t, a.at)[row * a.k + j] = (int32_t)last.at;      \
				}                                                                  \
			}                                                                          \
		}                                                                                  \
	}
EACH_NUM(TOP_K_KERNEL)

BLOCK_REDUCE(int64_t, block_sum_i64, x + y)

/* False for a target out of range, and for a row with NaN or infinities. */
BLOCK_KERNEL(in_top_k_f32, top_k_args)
{
	SHARED int64_t shared[ROW_THREADS];

	for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {
		const int64_t target = index_at(a.targets, row, a.wide);
		const bool there = target >= 0 && target < a.n;
		const float mine = there ? GET(f32, a.in, row * a.n + target) : 0.0f;
		int64_t larger = 0, wrong = 0;
		EACH_OF_ROW(c, a.n)
		{
			const float x = GET(f32, a.in, row * a.n + c);
			larger += x > mine;
			wrong += !(x - x == 0);
		}
		larger = block_sum_i64(shared, larger);
		wrong = block_sum_i64(shared, wrong);
		if (threadIdx.x == 0)
			PUT(u8, a.out, row, there && !wrong && larger < a.k);
	}
}
