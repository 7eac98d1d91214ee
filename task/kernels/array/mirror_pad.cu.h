/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of MirrorPad along one dimension. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

/* Adds in the order of the CPU: the front reflection, the element, the reflection at the end. */
#define MIRROR_KERNEL(t)                                                                           \
	KERNEL(mirror_fold_##t, mirror_args)                                                       \
	{                                                                                          \
		EACH(i, a.outer *a.n *a.inner)                                                     \
		{                                                                                  \
			const int64_t row = index_div(i, a.inner), in = i - row * a.inner;         \
			const int64_t outer = index_div(row, a.n), at = row - outer * a.n;         \
			const int64_t first = outer * a.from * a.inner + in;                       \
			const int64_t front = a.before - 1 - at + a.skip;                          \
			const int64_t behind = a.before + 2 * a.n - 1 - at - a.skip;               \
			C(t) sum = 0;                                                              \
			if (front >= 0 && front < a.before)                                        \
				sum += GET(t, a.in, first + front * a.inner);                      \
			sum += GET(t, a.in, first + (a.before + at) * a.inner);                    \
			if (behind >= a.before + a.n && behind < a.from)                           \
				sum += GET(t, a.in, first + behind * a.inner);                     \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
MIRROR_KERNEL(f32)
MIRROR_KERNEL(f64)
MIRROR_KERNEL(i64)
