/* SPDX-License-Identifier: Apache-2.0 */
/* See matrix_band.h.  On a GPU: array/matrix_band.cu.h. */
#include "task/kernels/array/matrix_band.h"

#include "lib/base/ints.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_table.h"

/* A diagonal: the index of its first element in the matrix and in the band, and its length. */
struct diagonal {
	int64_t matrix, band, n;
};

static struct diagonal diagonal_of(const struct matrix_band *b, int64_t k)
{
	int64_t n = mu_min(b->rows + mu_min(k, 0), b->cols - (k > 0 ? k : 0));
	bool left = k >= 0 ? b->upper_left : b->lower_left;

	return (struct diagonal){.matrix = (k < 0 ? -k * b->cols : k),
				 .band = (b->to - k) * b->longest + (left ? 0 : b->longest - n),
				 .n = n};
}

static void copy_one_band(enum mu_dtype t, const struct matrix_band *b, void *matrix,
			  int64_t at_matrix, void *band, int64_t at_band, bool into_matrix)
{
	for (int64_t k = b->from; k <= b->to; k++) {
		struct diagonal r = diagonal_of(b, k);
		for (int64_t i = 0; i < r.n; i++) {
			int64_t m = at_matrix + r.matrix + i * (b->cols + 1);
			int64_t d = at_band + r.band + i;
			if (into_matrix)
				elems_copy(t, matrix, m, band, d, 1);
			else
				elems_copy(t, band, d, matrix, m, 1);
		}
	}
}

static struct band_args band_args_of(const struct mu_tensor *matrix, const struct mu_tensor *band,
				     const struct matrix_band *b, int64_t n)
{
	return (struct band_args){.matrix = gpu_address(matrix),
				  .band = gpu_address(band),
				  .n = n,
				  .rows = b->rows,
				  .cols = b->cols,
				  .from = b->from,
				  .to = b->to,
				  .longest = b->longest,
				  .upper_left = b->upper_left,
				  .lower_left = b->lower_left};
}

int band_copy(const struct mu_tensor *matrix, const struct mu_tensor *band,
	      const struct matrix_band *b, int64_t n, bool into_matrix, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(into_matrix ? matrix : band);
	const int64_t band_elements = (b->to - b->from + 1) * b->longest;

	if (g) {
		struct band_args a = band_args_of(matrix, band, b, n);
		a.into_matrix = into_matrix;
		return gpu_run_width(g, "band", matrix->dtype, n * band_elements, &a, err);
	}
	for (int64_t i = 0; band_elements && i < n; i++)
		copy_one_band(matrix->dtype, b, matrix->data, i * b->rows * b->cols, band->data,
			      i * band_elements, into_matrix);
	return 0;
}

int band_part_copy(const struct mu_tensor *out, const struct mu_tensor *in,
		   const struct matrix_band *b, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);
	const int64_t matrices = in->shape.count / (b->rows * b->cols);

	if (g) {
		struct band_args a = band_args_of(out, in, b, matrices);
		return gpu_run_width(g, "band_part", in->dtype, in->shape.count, &a, err);
	}
	elems_zero(in->dtype, out->data, 0, in->shape.count);
	for (int64_t row = 0; row < matrices * b->rows; row++) {
		int64_t i = row % b->rows, from = i + b->from < 0 ? 0 : i + b->from;
		int64_t to = mu_min(b->cols, i + b->to + 1);
		if (from < to)
			elems_copy(in->dtype, out->data, row * b->cols + from, in->data,
				   row * b->cols + from, to - from);
	}
	return 0;
}
