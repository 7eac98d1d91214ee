/* SPDX-License-Identifier: Apache-2.0 */
/* Many that come first of a row, a block for each row or piece of one.  A value is seen as a number
 * whose order is that of rank.cu.h; four bits at a time are found of the kth largest, by counting.
 * What is larger, and as many of its equals as are wanted, are listed in their order and sorted by
 * merging, which leaves equals as they stand. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/block.h"

enum { DIGITS = 16 };

#define RANK_BITS_f32  32
#define RANK_BITS_f16  32
#define RANK_BITS_bf16 32
#define RANK_BITS_f64  64
#define RANK_BITS_i64  64

DEVICE uint64_t rank_key_f32(float v)
{
	uint32_t u = v == 0 ? 0 : bits_of(v);

	return v != v ? 0 : u >> 31 ? ~u : u | 0x80000000u;
}
#define rank_key_f16  rank_key_f32
#define rank_key_bf16 rank_key_f32

DEVICE uint64_t rank_key_f64(double v)
{
	uint64_t u;

#ifdef __CUDACC__
	u = (uint64_t)__double_as_longlong(v);
#else
	memcpy(&u, &v, sizeof u);
#endif
	if (v == 0)
		u = 0;
	return v != v ? 0 : u >> 63 ? ~u : u | 1ull << 63;
}

DEVICE uint64_t rank_key_i64(int64_t v)
{
	return (uint64_t)v ^ 1ull << 63;
}

/* Columns [from, from + n) of a row, as what they are ordered by. */
struct ranked_row {
	uint64_t in;
	int64_t from, n;
};

/* The column in `total` in which the kth largest is; how many are in those above it. */
DEVICE int digit_of(const int32_t *total, int64_t k, int64_t *above)
{
	int d = DIGITS - 1;

	for (; d > 0 && *above + total[d] < k; d--)
		*above += total[d];
	return d;
}

#define TOP_K_SELECT(t)                                                                            \
	DEVICE uint64_t key_at_##t(const struct ranked_row *r, int64_t c)                          \
	{                                                                                          \
		return rank_key_##t(GET(t, r->in, r->from + c));                                   \
	}                                                                                          \
	/* The key of the kth largest; *above are larger. */                                       \
	DEVICE uint64_t kth_key_##t(const struct ranked_row *r, int64_t k, int32_t *room,          \
				    int32_t *total, int64_t *above)                                \
	{                                                                                          \
		const int me = (int)threadIdx.x;                                                   \
		uint64_t kth = 0;                                                                  \
		for (int shift = RANK_BITS_##t - 4; shift >= 0; shift -= 4) {                      \
			int32_t mine[DIGITS] = {0};                                                \
			EACH_OF_ROW(c, r->n)                                                       \
			{                                                                          \
				const uint64_t key = key_at_##t(r, c);                             \
				const int digit = (int)(key >> shift & (DIGITS - 1));              \
				const int in = (key ^ kth) >> shift >> 4 == 0;                     \
				for (int d = 0; d < DIGITS; d++)                                   \
					mine[d] += in && digit == d;                               \
			}                                                                          \
			for (int d = 0; d < DIGITS; d++)                                           \
				room[d * ROW_THREADS + me] = mine[d];                              \
			SYNC();                                                                    \
			if (me < DIGITS) {                                                         \
				int32_t sum = 0;                                                   \
				for (int i = 0; i < ROW_THREADS; i++)                              \
					sum += room[me * ROW_THREADS + i];                         \
				total[me] = sum;                                                   \
			}                                                                          \
			SYNC();                                                                    \
			kth |= (uint64_t)digit_of(total, k, above) << shift;                       \
		}                                                                                  \
		return kth;                                                                        \
	}                                                                                          \
	/* Columns of what is among the k first, in their order. */                                \
	DEVICE void list_first_##t(const struct ranked_row *r, uint64_t kth, int64_t equals,       \
				   int32_t *room, int32_t *list)                                   \
	{                                                                                          \
		const int me = (int)threadIdx.x;                                                   \
		const int64_t each = (r->n + ROW_THREADS - 1) / ROW_THREADS, from = me * each;     \
		const int64_t end = from + each < r->n ? from + each : r->n;                       \
		int32_t larger_ones = 0, equal = 0;                                                \
		for (int64_t c = from; c < end; c++) {                                             \
			const uint64_t key = key_at_##t(r, c);                                     \
			larger_ones += key > kth;                                                  \
			equal += key == kth;                                                       \
		}                                                                                  \
		room[me] = larger_ones;                                                            \
		room[ROW_THREADS + me] = equal;                                                    \
		SYNC();                                                                            \
		int64_t to = 0, before = 0;                                                        \
		for (int i = 0; i < me; i++) {                                                     \
			to += room[i];                                                             \
			before += room[ROW_THREADS + i];                                           \
		}                                                                                  \
		to += before < equals ? before : equals;                                           \
		for (int64_t c = from; c < end; c++) {                                             \
			const uint64_t key = key_at_##t(r, c);                                     \
			if (key > kth || (key == kth && before < equals))                          \
				list[to++] = (int32_t)c;                                           \
			before += key == kth;                                                      \
		}                                                                                  \
		SYNC();                                                                            \
	}                                                                                          \
	/* Sorted runs of that length -> of twice that. */                                         \
	DEVICE void merge_ranked_##t(const struct ranked_row *r, int64_t k, int64_t run,           \
				     const int32_t *from, int32_t *to)                             \
	{                                                                                          \
		EACH_OF_ROW(i, k)                                                                  \
		{                                                                                  \
			const int64_t pair = i / (2 * run) * (2 * run), middle = pair + run;       \
			const int64_t end = middle + run < k ? middle + run : k;                   \
			const int left = i < middle;                                               \
			const int64_t first = left ? (middle < k ? middle : k) : pair;             \
			const uint64_t key = key_at_##t(r, from[i]);                               \
			int64_t low = first, high = left ? end : middle;                           \
			while (low < high) {                                                       \
				const int64_t at = low + (high - low) / 2;                         \
				const uint64_t other = key_at_##t(r, from[at]);                    \
				if (left ? other > key : other >= key)                             \
					low = at + 1;                                              \
				else                                                               \
					high = at;                                                 \
			}                                                                          \
			to[(left ? i : pair + i - middle) + low - first] = from[i];                \
		}                                                                                  \
		SYNC();                                                                            \
	}                                                                                          \
	BLOCK_KERNEL(top_k_select_##t, top_k_args)                                                 \
	{                                                                                          \
		SHARED int32_t room[DIGITS * ROW_THREADS];                                         \
		SHARED int32_t total[DIGITS];                                                      \
		for (int64_t b = blockIdx.x; b < a.rows * a.pieces; b += gridDim.x) {              \
			const int64_t row = b / a.pieces, p = b % a.pieces;                        \
			const int64_t column = p * a.n / a.pieces;                                 \
			const struct ranked_row r = {a.in, row * a.n + column,                     \
						     (p + 1) * a.n / a.pieces - column};           \
			int32_t *from = PTR(int32_t, a.at) + b * a.k;                              \
			int32_t *to = PTR(int32_t, a.order) + b * a.k, *last = from;               \
			int64_t above = 0;                                                         \
			const uint64_t kth = kth_key_##t(&r, a.k, room, total, &above);            \
			list_first_##t(&r, kth, a.k - above, room, from);                          \
			for (int64_t run = 1; run < a.k; run *= 2) {                               \
				merge_ranked_##t(&r, a.k, run, from, to);                          \
				int32_t *was = from;                                               \
				from = to;                                                         \
				to = was;                                                          \
			}                                                                          \
			EACH_OF_ROW(i, a.k)                                                        \
			{                                                                          \
				const int64_t c = from[i], at = r.from + c;                        \
				PUT(t, a.out, b *a.k + i, GET(t, a.in, at));                       \
				last[i] =                                                          \
				    a.ids ? PTR(const int32_t, a.ids)[at] : (int32_t)(column + c); \
			}                                                                          \
		}                                                                                  \
	}
EACH_NUM(TOP_K_SELECT)
