/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops on a GPU: the rows of engine/loops/loops.def, then ops of more operands, or with
 * attributes. */
#include <stdio.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/engine/variant.h"
#include "task/kernels/math/checks.h"

static int elementwise_gpu_prepare(const struct mu_node *n, struct runtime *rt, void **state,
				   struct mu_err *err)
{
	return gpu_one_prepare(n, rt, n->op, "T", state, err);
}

/* ---- one operand ---- */

static int unary_to(struct kernel_call *c, enum mu_dtype result, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	struct unary_args a = {.in = gpu_address(kernel_in(c, 0)),
			       .n = kernel_in(c, 0)->shape.count};
	struct mu_tensor *out;
	int rc = gpu_out_reuse(c, 0, 0, result, &kernel_in(c, 0)->shape, &out, err);

	if (rc)
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

static int unary_gpu(struct kernel_call *c, struct mu_err *err)
{
	return unary_to(c, kernel_in(c, 0)->dtype, err);
}

static int predicate(struct kernel_call *c, struct mu_err *err)
{
	return unary_to(c, MU_BOOL, err);
}

static int logical_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			   struct mu_err *err)
{
	struct gpu_one *o = MU_NEW(struct gpu_one);
	int rc;

	*o = (struct gpu_one){gpu_of_node(n, rt), NULL, MU_BOOL};
	if ((rc = gpu_find(o->gpu, n->op, MU_BOOL, &o->kernel, err)))
		free(o);
	else
		*state = o;
	return rc;
}

/* ---- two operands ---- */

/* The strides of both, neighbouring dimensions joined where both allow it. */
static void elementwise_gpu_lay_out(struct binary_args *a, const struct mu_shape *shape,
				    const struct mu_shape *x, const struct mu_shape *y)
{
	struct view vx, vy;
	int at = 0;

	broadcast_view(&vx, x, shape);
	broadcast_view(&vy, y, shape);
	for (int i = 0; i < shape->rank; i++) {
		int64_t d = shape->dim[i];
		if (d == 1)
			continue;
		if (at && a->a_stride[at - 1] == vx.stride[i] * d &&
		    a->b_stride[at - 1] == vy.stride[i] * d) {
			a->dim[at - 1] *= d;
			at--;
		} else {
			a->dim[at] = d;
		}
		a->a_stride[at] = vx.stride[i];
		a->b_stride[at] = vy.stride[i];
		at++;
	}
	a->rank = at;
	if (at == 1) { /* one run of each, or one element */
		a->rank = 0;
		a->a_step = (int32_t)a->a_stride[0];
		a->b_step = (int32_t)a->b_stride[0];
	}
}

static int binary_to(struct kernel_call *c, enum mu_dtype result, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *x = kernel_in(c, 0), *y = kernel_in(c, 1);
	struct binary_args a = {.a = gpu_address(x), .b = gpu_address(y)};
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc = args_same_type(c, 0, 1, err);

	if (rc)
		return rc;
	if ((rc = broadcast_shape(&x->shape, &y->shape, &shape, err))) {
		bool differ = strcmp(c->node->op, "NotEqual") == 0;
		if ((!differ && strcmp(c->node->op, "Equal") != 0) ||
		    args_attr_bool(c->node, "incompatible_shape_error", true))
			return rc;
		shape = mu_shape_scalar();
		return (rc = gpu_out(c, 0, MU_BOOL, &shape, &out, err))
			   ? rc
			   : gpu_fill(o->gpu, out, differ, err);
	}
	elementwise_gpu_lay_out(&a, &shape, &x->shape, &y->shape);
	a.n = shape.count;
	if ((rc = gpu_out_reuse(c, 0, x->shape.count == shape.count ? 0 : 1, result, &shape, &out,
				err)))
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

static int binary_gpu(struct kernel_call *c, struct mu_err *err)
{
	return binary_to(c, kernel_in(c, 0)->dtype, err);
}

static int elementwise_gpu_compare(struct kernel_call *c, struct mu_err *err)
{
	return binary_to(c, MU_BOOL, err);
}

/* ---- Cast ---- */

static enum mu_dtype cast_to(const struct mu_node *n)
{
	return args_attr_type(n, "DstT", MU_DT_INVALID);
}

static int cast_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	enum mu_dtype from = args_attr_type(n, "SrcT", MU_DT_INVALID), to = cast_to(n);
	const char *name = to == MU_BOOL ? "bool" : gpu_type_name(to);
	char full[32];

	if (!name || to == MU_INT32)
		name = to == MU_INT32 ? "i32" : NULL;
	if (!name)
		return mu_fail(err, MU_UNIMPLEMENTED, "Cast %s to %s is not supported on a GPU",
			       mu_dtype_name(from), mu_dtype_name(to));
	struct gpu_one o = {gpu_of_node(n, rt), NULL, to};
	snprintf(full, sizeof full, "Cast_%s_%s", gpu_type_name(from), name);
	int rc = gpu_kernel(o.gpu, full, &o.kernel, err);
	if (rc)
		return rc;
	*state = mu_xmalloc(sizeof o);
	memcpy(*state, &o, sizeof o);
	return 0;
}

static int cast_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *in = kernel_in(c, 0);
	struct unary_args a = {.in = gpu_address(in), .n = in->shape.count};
	struct mu_tensor *out;
	int rc;

	if (o->type == in->dtype) {
		kernel_out_take(c, 0, mu_tensor_ref(in));
		return 0;
	}
	if ((rc = gpu_out(c, 0, o->type, &in->shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

/* ---- by size: Select, Fill and their like ---- */

static int width_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	static const struct {
		const char *op, *kernel, *attr;
	} names[] = {{"Select", "select", "T"},
		     {"Fill", "fill", "T"},
		     {"ZerosLike", "fill", "T"},
		     {"OnesLike", "fill", "T"}};
	struct gpu_one o = {gpu_of_node(n, rt), NULL, args_attr_type(n, "T", MU_DT_INVALID)};
	const char *kernel = "";
	int rc = 0;

	for (unsigned i = 0; i < MU_COUNT(names); i++)
		if (strcmp(names[i].op, n->op) == 0)
			kernel = names[i].kernel;
	if (o.type != MU_VARIANT && (rc = gpu_find_width(o.gpu, kernel, o.type, &o.kernel, err)))
		return rc;
	*state = mu_xmalloc(sizeof o);
	memcpy(*state, &o, sizeof o);
	return 0;
}

/* The condition is a scalar, of the operands' shape, or a vector that picks rows. */
static int select_run(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *cond = kernel_in(c, 0), *x = kernel_in(c, 1), *y = kernel_in(c, 2);
	struct select_args a = {.c = gpu_address(cond),
				.a = gpu_address(x),
				.b = gpu_address(y),
				.n = x->shape.count,
				.inner = 1,
				.c_step = 1,
				.a_step = 1,
				.b_step = 1};
	struct mu_tensor *out;
	int rc;

	if ((rc = args_same_type(c, 1, 2, err)) || (rc = args_same_shape(c, 1, 2, err)))
		return rc;
	if (cond->shape.rank == 0)
		a.c_step = 0;
	else if (!mu_shape_eq(&cond->shape, &x->shape)) {
		if (cond->shape.rank != 1 || x->shape.rank < 1 ||
		    cond->shape.dim[0] != x->shape.dim[0])
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "'cond' must be a scalar, a vector of the operands' rows or "
				       "of their shape: %s vs. %s",
				       mu_shape_str(&cond->shape), mu_shape_str(&x->shape));
		a.inner = cond->shape.dim[0] ? x->shape.count / cond->shape.dim[0] : 1;
		a.inner = a.inner ? a.inner : 1;
	}
	if ((rc = gpu_out(c, 0, x->dtype, &x->shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

static int fill_with(struct kernel_call *c, const struct mu_shape *shape, uint64_t bits,
		     struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	struct fill_args a = {.value = bits, .n = shape->count};
	struct mu_tensor *out;
	int rc = gpu_out(c, 0, o->type, shape, &out, err);

	if (rc)
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

static int fill_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *value = kernel_in(c, 1);
	struct mu_shape shape;
	uint64_t bits = 0;
	int rc = args_shape(c, 0, &shape, err);

	if (rc)
		return rc;
	if (value->shape.count != 1 || value->shape.rank)
		return mu_fail(err, MU_INVALID_ARGUMENT, "value must be a scalar, got shape %s",
			       mu_shape_str(&value->shape));
	memcpy(&bits, value->data, mu_dtype_size(value->dtype));
	return fill_with(c, &shape, bits, err);
}

static int zeros_like_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor t;
	int rc;

	if (in->dtype != MU_VARIANT)
		return fill_with(c, &in->shape, 0, err);
	if (!(rc = variant_zeros(&t, in, err))) /* what it holds is on the GPU */
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

	return fill_with(c, &kernel_in(c, 0)->shape, one[((struct gpu_one *)c->state)->type], err);
}

/* ---- AddN ---- */

static int add_n_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	if (mu_dtype_base(args_attr_type(n, "T", MU_DT_INVALID)) == MU_VARIANT)
		return 0;
	return gpu_one_prepare(n, rt, "sum_list", "T", state, err);
}

static int add_n_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_shape *shape = &kernel_in(c, 0)->shape;
	struct list_args a = {.n = shape->count};
	struct mu_tensor *out = NULL;
	int rc = 0;

	if (!o)
		return variant_add_all(c, err);
	for (unsigned i = 1; i < c->n_in && !rc; i++)
		if (!(rc = args_same_type(c, 0, i, err)))
			rc = args_same_shape(c, 0, i, err);
	if (rc || (rc = gpu_out(c, 0, o->type, shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	for (unsigned i = 0; i < c->n_in && !rc;) { /* so many at a time */
		a.count = 0;
		if (i)
			a.in[a.count++] = a.out;
		while (i < c->n_in && a.count < CUDA_MAX_LIST)
			a.in[a.count++] = gpu_address(kernel_in(c, i++));
		rc = gpu_run(o->gpu, o->kernel, a.n, &a, err);
	}
	return rc;
}

/* ---- LeakyRelu and its gradient: (gradient, what went in) ---- */

static int leaky_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "leaky", "T", state, err);
}

static int leaky(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *g = kernel_in(c, 0), *x = kernel_in(c, c->n_in - 1);
	struct leaky_args a = {.x = gpu_address(x),
			       .g = gpu_address(g),
			       .n = g->shape.count,
			       .slope = (double)args_attr_float(c->node, "alpha", 0.2f)};
	struct mu_tensor *out;
	int rc;

	if ((rc = args_same_type(c, 0, c->n_in - 1, err)) ||
	    (rc = args_same_shape(c, 0, c->n_in - 1, err)) ||
	    (rc = gpu_out_reuse(c, 0, 0, o->type, &g->shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

/* ---- ApproximateEqual ---- */

static int near_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "near", "T", state, err);
}

static int approximate_equal_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_tensor *x = kernel_in(c, 0), *y = kernel_in(c, 1);
	struct leaky_args a = {.x = gpu_address(x),
			       .g = gpu_address(y),
			       .n = x->shape.count,
			       .slope = (double)args_attr_float(c->node, "tolerance", 1e-5f)};
	struct mu_tensor *out;
	int rc;

	if ((rc = args_same_type(c, 0, 1, err)) || (rc = args_same_shape(c, 0, 1, err)) ||
	    (rc = gpu_out(c, 0, MU_BOOL, &x->shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

/* ---- SelectV2 ---- */

static int select_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			  struct mu_err *err)
{
	struct gpu_one o = {gpu_of_node(n, rt), NULL, args_attr_type(n, "T", MU_DT_INVALID)};
	int rc = gpu_find_width(o.gpu, "select", o.type, &o.kernel, err);

	if (!rc)
		*state = memcpy(MU_NEW(struct gpu_one), &o, sizeof o);
	return rc;
}

/* Input i as it is read for a result of this shape: one element for all, itself, or stretched. */
static int operand(struct kernel_call *c, unsigned i, const struct mu_shape *to,
		   struct mu_tensor *made, uint64_t *at, int32_t *step, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, i);
	struct view v;
	int rc;

	*at = gpu_address(t);
	*step = t->shape.count != 1;
	if (t->shape.count == 1 || t->shape.count == to->count)
		return 0;
	if ((rc = move_scratch(c, t->dtype, to, made, err)))
		return rc;
	*at = gpu_address(made);
	broadcast_view(&v, &t->shape, to);
	return move_read(made, t, &v, err);
}

static int select_v2_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	struct select_args a = {.inner = 1};
	MU_AUTO_TENSOR x = {0}, y = {0}, z = {0};
	struct mu_shape shape;
	struct mu_tensor *out;
	int rc;

	if ((rc = check_select(c, &shape, err)) ||
	    (rc = gpu_out(c, 0, o->type, &shape, &out, err)) || !shape.count ||
	    (rc = operand(c, 0, &shape, &x, &a.c, &a.c_step, err)) ||
	    (rc = operand(c, 1, &shape, &y, &a.a, &a.a_step, err)) ||
	    (rc = operand(c, 2, &shape, &z, &a.b, &a.b_step, err)))
		return rc;
	a.out = gpu_address(out);
	a.n = shape.count;
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

/* ---- ClipByValue ---- */

struct clip {
	struct gpu *gpu;
	void *least, *most;
};

static int clip_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(n, "T", MU_DT_INVALID);
	struct clip k = {.gpu = gpu_of_node(n, rt)};
	int rc;

	if ((rc = gpu_find(k.gpu, "Minimum", t, &k.least, err)) ||
	    (rc = gpu_find(k.gpu, "Maximum", t, &k.most, err)))
		return rc;
	*state = memcpy(MU_NEW(struct clip), &k, sizeof k);
	return 0;
}

static int clip(struct kernel_call *c, struct mu_err *err)
{
	const struct clip *k = c->state;
	const struct mu_tensor *t = kernel_in(c, 0), *low = kernel_in(c, 1),
			       *high = kernel_in(c, 2);
	struct mu_tensor *out;
	int rc = check_clip(c, err);

	if (rc || (rc = gpu_out(c, 0, t->dtype, &t->shape, &out, err)))
		return rc;
	struct binary_args least = {.out = gpu_address(out),
				    .a = gpu_address(t),
				    .b = gpu_address(high),
				    .n = t->shape.count,
				    .a_step = 1,
				    .b_step = high->shape.rank > 0};
	struct binary_args most = {.out = least.out,
				   .a = least.out,
				   .b = gpu_address(low),
				   .n = least.n,
				   .a_step = 1,
				   .b_step = low->shape.rank > 0};
	rc = gpu_run(k->gpu, k->least, least.n, &least, err);
	return rc ? rc : gpu_run(k->gpu, k->most, most.n, &most, err);
}

/* ---- Cross ---- */

static int cross_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			 struct mu_err *err)
{
	return gpu_one_prepare(n, rt, "cross", "T", state, err);
}

static int cross_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	const struct mu_shape *shape = &kernel_in(c, 0)->shape;
	struct binary_args a = {.a = gpu_address(kernel_in(c, 0)),
				.b = gpu_address(kernel_in(c, 1)),
				.n = shape->count};
	struct mu_tensor *out;
	int rc = check_cross(c, err);

	if (rc || (rc = gpu_out(c, 0, o->type, shape, &out, err)))
		return rc;
	a.out = gpu_address(out);
	return gpu_run(o->gpu, o->kernel, a.n, &a, err);
}

#define SET_LIB 0 /* the host runs them */
#define SET_FLT GPU_FLT
#define SET_INT GPU_INT
#define SET_NUM GPU_NUM
#define SET_ARI GPU_NUM /* complex numbers stay on the host */
#define SET_EQ  GPU_EQ
#define LOOP_ROW(op, set, fn)                                                                      \
	{.k = {#op, .run = fn, .prepare = elementwise_gpu_prepare},                                \
	 .type_attr = "T",                                                                         \
	 .types = SET_##set},
#define UNARY(op, types, expr)     LOOP_ROW(op, types, unary_gpu)
#define PREDICATE(op, types, expr) LOOP_ROW(op, types, predicate)
#define BINARY(op, types, expr)    LOOP_ROW(op, types, binary_gpu)
#define COMPARE(op, types, expr)   LOOP_ROW(op, types, elementwise_gpu_compare)
#define WIDTH(name, fn, host)                                                                      \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = width_prepare}, .type_attr = "T",                \
		.types = GPU_EQ | GPU_TYPE(MU_UINT8), .host_in = host                              \
	}
#define ROW(name, fn, before, set)                                                                 \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = before}, .type_attr = "T", .types = set          \
	}
static const struct gpu_kernel rows[] = {
#include "task/kernels/engine/loops/loops.def"
    {.k = {"LogicalNot", .run = unary_gpu, .prepare = logical_prepare}},
    {.k = {"LogicalAnd", .run = elementwise_gpu_compare, .prepare = logical_prepare}},
    {.k = {"LogicalOr", .run = elementwise_gpu_compare, .prepare = logical_prepare}},
    {.k = {"Cast", .run = cast_gpu, .prepare = cast_prepare},
     .type_attr = "SrcT",
     .types = GPU_EQ | GPU_TYPE(MU_INT32) | GPU_TYPE(MU_UINT8),
     .device_in = 1,
     .device_out = 1},
    WIDTH("Select", select_run, 0),
    WIDTH("Fill", fill_gpu, 3),
    {.k = {"ZerosLike", .run = zeros_like_gpu, .prepare = width_prepare},
     .type_attr = "T",
     .types = GPU_EQ | GPU_TYPE(MU_UINT8) | GPU_TYPE(MU_VARIANT)},
    WIDTH("OnesLike", ones_like_gpu, 0),
    {.k = {"AddN", .run = add_n_gpu, .prepare = add_n_prepare},
     .type_attr = "T",
     .types = GPU_NUM | GPU_TYPE(MU_VARIANT)},
    {.k = {"AccumulateNV2", .run = add_n_gpu, .prepare = add_n_prepare},
     .type_attr = "T",
     .types = GPU_NUM},
    ROW("LeakyRelu", leaky, leaky_prepare, GPU_REAL),
    ROW("LeakyReluGrad", leaky, leaky_prepare, GPU_REAL),
    ROW("ApproximateEqual", approximate_equal_gpu, near_prepare, GPU_REAL),
    ROW("SelectV2", select_v2_gpu, select_prepare, GPU_EQ | GPU_TYPE(MU_UINT8)),
    ROW("Cross", cross_gpu, cross_prepare, GPU_NUM),
    ROW("ClipByValue", clip, clip_prepare, GPU_NUM),
};
GPU_KERNEL_TABLE(math_elementwise_gpu, rows)
