/* SPDX-License-Identifier: Apache-2.0 */
/* Elementwise ops of more than two operands, or with attributes, on a GPU. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/broadcast.h"
#include "task/kernels/engine/checks.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/move.h"

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

static int approximate_equal(struct kernel_call *c, struct mu_err *err)
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

static int select_v2(struct kernel_call *c, struct mu_err *err)
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

static int cross(struct kernel_call *c, struct mu_err *err)
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

#define ROW(name, fn, before, set)                                                                 \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = before}, .type_attr = "T", .types = set          \
	}
static const struct gpu_kernel rows[] = {
    ROW("LeakyRelu", leaky, leaky_prepare, GPU_REAL),
    ROW("LeakyReluGrad", leaky, leaky_prepare, GPU_REAL),
    ROW("ApproximateEqual", approximate_equal, near_prepare, GPU_REAL),
    ROW("SelectV2", select_v2, select_prepare, GPU_EQ | GPU_TYPE(MU_UINT8)),
    ROW("Cross", cross, cross_prepare, GPU_NUM),
    ROW("ClipByValue", clip, clip_prepare, GPU_NUM),
};
GPU_KERNEL_TABLE(gpu_elementwise_more, rows)
