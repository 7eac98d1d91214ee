/* SPDX-License-Identifier: Apache-2.0 */
/* See roll_reverse.h.  On a GPU: array/roll_reverse.cu.h. */
#include "task/kernels/array/roll_reverse.h"

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/move.h"

int roll_copy(const struct mu_tensor *out, const struct mu_tensor *in, const int64_t *shifts,
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
			a.by[d] = shifts[d];
		}
		return gpu_run_width(g, "roll", in->dtype, a.n, &a, err);
	}
	for (int64_t r = 0; r < s->count / n; r++) {
		int64_t to = 0;
		for (int d = 0; d < last; d++)
			to = to * s->dim[d] + (at[d] + shifts[d]) % s->dim[d];
		elems_copy(in->dtype, out->data, to * n + shifts[last], in->data, r * n,
			   n - shifts[last]);
		elems_copy(in->dtype, out->data, to * n, in->data, r * n + n - shifts[last],
			   shifts[last]);
		for (int d = last - 1; d >= 0 && ++at[d] == s->dim[d]; d--)
			at[d] = 0;
	}
	return 0;
}

/* ---- ReverseSequence ---- */

static int reverse_on_gpu(struct kernel_call *c, const struct mu_tensor *out,
			  const struct mu_tensor *in, const struct mu_tensor *lengths,
			  struct reverse_args *a, struct mu_err *err)
{
	const struct mu_shape list = mu_shape_vec(lengths->shape.count);
	MU_AUTO_TENSOR host_lengths = {0};
	MU_AUTO_TENSOR on_gpu = {0};

	MU_RETURN_IF_ERROR(mu_tensor_new(&host_lengths, MU_INT64, &list, err));
	for (int64_t i = 0; i < list.count; i++)
		MU_DATA(int64_t, &host_lengths)[i] = mu_tensor_int(lengths, i);
	MU_RETURN_IF_ERROR(move_numbers(c, out, &host_lengths, &on_gpu, err));
	a->out = gpu_address(out);
	a->in = gpu_address(in);
	a->lengths = gpu_address(&on_gpu);
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
		return reverse_on_gpu(c, out, in, lengths, &a, err);
	}
	elems_copy(in->dtype, out->data, 0, in->data, 0, s->count);
	int64_t inner = v.stride[seq < batch ? batch : seq];
	int low = seq < batch ? seq : batch, high = seq < batch ? batch : seq;
	int64_t outer = mu_shape_product(s, 0, low), middle = mu_shape_product(s, low + 1, high);
	/* [outer, seq or batch, middle, batch or seq, inner] */
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
