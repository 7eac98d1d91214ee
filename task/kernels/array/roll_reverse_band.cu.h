/* SPDX-License-Identifier: Apache-2.0 */
/* Roll, ReverseSequence and matrix diagonals: elements move by their position. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

DEVICE int64_t rolled_from(const struct roll_args *a, int64_t i)
{
	int64_t rest = i, stride = 1, from = 0;

	for (int d = a->rank - 1; d >= 0; stride *= a->dim[d--]) {
		int64_t q = divided(rest, a->dim[d]), at = rest - q * a->dim[d] - a->by[d];
		from += (at < 0 ? at + a->dim[d] : at) * stride;
		rest = q;
	}
	return from;
}

DEVICE int64_t reversed_from(const struct reverse_args *a, int64_t i)
{
	int64_t length = PTR(const int64_t, a->lengths)[i / a->batch_stride % a->batch];
	int64_t at = i / a->seq_stride % a->seq;

	return at < length ? i + (length - 1 - 2 * at) * a->seq_stride : i;
}

/* Where element i of the band is in its matrix; -1: it is beyond its diagonal's end. */
DEVICE int64_t on_diagonal(const struct band_args *a, int64_t i)
{
	int64_t count = a->to - a->from + 1, row = divided(i, a->longest);
	int64_t matrix = divided(row, count), k = a->to - (row - matrix * count);
	int64_t down = k < 0 ? -k : 0, right = k > 0 ? k : 0;
	int64_t high = a->rows - down, wide = a->cols - right, n = high < wide ? high : wide;
	int left = k >= 0 ? a->upper_left : a->lower_left;
	int64_t at = i - row * a->longest - (left ? 0 : a->longest - n);

	if (at < 0 || at >= n)
		return -1;
	return (matrix * a->rows + down + at) * a->cols + right + at;
}

#define PLACE_KERNELS(bits)                                                                        \
	KERNEL(roll_##bits, roll_args)                                                             \
	{                                                                                          \
		EACH(i, a.n) MOVE(bits, a.out, i, a.in, rolled_from(&a, i));                       \
	}                                                                                          \
	KERNEL(reverse_##bits, reverse_args)                                                       \
	{                                                                                          \
		EACH(i, a.n) MOVE(bits, a.out, i, a.in, reversed_from(&a, i));                     \
	}                                                                                          \
	KERNEL(band_##bits, band_args)                                                             \
	{                                                                                          \
		EACH(i, a.n *(a.to - a.from + 1) * a.longest)                                      \
		{                                                                                  \
			int64_t at = on_diagonal(&a, i);                                           \
			if (at >= 0 && a.into_matrix)                                              \
				MOVE(bits, a.matrix, at, a.band, i);                               \
			else if (at >= 0)                                                          \
				MOVE(bits, a.band, i, a.matrix, at);                               \
		}                                                                                  \
	}                                                                                          \
	KERNEL(band_part_##bits, band_args)                                                        \
	{                                                                                          \
		EACH(i, a.n *a.rows *a.cols)                                                       \
		{                                                                                  \
			int64_t row = divided(i, a.cols), k = i - row * a.cols - row % a.rows;     \
			if (k >= a.from && k <= a.to)                                              \
				MOVE(bits, a.matrix, i, a.band, i);                                \
			else                                                                       \
				ZERO(bits, a.matrix, i);                                           \
		}                                                                                  \
	}
EACH_WIDTH(PLACE_KERNELS)

/* The addends in the CPU's order: the earlier element, the element itself, the later one. */
#define MIRROR_KERNEL(t)                                                                           \
	KERNEL(mirror_fold_##t, mirror_args)                                                       \
	{                                                                                          \
		EACH(i, a.outer *a.n *a.inner)                                                     \
		{                                                                                  \
			const int64_t row = divided(i, a.inner), in = i - row * a.inner;           \
			const int64_t outer = divided(row, a.n), at = row - outer * a.n;           \
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
