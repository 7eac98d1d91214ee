/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures resized on a GPU: a thread for each element, which adds up what its taps name.  Taps are
 * found on the host and brought in as one list for both axes; for a gradient they are turned round
 * first, to be listed by the places of the picture. */
#include <string.h>

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/image/resize.h"

/* first, at and weights of one axis, one after the other; a weight takes as many bytes as an int64.
 */
static int64_t axis_length(int64_t places, int64_t taps)
{
	return places + 1 + 2 * taps;
}

static void resize_gpu_pack_forward(const struct resize_taps *t, int64_t *first)
{
	const int64_t all = t->first[t->n];
	int64_t *at = first + t->n + 1;
	double *weight = (double *)(void *)(at + all);

	memcpy(first, t->first, (size_t)(t->n + 1) * sizeof *first);
	memcpy(at, t->at, (size_t)all * sizeof *at);
	for (int64_t k = 0; k < all; k++)
		weight[k] = (double)t->weight[k];
}

/* By the places of the picture, each one's in the order of the result's. */
static void resize_gpu_pack_backward(const struct resize_taps *t, int64_t places, int64_t *first)
{
	const int64_t all = t->first[t->n];
	int64_t *at = first + places + 1;
	double *weight = (double *)(void *)(at + all);

	memset(first, 0, (size_t)(places + 1) * sizeof *first);
	for (int64_t k = 0; k < all; k++)
		first[t->at[k] + 1]++;
	for (int64_t p = 0; p < places; p++)
		first[p + 1] += first[p];
	for (int64_t i = 0; i < t->n; i++)
		for (int64_t k = t->first[i]; k < t->first[i + 1]; k++) {
			int64_t to = first[t->at[k]]++;
			at[to] = i;
			weight[to] = (double)t->weight[k];
		}
	memmove(first + 1, first,
		(size_t)places * sizeof *first); /* each is where the next began */
	first[0] = 0;
}

static struct resize_axis_args resize_gpu_axis_args(uint64_t at, int64_t made, int64_t read,
						    int64_t taps)
{
	const uint64_t size = sizeof(int64_t);

	return (struct resize_axis_args){.first = at,
					 .at = at + (uint64_t)(made + 1) * size,
					 .weight = at + (uint64_t)(made + 1 + taps) * size,
					 .made = made,
					 .read = read};
}

int gpu_resize(struct kernel_call *c, const struct resize *r, bool back, struct mu_err *err)
{
	struct gpu *g = gpu_of_tensor(r->out);
	int64_t made[2], read[2], taps[2], from[3] = {0};
	MU_AUTO_TENSOR list = {0};
	MU_AUTO_TENSOR there = {0};

	for (int d = 0; d < 2; d++) {
		made[d] = back ? r->axis[d].in : r->axis[d].out;
		read[d] = back ? r->axis[d].out : r->axis[d].in;
		taps[d] = r->taps[d].first[r->taps[d].n];
		from[d + 1] = from[d] + axis_length(made[d], taps[d]);
	}
	struct mu_shape shape = mu_shape_vec(from[2]);
	MU_RETURN_IF_ERROR(mu_tensor_new(&list, MU_INT64, &shape, err));
	for (int d = 0; d < 2; d++)
		if (back)
			resize_gpu_pack_backward(&r->taps[d], made[d],
						 MU_DATA(int64_t, &list) + from[d]);
		else
			resize_gpu_pack_forward(&r->taps[d], MU_DATA(int64_t, &list) + from[d]);
	MU_RETURN_IF_ERROR(gpu_copy_to_device(g, &list, c->node->name, &there, err));
	const uint64_t at = gpu_address(&there);
	struct resize_args a = {.out = gpu_address(r->out),
				.in = gpu_address(r->in),
				.n = r->out->shape.count,
				.channels = r->depth,
				.row = resize_gpu_axis_args(at, made[0], read[0], taps[0]),
				.column =
				    resize_gpu_axis_args(at + (uint64_t)from[1] * sizeof(int64_t),
							 made[1], read[1], taps[1])};
	return gpu_run_type(g, "resize", r->out->dtype, a.n, &a, err);
}
