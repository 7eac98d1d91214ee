/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions on a GPU, one reduced dimension after another.  A long dimension is reduced in two
 * passes, so that there is work for every thread.  The order of sums depends only on the shape. */
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/math/checks.h"
#include "task/kernels/math/reduce_gpu.h"
#include "task/kernels/nn/checks.h"

/* A long reduction is cut into pieces until there are TARGET_THREADS threads. */
enum { PIECE_MIN_ELEMENTS = 256, TARGET_THREADS = 64 * 1024, MAX_PIECES = 1024 };

/* first: the kernel of the pass over the elements; rest: of the passes over its results; last: a
 * kernel for the final results, or NULL. */
static const struct reduction {
	const char *op, *first, *rest, *last;
	double scale;
	bool mean;
} ops[] = {
    {"Sum", "Sum", "Sum", NULL, 1, false},
    {"Mean", "Sum", "Sum", NULL, 1, true},
    {"Prod", "Prod", "Prod", NULL, 1, false},
    {"Max", "Max", "Max", NULL, 1, false},
    {"Min", "Min", "Min", NULL, 1, false},
    {"All", "All", "All", NULL, 1, false},
    {"Any", "Any", "Any", NULL, 1, false},
    {"L2Loss", "SumSquares", "Sum", NULL, 0.5, false},
    {"BiasAddGrad", "Sum", "Sum", NULL, 1, false},
    {"EuclideanNorm", "SumSquares", "Sum", "Sqrt", 1, false},
};

static const struct reduction *reduction_of(const char *op)
{
	const struct reduction *r = ops;

	while (strcmp(r->op, op) != 0)
		r++;
	return r;
}

static int64_t reduce_gpu_pieces_for(int64_t outputs, int64_t reduced)
{
	int64_t pieces = 1;

	while (pieces < MAX_PIECES && outputs * pieces < TARGET_THREADS &&
	       reduced / (pieces * 2) >= PIECE_MIN_ELEMENTS)
		pieces *= 2;
	return pieces;
}

int gpu_reduce(struct kernel_call *c, const char *first, const char *rest, enum mu_dtype t,
	       double scale, const struct reduce_args *a, struct mu_err *err)
{
	struct reduce_args pass1 = *a, pass2 = *a;
	int64_t outputs = a->outer * a->inner;
	MU_AUTO_TENSOR partial = {0};

	pass1.pieces = reduce_gpu_pieces_for(outputs, a->reduced);
	pass1.scale = pass2.scale = scale;
	pass2.pieces = 1;
	if (pass1.pieces == 1)
		return gpu_run_type(kernel_gpu(c), first, t, outputs, &pass1, err);
	MU_RETURN_IF_ERROR(gpu_scratch(c, t, outputs * pass1.pieces, &partial, err));
	pass1.out = pass2.in = gpu_address(&partial);
	pass1.scale = 1;
	pass2.reduced = pass1.pieces;
	MU_RETURN_IF_ERROR(
	    gpu_run_type(kernel_gpu(c), first, t, outputs * pass1.pieces, &pass1, err));
	return gpu_run_type(kernel_gpu(c), rest, t, outputs, &pass2, err);
}

/* Reduces from the last dimension to the first; intermediate results are in scratch memory. */
static int reduce_dims_gpu(struct kernel_call *c, const struct reduction *r,
			   const struct reduced_dims *f, double scale, const struct mu_tensor *out,
			   struct mu_err *err)
{
	struct mu_tensor current = mu_tensor_ref(kernel_in(c, 0));
	const char *first = r->first;
	int64_t inner = 1, n_left = 0;
	int rc = 0;

	for (int i = 0; i < f->rank; i++)
		n_left += f->reduced[i];
	if (!n_left) { /* no reduced dimension: elements are only scaled or squared */
		struct reduce_args a = {.out = gpu_address(out),
					.in = gpu_address(&current),
					.outer = current.shape.count,
					.reduced = 1,
					.inner = 1};
		rc = gpu_reduce(c, first, r->rest, out->dtype, scale, &a, err);
	}
	for (int i = f->rank; i-- > 0 && !rc;) {
		if (!f->reduced[i]) {
			inner *= f->dim[i];
			continue;
		}
		struct reduce_args a = {.in = gpu_address(&current),
					.outer = current.shape.count / (f->dim[i] * inner),
					.reduced = f->dim[i],
					.inner = inner};
		struct mu_tensor next = {0};
		if (--n_left)
			rc = gpu_scratch(c, out->dtype, a.outer * inner, &next, err);
		a.out = gpu_address(n_left ? &next : out);
		if (!rc)
			rc = gpu_reduce(c, first, r->rest, out->dtype, n_left ? 1 : scale, &a, err);
		first = r->rest;
		mu_tensor_unref(&current);
		current = next;
	}
	mu_tensor_unref(&current);
	return rc;
}

/* The result of a reduction over 0 elements is the kernel's start value. */
static int reduce_empty(struct kernel_call *c, const struct reduction *r, double scale,
			const struct mu_tensor *out, struct mu_err *err)
{
	struct reduce_args a = {.out = gpu_address(out),
				.in = gpu_address(out),
				.outer = out->shape.count,
				.inner = 1,
				.pieces = 1,
				.scale = scale};

	return gpu_run_type(kernel_gpu(c), r->first, out->dtype, out->shape.count, &a, err);
}

static int reduce_to(struct kernel_call *c, const bool *reduced, const struct mu_shape *shape,
		     struct mu_err *err)
{
	const struct reduction *r = reduction_of(c->node->op);
	const struct mu_tensor *in = kernel_in(c, 0), *out = &c->out[0].tensor;
	struct unary_args last = {.n = shape->count};
	double n_reduced = shape->count ? (double)(in->shape.count / shape->count) : 0;
	double scale = r->mean ? 1 / n_reduced : r->scale;
	struct reduced_dims f;
	int rc = gpu_out(c, 0, in->dtype, shape, &last.out, err);

	if (rc || !shape->count)
		return rc;
	if (r->mean && !in->shape.count)
		scale = NAN;
	if (in->shape.count) {
		reduced_dims_init(&f, &in->shape, reduced);
		rc = reduce_dims_gpu(c, r, &f, scale, out, err);
	} else {
		rc = reduce_empty(c, r, scale, out, err);
	}
	last.in = last.out;
	return rc || !r->last ? rc
			      : gpu_run_type(kernel_gpu(c), r->last, in->dtype, last.n, &last, err);
}

static int reduce_gpu_reduce(struct kernel_call *c, struct mu_err *err)
{
	bool reduced[MU_MAX_RANK] = {false};
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_axes(c, reduced, err));
	MU_RETURN_IF_ERROR(reduced_shape(&kernel_in(c, 0)->shape, reduced,
					 args_attr_bool(c->node, "keep_dims", false), &shape, err));
	return reduce_to(c, reduced, &shape, err);
}

static int l2_loss_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape scalar = mu_shape_scalar();
	bool all_dims[MU_MAX_RANK];

	memset(all_dims, true, sizeof all_dims);
	return reduce_to(c, all_dims, &scalar, err);
}

static int bias_add_grad_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape;
	bool reduced[MU_MAX_RANK];
	struct mu_shape shape = mu_shape_vec(bias_channels(c).n);
	bool first = strncmp(args_attr_string(c->node, "data_format", "NHWC"), "NC", 2) == 0;
	for (int i = 0; i < in->rank; i++)
		reduced[i] = i != (first ? 1 : in->rank - 1);
	return reduce_to(c, reduced, &shape, err);
}

/* ---- ArgMax, ArgMin ---- */

static int reduce_gpu_arg_run(struct kernel_call *c, struct mu_err *err)
{
	struct arg_plan p;

	MU_RETURN_IF_ERROR(check_arg(c, &p, err));
	if (p.type != MU_INT64 && p.type != MU_INT32)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s gives int32 or int64, not %s",
			       c->node->op, mu_dtype_name(p.type));
	struct argmax_args a = {.in = gpu_address(kernel_in(c, 0)),
				.outer = p.outer,
				.n = p.n,
				.inner = p.inner,
				.smallest = strcmp(c->node->op, "ArgMin") == 0,
				.wide = p.type == MU_INT64};
	MU_RETURN_IF_ERROR(gpu_out(c, 0, p.type, &p.shape, &a.out, err));
	return gpu_run_type(kernel_gpu(c), "argmax", kernel_in(c, 0)->dtype, p.shape.count, &a,
			    err);
}

static const struct device_kernel rows[] = {
    GPU_ROW("Sum Prod Max Min", reduce_gpu_reduce, "T", GPU_NUM, .host_in = 2),
    GPU_ROW("Mean", reduce_gpu_reduce, "T", GPU_FLT, .host_in = 2),
    GPU_ROW("EuclideanNorm", reduce_gpu_reduce, "T", GPU_REAL, .host_in = 2),
    GPU_ROW("All Any", reduce_gpu_reduce, NULL, 0, .host_in = 2),
    GPU_ROW("L2Loss", l2_loss_gpu, "T", GPU_FLT),
    GPU_ROW("BiasAddGrad", bias_add_grad_gpu, "T", GPU_NUM),
    GPU_ROW("ArgMax ArgMin", reduce_gpu_arg_run, "T", GPU_NUM, .host_in = 2, .device_out = 1),
};
KERNEL_TABLE(math_reduce_gpu, rows)
