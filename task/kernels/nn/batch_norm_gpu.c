/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation and its gradient on a GPU. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/nn/checks.h"
#include "task/runtime/runtime.h"

/* A channel's pixels are cut into pieces while there are fewer threads than ENOUGH. */
enum { LONG = 256, ENOUGH = 64 * 1024, MOST_PIECES = 1024 };

struct state {
	struct gpu *gpu;
	void *sums, *channels, *map, *transpose;
};

static int batch_norm_gpu_prepare(const struct mu_node *n, struct runtime *rt, void **state,
				  struct mu_err *err)
{
	struct state s = {.gpu = gpu_of_node(n, rt)};
	const char *between = strstr(n->op, "Grad") ? "norm_backward" : "norm_forward";
	int rc;

	if ((rc = gpu_kernel(s.gpu, "norm_sums", &s.sums, err)) ||
	    (rc = gpu_kernel(s.gpu, between, &s.channels, err)) ||
	    (rc = gpu_kernel(s.gpu, "norm_map", &s.map, err)) ||
	    (rc = gpu_find_width(s.gpu, "view_read", MU_FLOAT, &s.transpose, err)))
		return rc;
	*state = memcpy(MU_NEW(struct state), &s, sizeof s);
	return 0;
}

static int64_t batch_norm_gpu_pieces_for(const struct norm_args *a)
{
	int64_t pieces = 1;

	while (pieces < MOST_PIECES && a->channels * pieces < ENOUGH &&
	       a->pixels / (pieces * 2) >= LONG)
		pieces *= 2;
	return pieces;
}

/* Outputs 1 and on: `n` vectors of one element a channel, then what means nothing on our devices.
 */
static int small_outputs(struct kernel_call *c, unsigned n, int64_t channels, bool scalars,
			 struct norm_args *a, struct mu_err *err)
{
	const struct state *s = c->state;
	int rc = 0;

	for (unsigned i = 1; i < c->n_out && !rc; i++) {
		bool used = i <= n;
		struct mu_shape shape = used      ? mu_shape_vec(channels)
					: scalars ? mu_shape_scalar()
						  : mu_shape_vec(0);
		struct mu_tensor *t;
		rc = gpu_out(c, i, MU_FLOAT, &shape, &t, err);
		if (!rc && used)
			a->out[i - 1] = gpu_address(t);
		else if (!rc)
			rc = gpu_fill(s->gpu, t, 0, err);
	}
	return rc;
}

static int batch_norm_gpu_run(struct kernel_call *c, struct norm_args *a, bool summed,
			      struct mu_err *err)
{
	const struct state *s = c->state;
	MU_AUTO_TENSOR sums = {0}, factors = {0};
	uint64_t each = (uint64_t)a->channels * sizeof(float);
	int rc;

	a->pieces = batch_norm_gpu_pieces_for(a);
	if (!a->channels)
		return 0;
	if ((rc = gpu_scratch(c, MU_DOUBLE, a->pieces * 2 * a->channels, &sums, err)) ||
	    (rc = gpu_scratch(c, MU_FLOAT, 3 * a->channels, &factors, err)))
		return rc;
	a->sums = gpu_address(&sums);
	a->a = gpu_address(&factors);
	a->b = a->a + each;
	a->k = a->b + each;
	if ((summed && (rc = gpu_run(s->gpu, s->sums, a->pieces * a->channels, a, err))) ||
	    (rc = gpu_run(s->gpu, s->channels, a->channels, a, err)))
		return rc;
	a->add_x = summed && a->g != a->x && a->training;
	return gpu_run(s->gpu, s->map, a->pixels * a->channels, a, err);
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
	struct mu_tensor *out;
	int rc;

	if ((rc = check_batch_norm(c, &s, err)) ||
	    (rc = gpu_out(c, 0, MU_FLOAT, &x->shape, &out, err)))
		return rc;
	struct norm_args a = batch_norm_gpu_args_of(c, &s);
	if ((rc = small_outputs(c, 4, s.channels, true, &a, err)))
		return rc;
	a.factor = (double)args_attr_float(c->node, "exponential_avg_factor", 1);
	a.x = a.g = a.middle = gpu_address(x);
	a.scale = gpu_address(kernel_in(c, 1));
	a.offset = gpu_address(kernel_in(c, 2));
	a.mean = gpu_address(kernel_in(c, 3));
	a.variance = gpu_address(kernel_in(c, 4));
	a.y = gpu_address(out);
	return batch_norm_gpu_run(c, &a, s.training, err);
}

static int batch_norm_gpu_backward(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, 0), *x = kernel_in(c, 1);
	struct norm_sizes s;
	struct mu_tensor *out;
	int rc;

	if ((rc = check_batch_norm_grad(c, &s, err)) ||
	    (rc = gpu_out(c, 0, MU_FLOAT, &x->shape, &out, err)))
		return rc;
	struct norm_args a = batch_norm_gpu_args_of(c, &s);
	if ((rc = small_outputs(c, 2, s.channels, false, &a, err)))
		return rc;
	a.g = gpu_address(g);
	a.x = gpu_address(x);
	a.scale = gpu_address(kernel_in(c, 2));
	a.mean = a.middle = gpu_address(kernel_in(c, 3));
	a.variance = gpu_address(kernel_in(c, 4));
	a.y = gpu_address(out);
	return batch_norm_gpu_run(c, &a, true, err);
}

/* ---- channels first ---- */

static int batch_norm_gpu_transpose(struct kernel_call *c, const struct mu_tensor *t, bool last,
				    struct mu_tensor *out, struct mu_err *err)
{
	const struct state *s = c->state;
	const struct mu_shape shape = norm_transposed_shape(&t->shape, last);
	const int64_t *d = t->shape.dim;
	const int64_t channels = last ? d[1] : d[3], pixels = last ? d[2] * d[3] : d[1] * d[2];
	struct mu_tensor made;
	int rc = gpu_tensor_new(s->gpu, MU_FLOAT, &shape, c->node->name, &made, err);

	if (rc)
		return rc;
	const struct view_args a = {
	    .out = gpu_address(&made),
	    .in = gpu_address(t),
	    .n = shape.count,
	    .rank = 3,
	    .dim = {d[0], last ? pixels : channels, last ? channels : pixels},
	    .stride = {channels * pixels, 1, last ? pixels : channels}};
	rc = gpu_run(s->gpu, s->transpose, a.n, &a, err);
	if (rc)
		mu_tensor_unref(&made);
	else
		*out = made;
	return rc;
}

static int batch_norm_gpu(struct kernel_call *c, struct mu_err *err)
{
	return norm_run(c, 1, batch_norm_gpu_forward, batch_norm_gpu_transpose, err);
}

static int batch_norm_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	return norm_run(c, 2, batch_norm_gpu_backward, batch_norm_gpu_transpose, err);
}

#define ROW(name, fn)                                                                              \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = batch_norm_gpu_prepare}, .type_attr = "T",       \
		.types = GPU_TYPE(MU_FLOAT)                                                        \
	}
static const struct gpu_kernel rows[] = {
    ROW("FusedBatchNorm", batch_norm_gpu),
    ROW("FusedBatchNormV2", batch_norm_gpu),
    ROW("FusedBatchNormV3", batch_norm_gpu),
    ROW("FusedBatchNormGrad", batch_norm_grad_gpu),
    ROW("FusedBatchNormGradV2", batch_norm_grad_gpu),
    ROW("FusedBatchNormGradV3", batch_norm_grad_gpu),
};
GPU_KERNEL_TABLE(nn_batch_norm_gpu, rows)
