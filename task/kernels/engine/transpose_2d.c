/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of 4 and 8 bytes are transposed by vectors (engine/loops/transpose.h), shorter ones by
 * the loops here.
 *
 * A few cache lines of several rows are first gathered in consecutive memory, because rows that are
 * a power of two apart would evict each other from the first-level cache. The output is written
 * in whole lines. */
#include "task/kernels/engine/transpose_2d.h"

#include <string.h>

#include "lib/base/ints.h"
#include "task/kernels/engine/loops/loops.h"

enum { LINE = 64, LINES = 4 };

#define TRANSPOSE(T)                                                                               \
	static void transpose_##T(T *to, int64_t to_step, const T *from, int64_t from_step,        \
				  int64_t m, int64_t n)                                            \
	{                                                                                          \
		enum { N = LINE / sizeof(T), M = LINES * N };                                      \
		T rows[N][M], line[N];                                                             \
		for (int64_t j = 0; j < n; j += N)                                                 \
			for (int64_t i = 0; i < m; i += M) {                                       \
				int64_t n_rows = mu_min(n - j, N), n_columns = mu_min(m - i, M);   \
				const T *at = from + j * from_step + i;                            \
				for (int64_t y = 0; y < n_rows; y++, at += from_step)              \
					memcpy(rows[y], at, (size_t)n_columns * sizeof(T));        \
				T *out = to + i * to_step + j;                                     \
				for (int64_t x = 0; x < n_columns && n_rows == N;                  \
				     x++, out += to_step) {                                        \
					for (int y = 0; y < N; y++)                                \
						line[y] = rows[y][x];                              \
					memcpy(out, line, sizeof line);                            \
				}                                                                  \
				for (int64_t x = 0; x < n_columns && n_rows < N;                   \
				     x++, out += to_step)                                          \
					for (int64_t y = 0; y < n_rows; y++)                       \
						out[y] = rows[y][x];                               \
			}                                                                          \
	}
TRANSPOSE(uint8_t)
TRANSPOSE(uint16_t)

void transpose_2d(size_t size, void *to, int64_t to_step, const void *from, int64_t from_step,
		  int64_t m, int64_t n)
{
	if (size == 1)
		transpose_uint8_t(to, to_step, from, from_step, m, n);
	else if (size == 2)
		transpose_uint16_t(to, to_step, from, from_step, m, n);
	else
		loops->transpose[size == 4 ? TRANSPOSE_4 : TRANSPOSE_8](to, to_step, from,
									from_step, m, n);
}
