/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops on a GPU: the rows of engine/loops/loops.def, then ops of more operands, or with
 * attributes. */
#include <stdio.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/math/checks.h"

/* ---- one operand ---- */

static int unary_to(struct kernel_call *c, enum mu_dtype result, struct mu_err *err)
{
	const enum mu_dtype t = kernel_in(c, 0)->dtype;
	const struct mu_shape shape = kernel_in(c, 0)->shape;
	struct unary_args a = {.in = gpu_address(kernel_in(c, 0)), .n = shape.count};

	MU_RETURN_IF_ERROR(gpu_out_reuse(c, 0, 0, result, &shape, &a.out, err));
	return gpu_run_type(kernel_gpu(c), c->node->op, t, a.n, &a, err);
}

KERNEL_RUN(unary_gpu, unary_to(c, kernel_in(c, 0)->dtype, err))
KERNEL_RUN(predicate, unary_to(c, MU_BOOL, err))

/* ---- broadcasting ---- */

/* Adds a dimension with these strides.  Merges it with the previous one if the strides of all
 * operands allow that. */
static void add_dim(struct broadcast_args *b, int64_t dim, const int64_t *stride, int operands)
{
	bool can_merge = b->rank > 0;

	if (dim == 1)
		return;
	for (int k = 0; k < operands && can_merge; k++)
		can_merge = b->stride[k][b->rank - 1] == stride[k] * dim;
	if (can_merge)
		b->dim[b->rank - 1] *= dim;
	else
		b->dim[b->rank++] = dim;
	for (int k = 0; k < operands; k++)
		b->stride[k][b->rank - 1] = stride[k];
}

void gpu_broadcast(struct broadcast_args *b, const struct mu_shape *to,
		   const struct view *const *from, int operands)
{
	*b = (struct broadcast_args){0};
	for (int i = 0; i < to->rank; i++) {
		int64_t stride[CUDA_MAX_OPERANDS];
		for (int k = 0; k < operands; k++)
			stride[k] = from[k]->stride[i];
		add_dim(b, to->dim[i], stride, operands);
	}
}

int gpu_binary(struct gpu *g, const char *op, const struct mu_tensor *out,
	       const struct mu_tensor *x, const struct mu_tensor *y, struct mu_err *err)
{
	struct view v[2];
	struct binary_args a = {.out = gpu_address(out),
				.a = gpu_address(x),
				.b = gpu_address(y),
				.n = out->shape.count};

	broadcast_view(&v[0], &x->shape, &out->shape);
	broadcast_view(&v[1], &y->shape, &out->shape);
	gpu_broadcast(&a.by, &out->shape, (const struct view *const[]){&v[0], &v[1]}, 2);
	return gpu_run_type(g, op, x->dtype, a.n, &a, err);
}

static int binary_to(struct kernel_call *c, enum mu_dtype result, struct mu_err *err)
{
	const struct mu_tensor x = *kernel_in(c, 0), y = *kernel_in(c, 1); /* may be reused */
	struct mu_shape shape;
	uint64_t out;
	int rc;

	MU_RETURN_IF_ERROR(check_gradient(c, err));
	if ((rc = broadcast_shape(&x.shape, &y.shape, &shape, err))) {
		bool differ = strcmp(c->node->op, "NotEqual") == 0;
		if ((!differ && strcmp(c->node->op, "Equal") != 0) ||
		    args_attr_bool(c->node, "incompatible_shape_error", true))
			return rc;
		shape = mu_shape_scalar();
		MU_RETURN_IF_ERROR(gpu_out(c, 0, MU_BOOL, &shape, &out, err));
		return gpu_fill(kernel_gpu(c), &c->out[0].tensor, differ, err);
	}
	MU_RETURN_IF_ERROR(
	    gpu_out_reuse(c, 0, x.shape.count == shape.count ? 0 : 1, result, &shape, &out, err));
	return gpu_binary(kernel_gpu(c), c->node->op, &c->out[0].tensor, &x, &y, err);
}

KERNEL_RUN(binary_gpu, binary_to(c, kernel_in(c, 0)->dtype, err))
KERNEL_RUN(elementwise_gpu_compare, binary_to(c, MU_BOOL, err))

static int clip(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *out = &c->out[0].tensor;
	uint64_t at;

	MU_RETURN_IF_ERROR(check_clip(c, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, t->dtype, &t->shape, &at, err));
	MU_RETURN_IF_ERROR(gpu_binary(kernel_gpu(c), "Minimum", out, t, kernel_in(c, 2), err));
	return gpu_binary(kernel_gpu(c), "Maximum", out, out, kernel_in(c, 1), err);
}

/* `condition`: the shape of the condition, with dimensions of 1 for broadcasting. */
static int select_to(struct kernel_call *c, const struct mu_shape *condition,
		     const struct mu_shape *shape, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, 1), *y = kernel_in(c, 2);
	const struct mu_shape *from[] = {condition, &x->shape, &y->shape};
	struct view v[3];
	struct select_args a = {.c = gpu_address(kernel_in(c, 0)),
				.a = gpu_address(x),
				.b = gpu_address(y),
				.n = shape->count};
	int rc = gpu_out(c, 0, x->dtype, shape, &a.out, err);

	for (int k = 0; k < 3; k++)
		broadcast_view(&v[k], from[k], shape);
	gpu_broadcast(&a.by, shape, (const struct view *const[]){&v[0], &v[1], &v[2]}, 3);
	return rc ? rc : gpu_run_width(kernel_gpu(c), "select", x->dtype, a.n, &a, err);
}

/* The condition is a scalar, of the operands' shape, or a vector that selects rows. */
static int select_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_shape *cond = &kernel_in(c, 0)->shape, *x = &kernel_in(c, 1)->shape;
	struct mu_shape condition = *cond;

	MU_RETURN_IF_ERROR(args_same_shape(c, 1, 2, err));
	if (cond->rank && !mu_shape_eq(cond, x)) {
		if (cond->rank != 1 || x->rank < 1 || cond->dim[0] != x->dim[0])
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'cond' must be a scalar, a vector of the operands' rows or "
				       "of their shape: %s vs. %s",
				       mu_shape_str(cond), mu_shape_str(x));
		for (int d = 1; d < x->rank; d++)
			MU_RETURN_IF_ERROR(mu_shape_push(&condition, 1, err));
	}
	return select_to(c, &condition, x, err);
}

static int select_v2_gpu(struct kernel_call *c, struct mu_err *err)
{
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_select(c, &shape, err));
	return select_to(c, &kernel_in(c, 0)->shape, &shape, err);
}

/* ---- Cast ---- */

static int cast_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	const enum mu_dtype to = args_attr_type(c->node, "DstT", MU_DT_INVALID);
	const char *name = to == MU_BOOL ? "bool" : gpu_type_name(to);
	struct unary_args a = {.in = gpu_address(in), .n = in->shape.count};
	char kernel[32];

	if (to == in->dtype) {
		kernel_out_take(c, 0, mu_tensor_ref(in));
		return 0;
	}
	if (!name)
		return mu_fail(err, MU_UNIMPLEMENTED, "Cast %s to %s is not supported on a GPU",
			       mu_dtype_name(in->dtype), mu_dtype_name(to));
	snprintf(kernel, sizeof kernel, "Cast_%s_%s", gpu_type_name(in->dtype), name);
	MU_RETURN_IF_ERROR(gpu_out(c, 0, to, &in->shape, &a.out, err));
	return gpu_run(kernel_gpu(c), kernel, a.n, &a, err);
}

/* ---- Fill, ZerosLike, OnesLike ---- */

static int fill_with(struct kernel_call *c, enum mu_dtype t, const struct mu_shape *shape,
		     uint64_t bits, struct mu_err *err)
{
	struct fill_args a = {.value = bits, .n = shape->count};

	MU_RETURN_IF_ERROR(gpu_out(c, 0, t, shape, &a.out, err));
	return gpu_run_width(kernel_gpu(c), "fill", t, a.n, &a, err);
}

static int fill_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *value = kernel_in(c, 1);
	struct mu_shape shape;
	uint64_t bits = 0;

	MU_RETURN_IF_ERROR(args_shape(c, 0, &shape, err));
	if (value->shape.count != 1 || value->shape.rank > 1)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "value must represent a scalar, got shape %s",
			       mu_shape_str(&value->shape));
	memcpy(&bits, value->data, mu_dtype_size(value->dtype));
	return fill_with(c, value->dtype, &shape, bits, err);
}

static int zeros_like_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor t;
	int rc;

	if (in->dtype != MU_VARIANT)
		return fill_with(c, in->dtype, &in->shape, 0, err);
	if (!(rc = variant_zeros(&t, in, err))) /* the variant's tensors are on the GPU */
		kernel_out_take(c, 0, t);
	return rc;
}

static int ones_like_gpu(struct kernel_call *c, struct mu_err *err)
{
	static const uint64_t one[MU_DT_COUNT] = {[MU_FLOAT] = 0x3f800000u,
						  [MU_DOUBLE] = 0x3ff0000000000000u,
						  [MU_HALF] = 0x3c00,
						  [MU_BFLOAT16] = 0x3f80,
						  [MU_INT64] = 1,
						  [MU_BOOL] = 1,
						  [MU_UINT8] = 1};
	const struct mu_tensor *in = kernel_in(c, 0);

	return fill_with(c, in->dtype, &in->shape, one[in->dtype], err);
}

/* ---- AddN ---- */

static int add_n_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *first = kernel_in(c, 0);
	struct list_args a = {.n = first->shape.count};

	if (first->dtype == MU_VARIANT)
		return variant_add_all(c, err);
	for (unsigned i = 1; i < c->n_in; i++)
		MU_RETURN_IF_ERROR(args_same_shape(c, 0, i, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, first->dtype, &first->shape, &a.out, err));
	for (unsigned i = 0; i < c->n_in;) { /* CUDA_MAX_LIST at a time */
		a.count = 0;
		if (i)
			a.in[a.count++] = a.out;
		while (i < c->n_in && a.count < CUDA_MAX_LIST)
			a.in[a.count++] = gpu_address(kernel_in(c, i++));
		MU_RETURN_IF_ERROR(
		    gpu_run_type(kernel_gpu(c), "sum_list", first->dtype, a.n, &a, err));
	}
	return 0;
}

/* ---- pairs with an attribute ---- */

static int pair_run(struct kernel_call *c, const char *name, enum mu_dtype result, double number,
		    struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, 0), *x = kernel_in(c, c->n_in - 1);
	const enum mu_dtype t = g->dtype;
	struct pair_args a = {
	    .x = gpu_address(x), .g = gpu_address(g), .n = g->shape.count, .number = number};

	MU_RETURN_IF_ERROR(args_same_shape(c, 0, c->n_in - 1, err));
	MU_RETURN_IF_ERROR(gpu_out(c, 0, result, &g->shape, &a.out, err));
	return gpu_run_type(kernel_gpu(c), name, t, a.n, &a, err);
}

/* LeakyReluGrad has the gradient and the features as inputs, LeakyRelu only the features. */
KERNEL_RUN(leaky, pair_run(c, "leaky", kernel_in(c, 0)->dtype,
			   (double)args_attr_float(c->node, "alpha", 0.2f), err))
KERNEL_RUN(approximate_equal_gpu,
	   pair_run(c, "near", MU_BOOL, (double)args_attr_float(c->node, "tolerance", 1e-5f), err))

static int cross_gpu(struct kernel_call *c, struct mu_err *err)
{
	const int rc = check_cross(c, err);

	return rc ? rc : pair_run(c, "cross", kernel_in(c, 0)->dtype, 0, err);
}

#define SET_LIB                    0 /* the host runs them */
#define SET_FLT                    GPU_FLT
#define SET_INT                    GPU_INT
#define SET_NUM                    GPU_NUM
#define SET_ARI                    GPU_NUM /* complex numbers stay on the host */
#define SET_EQ                     GPU_EQ
#define ROW(ops, fn, set)          GPU_ROW(ops, fn, "T", set)
#define UNARY(op, types, expr)     ROW(#op, unary_gpu, SET_##types),
#define PREDICATE(op, types, expr) ROW(#op, predicate, SET_##types),
#define BINARY(op, types, expr)    ROW(#op, binary_gpu, SET_##types),
#define COMPARE(op, types, expr)   ROW(#op, elementwise_gpu_compare, SET_##types),
static const struct device_kernel rows[] = {
#include "task/kernels/engine/loops/loops.def"
    {.k = {"LogicalNot", .run = unary_gpu}},
    {.k = {"LogicalAnd LogicalOr", .run = elementwise_gpu_compare}},
    {.k = {"Cast", .run = cast_gpu},
     .type_attr = "SrcT",
     .types = GPU_EQ | GPU_TYPE(MU_INT32) | GPU_TYPE(MU_UINT8),
     .device_in = 1,
     .device_out = 1},
    {.k = {"Fill", .run = fill_gpu},
     .type_attr = "T",
     .types = GPU_EQ | GPU_TYPE(MU_UINT8),
     .host_in = 3},
    ROW("Select", select_gpu, GPU_EQ | GPU_TYPE(MU_UINT8)),
    ROW("SelectV2", select_v2_gpu, GPU_EQ | GPU_TYPE(MU_UINT8)),
    ROW("ZerosLike", zeros_like_gpu, GPU_EQ | GPU_TYPE(MU_UINT8) | GPU_TYPE(MU_VARIANT)),
    ROW("OnesLike", ones_like_gpu, GPU_EQ | GPU_TYPE(MU_UINT8)),
    ROW("AddN", add_n_gpu, GPU_NUM | GPU_TYPE(MU_VARIANT)),
    ROW("AccumulateNV2", add_n_gpu, GPU_NUM),
    ROW("LeakyRelu LeakyReluGrad", leaky, GPU_REAL),
    ROW("ApproximateEqual", approximate_equal_gpu, GPU_REAL),
    ROW("Cross", cross_gpu, GPU_NUM),
    ROW("ClipByValue", clip, GPU_NUM),
};
KERNEL_TABLE(math_elementwise_gpu, rows)
