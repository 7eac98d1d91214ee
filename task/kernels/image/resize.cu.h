/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of images, and its gradients: see resize_gpu.c. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

#define EACH_LISTED(k, axis, place)                                                                \
	for (int64_t k = PTR(const int64_t, (axis).first)[place];                                  \
	     k < PTR(const int64_t, (axis).first)[(place) + 1]; k++)

#define RESIZE_KERNEL(t)                                                                           \
	KERNEL(resize_##t, resize_args)                                                            \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const int64_t pixel = index_div(i, a.channels),                            \
				      ch = i - pixel * a.channels;                                 \
			const int64_t line = index_div(pixel, a.column.made);                      \
			const int64_t x = pixel - line * a.column.made;                            \
			const int64_t image = index_div(line, a.row.made);                         \
			const int64_t y = line - image * a.row.made;                               \
			double sum = 0;                                                            \
			EACH_LISTED(k, a.row, y)                                                   \
			EACH_LISTED(l, a.column, x)                                                \
			{                                                                          \
				const int64_t from =                                               \
				    (image * a.row.read + PTR(const int64_t, a.row.at)[k]) *       \
					a.column.read +                                            \
				    PTR(const int64_t, a.column.at)[l];                            \
				sum += PTR(const double, a.row.weight)[k] *                        \
				       PTR(const double, a.column.weight)[l] *                     \
				       (double)GET(t, a.in, from * a.channels + ch);               \
			}                                                                          \
			PUT(t, a.out, i, (C(t))sum);                                               \
		}                                                                                  \
	}
RESIZE_KERNEL(f32)
RESIZE_KERNEL(f64)
