/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products: a block makes a tile of TILE by TILE, each of its 256 threads 4 by 4 of it;
 * tiles of both operands pass through shared memory, DEEP at a time.  Sums are in the computing
 * type (float for the 16-bit ones), bias and activation are applied before the result is written.
 */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

#define TILE           64
#define DEEP           16
#define EACH_WAY       4
#define MATMUL_THREADS (TILE / EACH_WAY * (TILE / EACH_WAY))

#define ACTIVATE(T, kind, x)                                                                       \
	((kind) == 1   ? ((x) < 0 ? (T)0 : (x))                                                    \
	 : (kind) == 2 ? 1 / (1 + exp(-(x)))                                                       \
	 : (kind) == 3 ? tanh(x)                                                                   \
		       : (x))

DEVICE void find_matrices(const struct matmul_args *a, int64_t matrix, int64_t *at_a, int64_t *at_b)
{
	*at_a = *at_b = 0;
	for (int d = a->rank - 1; d >= 0; d--) {
		*at_a += matrix % a->dim[d] * a->a_stride[d];
		*at_b += matrix % a->dim[d] * a->b_stride[d];
		matrix /= a->dim[d];
	}
}

#define MATMUL_KERNEL(t)                                                                           \
	BLOCK_KERNEL(matmul_##t, matmul_args)                                                      \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		SHARED T of_a[DEEP][TILE + 1], of_b[DEEP][TILE + 1];                               \
		const int64_t across = (a.n + TILE - 1) / TILE, down = (a.m + TILE - 1) / TILE;    \
		const int64_t matrix = blockIdx.x / (across * down);                               \
		const int64_t row0 = blockIdx.x / across % down * TILE;                            \
		const int64_t column0 = blockIdx.x % across * TILE;                                \
		int64_t at_a, at_b;                                                                \
		find_matrices(&a, matrix, &at_a, &at_b);                                           \
		const int me = (int)threadIdx.x, my_row = me / 16 * EACH_WAY,                      \
			  my_column = me % 16 * EACH_WAY;                                          \
		T sum[EACH_WAY][EACH_WAY];                                                         \
		for (int r = 0; r < EACH_WAY; r++)                                                 \
			for (int c = 0; c < EACH_WAY; c++)                                         \
				sum[r][c] = 0;                                                     \
		for (int64_t k0 = 0; k0 < a.k; k0 += DEEP) {                                       \
			for (int e = me; e < TILE * DEEP; e += MATMUL_THREADS) {                   \
				/* neighbours read along whichever dimension is dense */           \
				int ak = a.a_column == 1 ? e % DEEP : e / TILE;                    \
				int ar = a.a_column == 1 ? e / DEEP : e % TILE;                    \
				int bk = a.b_column == 1 ? e / TILE : e % DEEP;                    \
				int bc = a.b_column == 1 ? e % TILE : e / DEEP;                    \
				int64_t row = row0 + ar, column = column0 + bc;                    \
				of_a[ak][ar] =                                                     \
				    row < a.m && k0 + ak < a.k                                     \
					? GET(t, a.a,                                              \
					      at_a + row * a.a_row + (k0 + ak) * a.a_column)       \
					: (T)0;                                                    \
				of_b[bk][bc] =                                                     \
				    column < a.n && k0 + bk < a.k                                  \
					? GET(t, a.b,                                              \
					      at_b + (k0 + bk) * a.b_row + column * a.b_column)    \
					: (T)0;                                                    \
			}                                                                          \
			SYNC();                                                                    \
			for (int k = 0; k < DEEP; k++)                                             \
				for (int r = 0; r < EACH_WAY; r++)                                 \
					for (int c = 0; c < EACH_WAY; c++)                         \
						sum[r][c] +=                                       \
						    of_a[k][my_row + r] * of_b[k][my_column + c];  \
			SYNC();                                                                    \
		}                                                                                  \
		for (int r = 0; r < EACH_WAY; r++)                                                 \
			for (int c = 0; c < EACH_WAY; c++) {                                       \
				int64_t row = row0 + my_row + r, column = column0 + my_column + c; \
				if (row >= a.m || column >= a.n)                                   \
					continue;                                                  \
				T x = sum[r][c];                                                   \
				if (a.bias)                                                        \
					x += GET(t, a.bias, column);                               \
				x = (T)ACTIVATE(T, a.activation, x);                               \
				PUT(t, a.out, (matrix * a.m + row) * a.n + column, x);             \
			}                                                                          \
	}
EACH_FLT(MATMUL_KERNEL)
