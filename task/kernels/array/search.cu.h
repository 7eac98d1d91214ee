/* SPDX-License-Identifier: Apache-2.0 */
/* Binary search in sorted rows. */
#ifndef MU_TASK_KERNELS_ARRAY_SEARCH_CU_H
#define MU_TASK_KERNELS_ARRAY_SEARCH_CU_H

#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

#define SEARCH_KERNELS(t)                                                                          \
	/* The first index of an element of the row that is >= v; upper: > v. */                   \
	DEVICE int64_t place_in_##t(uint64_t row, int64_t first, int64_t n, C(t) v, int upper)     \
	{                                                                                          \
		int64_t from = 0;                                                                  \
		while (from < n) {                                                                 \
			const int64_t middle = from + (n - from) / 2;                              \
			const C(t) x = GET(t, row, first + middle);                                \
			if (upper ? !(v < x) : x < v)                                              \
				from = middle + 1;                                                 \
			else                                                                       \
				n = middle;                                                        \
		}                                                                                  \
		return from;                                                                       \
	}                                                                                          \
	KERNEL(bound_##t, bound_args)                                                              \
	{                                                                                          \
		EACH(i, a.rows *a.values)                                                          \
		{                                                                                  \
			const int64_t row = index_div(i, a.values);                                \
			const int64_t at =                                                         \
			    place_in_##t(a.sorted, row * a.n, a.n, GET(t, a.in, i), a.upper);      \
			index_put(a.out, i, at, a.wide);                                           \
		}                                                                                  \
	}
SEARCH_KERNELS(f32)
SEARCH_KERNELS(f64)
SEARCH_KERNELS(i64)

#endif
