/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation and its gradient on a GPU. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/nn/checks.h"

/* The pixels of a channel are cut into pieces until there are TARGET_THREADS threads. */
enum { PIECE_MIN_PIXELS = 256, TARGET_THREADS = 64 * 1024, MAX_PIECES = 1024 };

static int64_t batch_norm_gpu_pieces_for(const struct norm_args *a)
{
	int64_t pieces = 1;

	while (pieces < MAX_PIECES && a->channels * pieces < TARGET_THREADS &&
	       a->pixels / (pieces * 2) >= PIECE_MIN_PIXELS)
		pieces *= 2;
	return pieces;
}

/* Creates the outputs from 1 on: n vectors of one element a channel, then reserve spaces that these
 * kernels do not use. */
static int small_outputs(struct kernel_call *c, unsigned n, int64_t channels, bool scalars,
			 struct norm_args *a, struct mu_err *err)
{
	int rc = 0;

	for (unsigned i = 1; i < c->n_out && !rc; i++) {
		bool is_used = i <= n;
		struct mu_shape shape = is_used   ? mu_shape_vec(channels)
					: scalars ? mu_shape_scalar()
						  : mu_shape_vec(0);
		uint64_t at;
		rc = gpu_out(c, i, MU_FLOAT, &shape, &at, err);
		if (!rc && is_used)
			a->out[i - 1] = at;
		else if (!rc)
			rc = gpu_fill(kernel_gpu(c), &c->out[i].tensor, 0, err);
	}
	return rc;
}

static int batch_norm_gpu_run(struct kernel_call *c, const char *kernel, struct norm_args *a,
			      bool needs_sums, struct mu_err *err)
{
	MU_AUTO_TENSOR sums = {0}, factors = {0};
	uint64_t vector_bytes = (uint64_t)a->channels * sizeof(float);

	a->pieces = batch_norm_gpu_pieces_for(a);
	if (!a->channels)
		return 0;
	MU_RETURN_IF_ERROR(gpu_scratch(c, MU_DOUBLE, a->pieces * 2 * a->channels, &sums, err));
	MU_RETURN_IF_ERROR(gpu_scratch(c, MU_FLOAT, 3 * a->channels, &factors, err));
	a->sums = gpu_address(&sums);
	a->a = gpu_address(&factors);
	a->b = a->a + vector_bytes;
	a->k = a->b + vector_bytes;
	if (needs_sums)
		MU_RETURN_IF_ERROR(
		    gpu_run(kernel_gpu(c), "norm_sums", a->pieces * a->channels, a, err));
	MU_RETURN_IF_ERROR(gpu_run(kernel_gpu(c), kernel, a->channels, a, err));
	if (!a->add_g)
		a->middle = a->training ? a->out[2] : a->mean;
	return gpu_run(kernel_gpu(c), "norm_map", a->pixels * a->channels, a, err);
}

static struct norm_args batch_norm_gpu_args_of(const struct kernel_call *c,
					       const struct norm_sizes *s)
{
	return (struct norm_args){.pixels = s->pixels,
				  .channels = s->channels,
				  .training = s->training,
				  .epsilon = (double)args_attr_float(c->node, "epsilon", 1e-4f)};
}

/* ---- ops ---- */

static int batch_norm_gpu_forward(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 0);
	struct norm_sizes s;
	uint64_t out;

	MU_RETURN_IF_ERROR(check_batch_norm(c, &s, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, MU_FLOAT, &x->shape, &out, err));
	struct norm_args a = batch_norm_gpu_args_of(c, &s);
	MU_RETURN_IF_ERROR(small_outputs(c, 4, s.channels, true, &a, err));
	a.factor = (double)args_attr_float(c->node, "exponential_avg_factor", 1);
	a.x = a.g = a.middle = gpu_address(x);
	a.add_x = true;
	a.scale = gpu_address(kernel_in(c, 1));
	a.offset = gpu_address(kernel_in(c, 2));
	a.mean = gpu_address(kernel_in(c, 3));
	a.variance = gpu_address(kernel_in(c, 4));
	a.y = out;
	return batch_norm_gpu_run(c, "norm_forward", &a, s.training, err);
}

static int batch_norm_gpu_backward(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, 0), *x = kernel_in(c, 1);
	struct norm_sizes s;
	uint64_t out;

	MU_RETURN_IF_ERROR(check_batch_norm_grad(c, &s, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, MU_FLOAT, &x->shape, &out, err));
	struct norm_args a = batch_norm_gpu_args_of(c, &s);
	MU_RETURN_IF_ERROR(small_outputs(c, 2, s.channels, false, &a, err));
	a.g = gpu_address(g);
	a.x = gpu_address(x);
	a.scale = gpu_address(kernel_in(c, 2));
	a.mean = a.middle = gpu_address(kernel_in(c, 3));
	a.add_g = true;
	a.add_x = a.training;
	a.variance = gpu_address(kernel_in(c, 4));
	a.y = out;
	return batch_norm_gpu_run(c, "norm_backward", &a, true, err);
}

/* ---- NCHW ---- */

static int batch_norm_gpu_transpose(struct kernel_call *c, const struct mu_tensor *t, bool to_nhwc,
				    struct mu_tensor *out, struct mu_err *err)
{
	const struct mu_shape shape = norm_transposed_shape(&t->shape, to_nhwc);
	const int order[] = {0, to_nhwc ? 2 : 3, to_nhwc ? 3 : 1, to_nhwc ? 1 : 2};
	struct view from, v;

	MU_RETURN_IF_ERROR(
	    gpu_tensor_new(kernel_gpu(c), MU_FLOAT, &shape, c->node->name, out, err));
	view_of(&from, &t->shape);
	v = from;
	for (int i = 0; i < 4; i++) {
		v.dim[i] = from.dim[order[i]];
		v.stride[i] = from.stride[order[i]];
	}
	int rc = move_read(out, t, &v, err);
	if (rc)
		mu_tensor_unref(out);
	return rc;
}

KERNEL_RUN(batch_norm_gpu, norm_run(c, 1, batch_norm_gpu_forward, batch_norm_gpu_transpose, err))
KERNEL_RUN(batch_norm_grad_gpu,
	   norm_run(c, 2, batch_norm_gpu_backward, batch_norm_gpu_transpose, err))

static const struct device_kernel rows[] = {
    GPU_ROW("FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3", batch_norm_gpu, "T",
	    GPU_TYPE(MU_FLOAT)),
    GPU_ROW("FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", batch_norm_grad_gpu,
	    "T", GPU_TYPE(MU_FLOAT)),
};
KERNEL_TABLE(nn_batch_norm_gpu, rows)
