/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with one block for each row: its threads divide the elements, and combine the results. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_BLOCK_H
#define MU_TASK_KERNELS_ENGINE_CUDA_BLOCK_H

#include "task/kernels/engine/cuda/math.h"

#define ROW_THREADS 64

/* All threads of the block call it, and get the same result. */
#define BLOCK_REDUCE(T, name, expr)                                                                \
	DEVICE T name(T *shared, T mine)                                                           \
	{                                                                                          \
		shared[threadIdx.x] = mine;                                                        \
		SYNC();                                                                            \
		for (int half = ROW_THREADS / 2; half; half /= 2) {                                \
			if ((int)threadIdx.x < half) {                                             \
				const T x = shared[threadIdx.x], y = shared[threadIdx.x + half];   \
				shared[threadIdx.x] = expr;                                        \
			}                                                                          \
			SYNC();                                                                    \
		}                                                                                  \
		T all = shared[0];                                                                 \
		SYNC();                                                                            \
		return all;                                                                        \
	}
BLOCK_REDUCE(float, block_sum_f32, x + y)
BLOCK_REDUCE(double, block_sum_f64, x + y)
BLOCK_REDUCE(float, block_max_f32, larger(x, y))
BLOCK_REDUCE(double, block_max_f64, larger(x, y))
#define block_sum_f16  block_sum_f32
#define block_sum_bf16 block_sum_f32
#define block_max_f16  block_max_f32
#define block_max_bf16 block_max_f32

#define EACH_OF_ROW(c, n) for (int64_t c = threadIdx.x; c < (n); c += ROW_THREADS)

#endif
