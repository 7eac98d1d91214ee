/* SPDX-License-Identifier: Apache-2.0 */
/* Draws of classes by binary search in the running sums of their probabilities. */
#include "task/kernels/array/search.cu.h"
#include "task/kernels/random/random.cu.h"

/* One thread per row, in the order of the CPU; elements that are not finite add 0. */
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
		const int64_t first = index_div(i, a.samples) * a.n;
		const int second = (int)(i % 2) * 2;
		uint32_t x[4];
		draw_at(&a.draws, (uint64_t)i / 2, x);
		const double all = GET(f64, a.sums, first + a.n - 1);
		const double drawn = unit_f64(x[second], x[second + 1]) * all;
		index_put(a.out, i, place_in_f64(a.sums, first, a.n, drawn, 1), a.wide);
	}
}
