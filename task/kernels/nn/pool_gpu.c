/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and their gradients on a GPU. */
#include <stdio.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/gpu_runs.h"
#include "task/kernels/nn/checks.h"
#include "task/kernels/nn/conv_gpu.h"

struct state {
	struct gpu_one one;
	struct window_attrs window;
};

static int pool_gpu_prepare(const struct mu_node *n, struct runtime *rt, void **state,
			    struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(n, "T", MU_FLOAT);
	struct state s = {.one = {gpu_of_node(n, rt), NULL, t}};
	char name[32];
	int rc = window_attrs_pool(n, &s.window, err);

	const bool back = strstr(n->op, "Grad") != NULL;
	if (strstr(n->op, "Argmax") || strstr(n->op, "GradGrad"))
		snprintf(name, sizeof name,
			 back && strstr(n->op, "Argmax") ? "scatter_add" : "pool_places");
	else
		snprintf(name, sizeof name, "pool_%s%s", n->op[0] == 'A' ? "average" : "max",
			 back ? "_back" : "");
	if (rc || (rc = gpu_find(s.one.gpu, name, t, &s.one.kernel, err)))
		return rc;
	*state = memcpy(MU_NEW(struct state), &s, sizeof s);
	return 0;
}

/* Into output 0, of this shape. */
static int pool_gpu_run(struct kernel_call *c, const struct pool_sizes *p,
			const struct mu_shape *shape, struct pool_args *a, struct mu_err *err)
{
	const struct state *s = c->state;
	const struct gpu_one *o = &s->one;
	struct mu_tensor *out;
	int rc = gpu_out(c, 0, o->type, shape, &out, err);

	if (rc)
		return rc;
	a->out = gpu_address(out);
	a->n = shape->count;
	a->channels = p->channels;
	a->row = gpu_window_axis(&p->row);
	a->column = gpu_window_axis(&p->column);
	return gpu_run(o->gpu, o->kernel, a->n, a, err);
}

static int pool_gpu_forward(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.in = gpu_address(kernel_in(c, 0))};
	struct mu_shape shape;
	struct pool_sizes p;
	int rc = check_pool(c, &s->window, &p, &shape, err);

	return rc ? rc : pool_gpu_run(c, &p, &shape, &a, err);
}

static int max_back(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.in = gpu_address(kernel_in(c, 0)),
			      .grad = gpu_address(kernel_in(c, 2))};
	struct pool_sizes p;
	int rc = check_max_pool_grad(c, &s->window, &p, err);

	return rc ? rc : pool_gpu_run(c, &p, &kernel_in(c, 0)->shape, &a, err);
}

static int pool_gpu_average_back(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.grad = gpu_address(kernel_in(c, 1))};
	struct mu_shape in;
	struct pool_sizes p;
	int rc = check_avg_pool_grad(c, &s->window, &p, &in, err);

	return rc ? rc : pool_gpu_run(c, &p, &in, &a, err);
}

/* ---- by the places of the largest ---- */

static int max_back_back(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.in = gpu_address(kernel_in(c, 0)),
			      .grad = gpu_address(kernel_in(c, 2))};
	struct mu_shape want;
	struct pool_sizes p;
	int rc = check_max_pool_grad_grad(c, &s->window, &p, &want, err);

	return rc ? rc : pool_gpu_run(c, &p, &want, &a, err);
}

static int places_gpu(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.in = gpu_address(kernel_in(c, 0)),
			      .whole = args_attr_bool(c->node, "include_batch_in_index", false)};
	enum mu_dtype type;
	struct mu_shape shape;
	struct pool_sizes p;
	struct mu_tensor *at;
	int rc;

	if ((rc = check_max_pool_places(c, &s->window, &p, &shape, &type, err)) ||
	    (rc = gpu_out(c, 1, type, &shape, &at, err)))
		return rc;
	a.at = gpu_address(at);
	a.wide = type == MU_INT64;
	return pool_gpu_run(c, &p, &shape, &a, err);
}

/* Summed by place, in the order of the windows, so always the same bits.  Places outside their
 * image are passed over, where the CPU refuses them. */
static int places_back(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	const struct mu_tensor *in = kernel_in(c, 0), *at = kernel_in(c, 2);
	const int64_t n = at->shape.count;
	struct scatter_args a = {.updates = gpu_address(kernel_in(c, 1))};
	GPU_RUNS_AUTO runs = {0};
	struct pool_sizes p;
	struct mu_tensor *out;
	void *kernel;
	int rc;

	if ((rc = check_max_pool_grad_places(c, &s->window, &p, err)) ||
	    (rc = gpu_out(c, 0, s->one.type, &in->shape, &out, err)) ||
	    (rc = gpu_fill(s->one.gpu, out, 0, err)) || !n || !in->shape.count)
		return rc;
	if ((rc = gpu_kernel(s->one.gpu, "pool_keys", &kernel, err)) ||
	    (rc = gpu_runs_new(c, n, &runs, err)))
		return rc;
	const struct pool_keys_args keys = {
	    .keys = gpu_address(&runs.keys),
	    .order = gpu_address(&runs.order),
	    .at = gpu_address(at),
	    .n = n,
	    .image = in->shape.count / p.batch,
	    .each = n / p.batch,
	    .whole = args_attr_bool(c->node, "include_batch_in_index", false),
	    .wide = at->dtype == MU_INT64};
	if ((rc = gpu_run(s->one.gpu, kernel, n, &keys, err)) ||
	    (rc = gpu_runs_sort(c, n, 1, &runs, &a.by, err)))
		return rc;
	a.table = gpu_address(out);
	return gpu_run(s->one.gpu, s->one.kernel, n, &a, err);
}

/* Places are on the GPU whatever they are counted in. */
#define PLACES(name, fn, in, out)                                                                  \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = pool_gpu_prepare}, .type_attr = "T",             \
		.types = GPU_FLT, .device_in = in, .device_out = out                               \
	}
#define ROW(name, fn)                                                                              \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = pool_gpu_prepare}, .type_attr = "T",             \
		.types = GPU_FLT                                                                   \
	}
static const struct gpu_kernel rows[] = {
    ROW("MaxPool", pool_gpu_forward),
    ROW("MaxPoolV2", pool_gpu_forward),
    ROW("MaxPoolGrad", max_back),
    ROW("MaxPoolGradV2", max_back),
    ROW("AvgPool", pool_gpu_forward),
    ROW("AvgPoolGrad", pool_gpu_average_back),
    ROW("MaxPoolGradGrad", max_back_back),
    ROW("MaxPoolGradGradV2", max_back_back),
    PLACES("MaxPoolWithArgmax", places_gpu, 0, 1 << 1),
    PLACES("MaxPoolGradWithArgmax", places_back, 1 << 2, 0),
};
GPU_KERNEL_TABLE(nn_pool_gpu, rows)
