/* SPDX-License-Identifier: Apache-2.0 */
/* Transpose of blocks of vectors, for body.h.  A block has as many rows as a vector has lanes, and
 * each row is one vector.  A round interleaves row y of the first half with row y of the second
 * half; log2(lanes) rounds, one for each bit of an index, exchange rows and columns. */
#include "task/kernels/engine/transpose_2d.h"

#define TRANSPOSE_UNROLLED _Pragma("GCC unroll 16")

#define TRANSPOSE_LOW_2(a, b)  __builtin_shufflevector(a, b, 0, 2)
#define TRANSPOSE_HIGH_2(a, b) __builtin_shufflevector(a, b, 1, 3)
#define TRANSPOSE_LOW_4(a, b)  __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define TRANSPOSE_HIGH_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define TRANSPOSE_LOW_8(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define TRANSPOSE_HIGH_8(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define TRANSPOSE_LOW_16(a, b)                                                                     \
	__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define TRANSPOSE_HIGH_16(a, b)                                                                    \
	__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)

#if VECTOR_BYTES == 64
#define TRANSPOSE_LANES_uint32_t 16
#define TRANSPOSE_LANES_uint64_t 8
#elif VECTOR_BYTES == 32
#define TRANSPOSE_LANES_uint32_t 8
#define TRANSPOSE_LANES_uint64_t 4
#else
#define TRANSPOSE_LANES_uint32_t 4
#define TRANSPOSE_LANES_uint64_t 2
#endif

/* One round from `from` to `to`; lanes: a literal number, which selects the index lists. */
#define TRANSPOSE_ROUND(to, from, lanes)                                                           \
	TRANSPOSE_UNROLLED for (int y = 0; y < (lanes) / 2; y++)                                   \
	{                                                                                          \
		(to)[2 * y] = TRANSPOSE_LOW_##lanes((from)[y], (from)[y + (lanes) / 2]);           \
		(to)[2 * y + 1] = TRANSPOSE_HIGH_##lanes((from)[y], (from)[y + (lanes) / 2]);      \
	}
#define TRANSPOSE_ROUNDS_2(r, s)                                                                   \
	TRANSPOSE_ROUND(s, r, 2)                                                                   \
	memcpy(r, s, sizeof(r));
#define TRANSPOSE_ROUNDS_4(r, s) TRANSPOSE_ROUND(s, r, 4) TRANSPOSE_ROUND(r, s, 4)
#define TRANSPOSE_ROUNDS_8(r, s)                                                                   \
	TRANSPOSE_ROUND(s, r, 8)                                                                   \
	TRANSPOSE_ROUND(r, s, 8)                                                                   \
	TRANSPOSE_ROUND(s, r, 8)                                                                   \
	memcpy(r, s, sizeof(r));
#define TRANSPOSE_ROUNDS_16(r, s)                                                                  \
	TRANSPOSE_ROUND(s, r, 16)                                                                  \
	TRANSPOSE_ROUND(r, s, 16)                                                                  \
	TRANSPOSE_ROUND(s, r, 16)                                                                  \
	TRANSPOSE_ROUND(r, s, 16)
#define TRANSPOSE_ROUNDS_OF(lanes, r, s) TRANSPOSE_ROUNDS_##lanes(r, s)
#define TRANSPOSE_ROUNDS(lanes, r, s)    TRANSPOSE_ROUNDS_OF(lanes, r, s)

enum {
	TRANSPOSE_LINE = 64,
	TRANSPOSE_WIDE = 128, /* columns of `from`, rows of `to`, that are processed at a time */
};

/* transpose_block: writes `n_rows` rows of one vector each as `n_columns` rows. It stores whole
 * vectors while at least a vector of the `writable` elements is left; the next store overwrites the
 * surplus of the previous one.
 *
 * transpose_lines: transposes as many rows and columns as a cache line has elements. If the vectors
 * or the matrix are narrower, it first gathers the rows. Each line of `from` is then read once and
 * each line of `to` written once. Without gathering, rows that are a power of two apart would evict
 * each other from the first-level cache. */
#define TRANSPOSE_FUNCTIONS(T)                                                                     \
	typedef T transpose_vec_##T __attribute__((vector_size(VECTOR_BYTES)));                    \
	typedef T transpose_unaligned_##T                                                          \
	    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(sizeof(T))));             \
	static inline __attribute__((always_inline)) void transpose_block_##T(                     \
	    T *to, int64_t to_step, const T *from, int64_t from_step, int64_t n_rows,              \
	    int64_t n_columns, int64_t writable)                                                   \
	{                                                                                          \
		enum { N = VECTOR_BYTES / sizeof(T) };                                             \
		transpose_vec_##T r[N] = {{0}}, s[N];                                              \
		TRANSPOSE_UNROLLED for (int y = 0; y < N; y++)                                     \
		{                                                                                  \
			if (y < n_rows)                                                            \
				r[y] = *(const transpose_unaligned_##T *)(from + y * from_step);   \
		}                                                                                  \
		TRANSPOSE_ROUNDS(TRANSPOSE_LANES_##T, r, s)                                        \
		TRANSPOSE_UNROLLED for (int x = 0; x < N; x++, to += to_step, writable -= to_step) \
		{                                                                                  \
			if (x < n_columns && writable >= N)                                        \
				*(transpose_unaligned_##T *)to = r[x];                             \
			else if (x < n_columns)                                                    \
				memcpy(to, &r[x], (size_t)n_rows * sizeof(T));                     \
		}                                                                                  \
	}                                                                                          \
	static inline __attribute__((always_inline)) void transpose_lines_##T(                     \
	    T *to, int64_t to_step, const T *from, int64_t from_step, int64_t n_rows,              \
	    int64_t n_columns, int64_t writable)                                                   \
	{                                                                                          \
		enum { N = VECTOR_BYTES / sizeof(T), LINE = TRANSPOSE_LINE / sizeof(T) };          \
		T gathered[LINE][LINE];                                                            \
		if (N < LINE || n_columns < LINE) {                                                \
			for (int64_t y = 0; y < n_rows; y++, from += from_step)                    \
				memcpy(gathered[y], from, (size_t)n_columns * sizeof(T));          \
			from = gathered[0];                                                        \
			from_step = LINE;                                                          \
		}                                                                                  \
		for (int64_t i = 0; i < n_columns; i += N)                                         \
			for (int64_t j = 0; j < n_rows; j += N)                                    \
				transpose_block_##T(                                               \
				    to + i * to_step + j, to_step, from + j * from_step + i,       \
				    from_step, n_rows - j < N ? n_rows - j : N,                    \
				    n_columns - i < N ? n_columns - i : N,                         \
				    n_rows - j < N ? writable - i * to_step - j : INT64_MAX);      \
	}                                                                                          \
	static void transpose_##T(void *to_, int64_t to_step, const void *from_,                   \
				  int64_t from_step, int64_t m, int64_t n)                         \
	{                                                                                          \
		enum { N = VECTOR_BYTES / sizeof(T), LINE = TRANSPOSE_LINE / sizeof(T) };          \
		const bool dense = to_step == n && n < N;                                          \
		for (int64_t start = 0, end; start < m; start = end) {                             \
			end = m - start > TRANSPOSE_WIDE ? start + TRANSPOSE_WIDE : m;             \
			for (int64_t j = 0; j < n; j += LINE) {                                    \
				const int64_t n_rows = n - j < LINE ? n - j : LINE;                \
				const T *from = (const T *)from_ + j * from_step;                  \
				T *to = (T *)to_ + j;                                              \
				int64_t i = start;                                                 \
				for (; i + LINE <= end && n_rows == LINE; i += LINE)               \
					transpose_lines_##T(to + i * to_step, to_step, from + i,   \
							    from_step, LINE, LINE, INT64_MAX);     \
				for (; i + LINE <= end; i += LINE)                                 \
					transpose_lines_##T(to + i * to_step, to_step, from + i,   \
							    from_step, n_rows, LINE,               \
							    dense ? (m - i) * n : 0);              \
				if (i < end)                                                       \
					transpose_lines_##T(to + i * to_step, to_step, from + i,   \
							    from_step, n_rows, end - i, 0);        \
			}                                                                          \
		}                                                                                  \
	}
TRANSPOSE_FUNCTIONS(uint32_t)
TRANSPOSE_FUNCTIONS(uint64_t)

#define TRANSPOSE_TABLE                                                                            \
	{                                                                                          \
		transpose_uint32_t, transpose_uint64_t                                             \
	}
