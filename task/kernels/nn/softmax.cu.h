/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax and cross entropies, a block for each row. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/block.h"
#include "task/kernels/engine/cuda/math.h"

#define SOFTMAX_KERNEL(t)                                                                          \
	BLOCK_KERNEL(softmax_##t, softmax_args)                                                    \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		SHARED T shared[ROW_THREADS];                                                      \
		for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {                   \
			T top = (T)-INFINITY, sum = 0;                                             \
			EACH_OF_ROW(c, a.n)                                                        \
			{                                                                          \
				T x = GET(t, a.in, row * a.n + c);                                 \
				top = larger(top, x);                                              \
			}                                                                          \
			top = block_max_##t(shared, top);                                          \
			EACH_OF_ROW(c, a.n)                                                        \
			sum += exp(GET(t, a.in, row * a.n + c) - top);                             \
			sum = block_sum_##t(shared, sum);                                          \
			T logsum = log(sum);                                                       \
			EACH_OF_ROW(c, a.n)                                                        \
			{                                                                          \
				T x = GET(t, a.in, row * a.n + c) - top;                           \
				PUT(t, a.out, row *a.n + c,                                        \
				    a.logarithm ? x - logsum : exp(x) / sum);                      \
			}                                                                          \
		}                                                                                  \
	}
EACH_FLT(SOFTMAX_KERNEL)

#define LOGIT(t, row, c) GET(t, a.logits, (row)*a.logit_row + (c)*a.logit_column)
#define ROW_STATS(t)                                                                               \
	T top = (T)-INFINITY, sum = 0;                                                             \
	EACH_OF_ROW(c, a.n)                                                                        \
	{                                                                                          \
		T x = LOGIT(t, row, c);                                                            \
		top = larger(top, x);                                                              \
	}                                                                                          \
	top = block_max_##t(shared, top);                                                          \
	EACH_OF_ROW(c, a.n)                                                                        \
	sum += exp(LOGIT(t, row, c) - top);                                                        \
	sum = block_sum_##t(shared, sum);                                                          \
	const T logsum = log(sum);

/* loss = - sum of label * log softmax(logit); back = softmax(logit) - label. */
#define XENT_KERNEL(t)                                                                             \
	BLOCK_KERNEL(xent_##t, xent_args)                                                          \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		SHARED T shared[ROW_THREADS];                                                      \
		for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {                   \
			ROW_STATS(t)                                                               \
			T loss = 0;                                                                \
			EACH_OF_ROW(c, a.n)                                                        \
			{                                                                          \
				T x = LOGIT(t, row, c) - top;                                      \
				T label =                                                          \
				    GET(t, a.labels, row * a.label_row + c * a.label_column);      \
				if (label != 0)                                                    \
					loss += label * (logsum - x);                              \
				PUT(t, a.back, row *a.n + c, exp(x) / sum - label);                \
			}                                                                          \
			loss = block_sum_##t(shared, loss);                                        \
			if (threadIdx.x == 0)                                                      \
				PUT(t, a.loss, row, loss);                                         \
		}                                                                                  \
	}
EACH_FLT(XENT_KERNEL)

/* Labels are class indices.  A label out of range makes the results of its row NaN. */
#define SPARSE_XENT_KERNEL(t, i)                                                                   \
	BLOCK_KERNEL(sparse_xent_##i##_##t, xent_args)                                             \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		SHARED T shared[ROW_THREADS];                                                      \
		for (int64_t row = blockIdx.x; row < a.rows; row += gridDim.x) {                   \
			ROW_STATS(t)                                                               \
			int64_t label = GET(i, a.labels, row);                                     \
			bool good = label >= 0 && label < a.n;                                     \
			EACH_OF_ROW(c, a.n)                                                        \
			{                                                                          \
				T x = exp(LOGIT(t, row, c) - top) / sum;                           \
				x = c == label ? x - 1 : x;                                        \
				PUT(t, a.back, row *a.n + c, good ? x : (T)NAN);                   \
			}                                                                          \
			if (threadIdx.x == 0)                                                      \
				PUT(t, a.loss, row,                                                \
				    good ? logsum - (LOGIT(t, row, label) - top) : (T)NAN);        \
		}                                                                                  \
	}
EACH_FLT(SPARSE_XENT_KERNEL, i32)
EACH_FLT(SPARSE_XENT_KERNEL, i64)
