/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products without cuBLAS: one thread per element.  Sums are in the compute type. */
#include "task/kernels/engine/cuda/index.h"

#define MATMUL_KERNEL(t)                                                                           \
	KERNEL(matmul_##t, matmul_args)                                                            \
	{                                                                                          \
		EACH(i, a.count)                                                                   \
		{                                                                                  \
			const int64_t row = index_div(i, a.n), column = i - row * a.n;             \
			const int64_t matrix = index_div(row, a.m);                                \
			const int64_t at = operand_offset(&a.by, matrix, 0) * a.m * a.k +          \
					   (row - matrix * a.m) * a.a_row;                         \
			const int64_t bt =                                                         \
			    operand_offset(&a.by, matrix, 1) * a.k * a.n + column * a.b_column;    \
			C(t) sum = 0;                                                              \
			for (int64_t k = 0; k < a.k; k++)                                          \
				sum += GET(t, a.a, at + k * a.a_column) *                          \
				       GET(t, a.b, bt + k * a.b_row);                              \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
EACH_FLT(MATMUL_KERNEL)
