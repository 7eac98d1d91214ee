/* SPDX-License-Identifier: Apache-2.0 */
/* What is looked for in rows that rise, and draws of classes, which are looked for in running sums.
 */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"
#include "task/kernels/random/random.cu.h"

#define SEARCH_KERNELS(t)                                                                          \
	/* the first place of row that is not below v; or, upper, that is above it */              \
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
			const int64_t row = divided(i, a.values);                                  \
			const int64_t at =                                                         \
			    place_in_##t(a.sorted, row * a.n, a.n, GET(t, a.in, i), a.upper);      \
			if (a.wide)                                                                \
				PTR(int64_t, a.out)[i] = at;                                       \
			else                                                                       \
				PTR(int32_t, a.out)[i] = (int32_t)at;                              \
		}                                                                                  \
	}
SEARCH_KERNELS(f32)
SEARCH_KERNELS(f64)
SEARCH_KERNELS(i64)

/* A thread goes through a row, in the CPU's order; what is not finite adds nothing. */
#define CLASS_SUMS_KERNEL(t)                                                                       \
	KERNEL(class_sums_##t, classes_args)                                                       \
	{                                                                                          \
		EACH(r, a.rows)                                                                    \
		{                                                                                  \
			double largest = -INFINITY, sum = 0;                                       \
			for (int64_t i = r * a.n; i < (r + 1) * a.n; i++) {                        \
				const double x = (double)GET(t, a.in, i);                          \
				if (x - x == 0 && x > largest)                                     \
					largest = x;                                               \
			}                                                                          \
			for (int64_t i = r * a.n; i < (r + 1) * a.n; i++) {                        \
				const double x = (double)GET(t, a.in, i);                          \
				sum += x - x == 0 ? exp(x - largest) : 0;                          \
				PTR(double, a.sums)[i] = sum;                                      \
			}                                                                          \
		}                                                                                  \
	}
CLASS_SUMS_KERNEL(f32)
CLASS_SUMS_KERNEL(f64)

KERNEL(class_draw, classes_args)
{
	EACH(i, a.rows * a.samples)
	{
		const int64_t first = divided(i, a.samples) * a.n;
		const int second = (int)(i % 2) * 2;
		uint32_t x[4];
		draw_at(&a.draws, (uint64_t)i / 2, x);
		const double all = GET(f64, a.sums, first + a.n - 1);
		const double drawn = unit_f64(x[second], x[second + 1]) * all;
		const int64_t class_at = place_in_f64(a.sums, first, a.n, drawn, 1);
		if (a.wide)
			PTR(int64_t, a.out)[i] = class_at;
		else
			PTR(int32_t, a.out)[i] = (int32_t)class_at;
	}
}
