/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of images on a GPU: one thread per output element adds up its taps.  The host computes
 * the taps of both axes and copies them as one list.  For a gradient the host first inverts the
 * taps, so that they are listed by input position. */
#include <string.h>

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/image/resize.h"

/* The length of first, at and weight of one axis; a weight has as many bytes as an int64. */
static int64_t axis_length(int64_t positions, int64_t taps)
{
	return positions + 1 + 2 * taps;
}

static void resize_gpu_pack_forward(const struct resize_taps *t, int64_t *first)
{
	const int64_t n_taps = t->first[t->n];
	int64_t *at = first + t->n + 1;
	double *weight = (double *)(void *)(at + n_taps);

	memcpy(first, t->first, (size_t)(t->n + 1) * sizeof *first);
	memcpy(at, t->at, (size_t)n_taps * sizeof *at);
	for (int64_t k = 0; k < n_taps; k++)
		weight[k] = (double)t->weight[k];
}

/* Lists the taps by input position; those of one position are in output order. */
static void resize_gpu_pack_backward(const struct resize_taps *t, int64_t positions, int64_t *first)
{
	const int64_t n_taps = t->first[t->n];
	int64_t *at = first + positions + 1;
	double *weight = (double *)(void *)(at + n_taps);

	memset(first, 0, (size_t)(positions + 1) * sizeof *first);
	for (int64_t k = 0; k < n_taps; k++)
		first[t->at[k] + 1]++;
	for (int64_t p = 0; p < positions; p++)
		first[p + 1] += first[p];
	for (int64_t i = 0; i < t->n; i++)
		for (int64_t k = t->first[i]; k < t->first[i + 1]; k++) {
			int64_t to = first[t->at[k]]++;
			at[to] = i;
			weight[to] = (double)t->weight[k];
		}
	memmove(first + 1, first, (size_t)positions * sizeof *first); /* back to starts */
	first[0] = 0;
}

static struct resize_axis_args resize_gpu_axis_args(uint64_t at, int64_t n_out, int64_t n_in,
						    int64_t taps)
{
	const uint64_t size = sizeof(int64_t);

	return (struct resize_axis_args){.first = at,
					 .at = at + (uint64_t)(n_out + 1) * size,
					 .weight = at + (uint64_t)(n_out + 1 + taps) * size,
					 .made = n_out,
					 .read = n_in};
}

int gpu_resize(struct kernel_call *c, const struct resize *r, bool backward, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(r->out);
	int64_t n_out[2], n_in[2], taps[2], from[3] = {0};
	MU_AUTO_TENSOR list = {0};
	MU_AUTO_TENSOR device_list = {0};

	for (int d = 0; d < 2; d++) {
		n_out[d] = backward ? r->axis[d].in : r->axis[d].out;
		n_in[d] = backward ? r->axis[d].out : r->axis[d].in;
		taps[d] = r->taps[d].first[r->taps[d].n];
		from[d + 1] = from[d] + axis_length(n_out[d], taps[d]);
	}
	struct mu_shape shape = mu_shape_vec(from[2]);
	MU_RETURN_IF_ERROR(mu_tensor_new(&list, MU_INT64, &shape, err));
	for (int d = 0; d < 2; d++)
		if (backward)
			resize_gpu_pack_backward(&r->taps[d], n_out[d],
						 MU_DATA(int64_t, &list) + from[d]);
		else
			resize_gpu_pack_forward(&r->taps[d], MU_DATA(int64_t, &list) + from[d]);
	MU_RETURN_IF_ERROR(gpu_copy_to_device(g, &list, c->node->name, &device_list, err));
	const uint64_t at = gpu_address(&device_list);
	struct resize_args a = {.out = gpu_address(r->out),
				.in = gpu_address(r->in),
				.n = r->out->shape.count,
				.channels = r->depth,
				.row = resize_gpu_axis_args(at, n_out[0], n_in[0], taps[0]),
				.column =
				    resize_gpu_axis_args(at + (uint64_t)from[1] * sizeof(int64_t),
							 n_out[1], n_in[1], taps[1])};
	return gpu_run_type(g, "resize", r->out->dtype, a.n, &a, err);
}
