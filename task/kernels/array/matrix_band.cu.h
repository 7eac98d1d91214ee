/* SPDX-License-Identifier: Apache-2.0 */
/* Diagonals of matrices to and from a band, and MatrixBandPart. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

/* The matrix element of element i of the band, or -1 for padding of a shorter diagonal. */
DEVICE int64_t on_diagonal(const struct band_args *a, int64_t i)
{
	int64_t count = a->to - a->from + 1, row = index_div(i, a->longest);
	int64_t matrix = index_div(row, count), k = a->to - (row - matrix * count);
	int64_t down = k < 0 ? -k : 0, right = k > 0 ? k : 0;
	int64_t high = a->rows - down, wide = a->cols - right, n = high < wide ? high : wide;
	int left = k >= 0 ? a->upper_left : a->lower_left;
	int64_t at = i - row * a->longest - (left ? 0 : a->longest - n);

	if (at < 0 || at >= n)
		return -1;
	return (matrix * a->rows + down + at) * a->cols + right + at;
}

#define BAND_KERNELS(bits)                                                                         \
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
			int64_t row = index_div(i, a.cols), k = i - row * a.cols - row % a.rows;   \
			if (k >= a.from && k <= a.to)                                              \
				MOVE(bits, a.matrix, i, a.band, i);                                \
			else                                                                       \
				ZERO(bits, a.matrix, i);                                           \
		}                                                                                  \
	}
EACH_WIDTH(BAND_KERNELS)
