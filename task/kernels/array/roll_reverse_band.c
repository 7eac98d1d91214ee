/* SPDX-License-Identifier: Apache-2.0 */
/* See roll_reverse_band.h.  On a GPU: array/roll_reverse_band.cu.h. */
#include "task/kernels/array/roll_reverse_band.h"

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/move.h"

int roll_copy(const struct mu_tensor *out, const struct mu_tensor *in, const int64_t *by,
	      struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(out);
	const struct mu_shape *s = &in->shape;
	const int last = s->rank - 1;
	int64_t at[MU_MAX_RANK] = {0}, n = s->dim[last];

	if (g) {
		struct roll_args a = {
		    gpu_address(out), gpu_address(in), s->count, s->rank, 0, {0}, {0}};
		for (int d = 0; d < s->rank; d++) {
			a.dim[d] = s->dim[d];
			a.by[d] = by[d];
		}
		return gpu_run_width(g, "roll", in->dtype, a.n, &a, err);
	}
	for (int64_t r = 0; r < s->count / n; r++) {
		int64_t to = 0;
		for (int d = 0; d < last; d++)
			to = to * s->dim[d] + (at[d] + by[d]) % s->dim[d];
		elems_copy(in->dtype, out->data, to * n + by[last], in->data, r * n, n - by[last]);
		elems_copy(in->dtype, out->data, to * n, in->data, r * n + n - by[last], by[last]);
		for (int d = last - 1; d >= 0 && ++at[d] == s->dim[d]; d--)
			at[d] = 0;
	}
	return 0;
}

/* ---- reversed up to a length ---- */

static int reverse_there(struct kernel_call *c, const struct mu_tensor *out,
			 const struct mu_tensor *in, const struct mu_tensor *lengths,
			 struct reverse_args *a, struct mu_err *err)
{
	const struct mu_shape list = mu_shape_vec(lengths->shape.count);
	MU_AUTO_TENSOR numbers = {0};
	MU_AUTO_TENSOR there = {0};
	int rc = mu_tensor_new(&numbers, MU_INT64, &list, err);

	for (int64_t i = 0; !rc && i < list.count; i++)
		MU_DATA(int64_t, &numbers)[i] = mu_tensor_int(lengths, i);
	if (rc || (rc = move_numbers(c, out, &numbers, &there, err)))
		return rc;
	a->out = gpu_address(out);
	a->in = gpu_address(in);
	a->lengths = gpu_address(&there);
	return gpu_run_width(gpu_of_tensor(out), "reverse", in->dtype, a->n, a, err);
}

int reverse_sequence_copy(struct kernel_call *c, const struct mu_tensor *out,
			  const struct mu_tensor *in, const struct mu_tensor *lengths, int seq,
			  int batch, struct mu_err *err)
{
	const struct mu_shape *s = &in->shape;
	struct view v;

	view_of(&v, s);
	if (gpu_of_tensor(out)) {
		struct reverse_args a = {.n = s->count,
					 .batch = s->dim[batch],
					 .batch_stride = v.stride[batch],
					 .seq = s->dim[seq],
					 .seq_stride = v.stride[seq]};
		return reverse_there(c, out, in, lengths, &a, err);
	}
	elems_copy(in->dtype, out->data, 0, in->data, 0, s->count);
	int64_t inner = v.stride[seq < batch ? batch : seq], outer = 1, middle = 1;
	int low = seq < batch ? seq : batch, high = seq < batch ? batch : seq;
	for (int d = 0; d < low; d++)
		outer *= s->dim[d];
	for (int d = low + 1; d < high; d++)
		middle *= s->dim[d];
	/* outer, one of the two, middle, the other, inner */
	for (int64_t o = 0; o < outer; o++)
		for (int64_t m = 0; m < middle; m++)
			for (int64_t b = 0; b < s->dim[batch]; b++) {
				int64_t n = mu_tensor_int(lengths, b);
				int64_t base = o * s->dim[low] * v.stride[low] +
					       m * s->dim[high] * inner + b * v.stride[batch];
				for (int64_t i = 0; i < n; i++)
					elems_copy(in->dtype, out->data, base + i * v.stride[seq],
						   in->data, base + (n - 1 - i) * v.stride[seq],
						   inner);
			}
	return 0;
}

/* ---- diagonals ---- */

static int64_t at_most(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* One diagonal: where it starts in the matrix and in the band, and its length. */
struct run {
	int64_t matrix, band, n;
};

static struct run band_run_of(const struct band *b, int64_t k)
{
	int64_t n = at_most(b->rows + at_most(k, 0), b->cols - (k > 0 ? k : 0));
	bool left = k >= 0 ? b->upper_left : b->lower_left;

	return (struct run){.matrix = (k < 0 ? -k * b->cols : k),
			    .band = (b->to - k) * b->longest + (left ? 0 : b->longest - n),
			    .n = n};
}

static void one_band(enum mu_dtype t, const struct band *b, void *matrix, int64_t at_matrix,
		     void *band, int64_t at_band, bool into_matrix)
{
	for (int64_t k = b->from; k <= b->to; k++) {
		struct run r = band_run_of(b, k);
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
				     const struct band *b, int64_t n)
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

int band_copy(const struct mu_tensor *matrix, const struct mu_tensor *band, const struct band *b,
	      int64_t n, bool into_matrix, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(into_matrix ? matrix : band);
	const int64_t each = (b->to - b->from + 1) * b->longest;

	if (g) {
		struct band_args a = band_args_of(matrix, band, b, n);
		a.into_matrix = into_matrix;
		return gpu_run_width(g, "band", matrix->dtype, n * each, &a, err);
	}
	for (int64_t i = 0; i < n; i++)
		one_band(matrix->dtype, b, matrix->data, i * b->rows * b->cols, band->data,
			 i * each, into_matrix);
	return 0;
}

int band_part_copy(const struct mu_tensor *out, const struct mu_tensor *in, const struct band *b,
		   struct mu_err *err)
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
		int64_t to = at_most(b->cols, i + b->to + 1);
		if (from < to)
			elems_copy(in->dtype, out->data, row * b->cols + from, in->data,
				   row * b->cols + from, to - from);
	}
	return 0;
}
