/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of tiles, for body.h.  The numbers of rows and vectors are constants where tile_TYPE is
 * inlined, so that every accumulator has a register: 28 of 32 with AVX-512, else 12 of 16.  Three
 * rows share a pointer, which leaves enough registers for the addresses. */
#include "task/kernels/engine/loops/tiles.h"

#ifdef __AVX512F__
#define TILE_TALL 1
#else
#define TILE_TALL 0
#endif

/* row, pointer, distance in rows from the pointer */
#define TILE_LOW(X) X(0, p0, 0) X(1, p0, 1) X(2, p0, 2) X(3, p3, 0) X(4, p3, 1) X(5, p3, 2)
#define TILE_HIGH(X)                                                                               \
	X(6, p6, 0)                                                                                \
	X(7, p6, 1) X(8, p6, 2) X(9, p9, 0) X(10, p9, 1) X(11, p9, 2) X(12, p12, 0) X(13, p12, 1)
#define TILE_EACH(X) TILE_LOW(X) TILE_HIGH(X)

#define TILE_DECLARE(r, p, o) vec lo##r = {0}, hi##r = {0};
#define TILE_STEP(r, p, o)                                                                         \
	if (rows > r) {                                                                            \
		lo##r += p[o * row] * b0;                                                          \
		if (vectors > 1)                                                                   \
			hi##r += p[o * row] * b1;                                                  \
	}
/* Prefetches the destination while the sum runs. */
#define TILE_FETCH(r, p, o)                                                                        \
	if (rows > r) {                                                                            \
		__builtin_prefetch(c + r * c_row, 1);                                              \
		__builtin_prefetch(c + r * c_row + width - 1, 1);                                  \
	}
#define TILE_STORE(r, p, o)                                                                        \
	if (rows > r) {                                                                            \
		unaligned_vec *to = (unaligned_vec *)(c + r * c_row);                              \
		if (add) {                                                                         \
			lo##r += to[0];                                                            \
			if (vectors > 1)                                                           \
				hi##r += to[1];                                                    \
		}                                                                                  \
		to[0] = lo##r;                                                                     \
		if (vectors > 1)                                                                   \
			to[1] = hi##r;                                                             \
	}

/* A tile that is narrower than its vectors stores only its columns. If the tile is as wide as c, a
 * store may also overwrite the following elements, as long as they belong to later rows of this
 * tile. */
#define TILE_FUNCTIONS(T)                                                                          \
	static inline __attribute__((always_inline)) void tile_##T(                                \
	    const struct tile *t, const int rows, const int vectors)                               \
	{                                                                                          \
		typedef T vec __attribute__((vector_size(VECTOR_BYTES), may_alias));               \
		typedef T unaligned_vec                                                            \
		    __attribute__((vector_size(VECTOR_BYTES), may_alias, aligned(sizeof(T))));     \
		const int64_t width = vectors * (VECTOR_BYTES / (int)sizeof(T));                   \
		const int64_t row = t->a_row, a_k = t->a_k, b_k = t->b_k;                          \
		const bool whole = t->columns == width, add = t->add && whole;                     \
		T spill[TILE_ROWS * TILE_VECTORS * VECTOR_BYTES / sizeof(T)];                      \
		T *c = whole ? t->c : spill;                                                       \
		const int64_t c_row = whole ? t->c_row : width;                                    \
		const T *b = t->b;                                                                 \
		TILE_EACH(TILE_DECLARE)                                                            \
		TILE_EACH(TILE_FETCH)                                                              \
		for (int64_t i = 0; i < t->n_runs; i++) {                                          \
			const T *p0 = (const T *)t->a + t->runs[i], *p3 = p0 + 3 * row,            \
				*p6 = p3 + 3 * row, *p9 = p6 + 3 * row, *p12 = p9 + 3 * row;       \
			for (int64_t k = t->run; k > 0; k--) {                                     \
				const vec b0 = ((const unaligned_vec *)b)[0];                      \
				const vec b1 = vectors > 1 ? ((const unaligned_vec *)b)[1] : b0;   \
				TILE_EACH(TILE_STEP)                                               \
				p0 += a_k, p3 += a_k, p6 += a_k, p9 += a_k, p12 += a_k, b += b_k;  \
			}                                                                          \
		}                                                                                  \
		TILE_EACH(TILE_STORE)                                                              \
		int64_t i = 0;                                                                     \
		if (!t->add && t->c_row == t->columns)                                             \
			for (; (rows - i) * t->columns >= width && !whole; i++)                    \
				memcpy((T *)t->c + i * t->columns, spill + i * width,              \
				       (size_t)width * sizeof(T));                                 \
		for (; !whole && i < rows; i++)                                                    \
			for (int64_t j = 0; j < t->columns; j++) {                                 \
				T *to = (T *)t->c + i * t->c_row + j;                              \
				*to = spill[i * width + j] + (t->add ? *to : 0);                   \
			}                                                                          \
	}                                                                                          \
	TILE_LOW(TILE_OF_##T)                                                                      \
	TILE_IF_TALL(TILE_HIGH(TILE_OF_##T))

#define TILE_OF(T, r)                                                                              \
	static void tile_##T##_1_##r(const struct tile *t)                                         \
	{                                                                                          \
		tile_##T(t, r + 1, 1);                                                             \
	}                                                                                          \
	static void tile_##T##_2_##r(const struct tile *t)                                         \
	{                                                                                          \
		tile_##T(t, r + 1, 2);                                                             \
	}
#define TILE_OF_float(r, p, o)  TILE_OF(float, r)
#define TILE_OF_double(r, p, o) TILE_OF(double, r)

#define TILE_ENTRY_1_float(r, p, o)  [r] = tile_float_1_##r,
#define TILE_ENTRY_2_float(r, p, o)  [r] = tile_float_2_##r,
#define TILE_ENTRY_1_double(r, p, o) [r] = tile_double_1_##r,
#define TILE_ENTRY_2_double(r, p, o) [r] = tile_double_2_##r,

#if TILE_TALL
#define TILE_IF_TALL(x) x
#else
#define TILE_IF_TALL(x)
#endif

TILE_FUNCTIONS(float)
TILE_FUNCTIONS(double)

#define TILE_ROW_OF(X) TILE_LOW(X) TILE_IF_TALL(TILE_HIGH(X))
#define TILE_LOOPS(T)                                                                              \
	{                                                                                          \
		.lanes = VECTOR_BYTES / sizeof(T), .rows = TILE_TALL ? 14 : 6,                     \
		.run = {                                                                           \
		    {TILE_ROW_OF(TILE_ENTRY_1_##T)},                                               \
		    {TILE_ROW_OF(TILE_ENTRY_2_##T)},                                               \
		},                                                                                 \
	}
#define TILE_TABLE                                                                                 \
	{                                                                                          \
		[MU_FLOAT] = TILE_LOOPS(float), [MU_DOUBLE] = TILE_LOOPS(double)                   \
	}
