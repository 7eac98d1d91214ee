/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and their gradients on a GPU. */
#include <stdio.h>
#include <string.h>

#include "task/device/gpu_pooling.h"
#include "task/kernels/args.h"
#include "task/kernels/checks.h"
#include "task/kernels/gpu_conv.h"

struct state {
	struct gpu_one one;
	struct window_attrs window;
	struct gpu_plan *plan; /* the library's; NULL: the gradient of the largest */
	bool average, back;
};

static void release(void *state)
{
	struct state *s = state;

	gpu_plan_free(s->plan);
	free(s);
}

static int prepare(const struct mu_node *n, struct runtime *rt, void **state, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(n, "T", MU_FLOAT);
	struct state s = {.one = {gpu_of_node(n, rt), NULL, t}};
	char name[32];
	int rc = window_attrs_pool(n, &s.window, err);

	s.average = n->op[0] == 'A';
	s.back = strstr(n->op, "Grad") != NULL;
	snprintf(name, sizeof name, "pool_%s%s", s.average ? "average" : "max",
		 s.back ? "_back" : "");
	if (rc || (rc = gpu_find(s.one.gpu, name, t, &s.one.kernel, err)))
		return rc;
	if (s.average || !s.back)
		s.plan = gpu_pooling_plan_new();
	*state = memcpy(MU_NEW(struct state), &s, sizeof s);
	return 0;
}

static int by_library(struct kernel_call *c, const struct pool_sizes *p, cuda_ptr from, cuda_ptr to,
		      bool *done, struct mu_err *err)
{
	const struct state *s = c->state;
	const struct gpu_pooling what = {.type = s->one.type,
					 .average = s->average,
					 .back = s->back,
					 .batch = p->batch,
					 .channels = p->channels,
					 .row = gpu_even_axis(&p->row),
					 .column = gpu_even_axis(&p->column)};

	*done = false;
	if (!s->plan || !p->batch || !p->channels || !gpu_conv_by_library ||
	    !gpu_window_is_even(&p->row) || !gpu_window_is_even(&p->column))
		return 0;
	return gpu_pooling(s->one.gpu, s->plan, &what, from, to, done, err);
}

/* Into output 0, of this shape. */
static int run(struct kernel_call *c, const struct pool_sizes *p, const struct mu_shape *shape,
	       struct pool_args *a, struct mu_err *err)
{
	const struct state *s = c->state;
	const struct gpu_one *o = &s->one;
	struct mu_tensor *out;
	bool done;
	int rc = gpu_out(c, 0, o->type, shape, &out, err);

	if (rc)
		return rc;
	a->out = gpu_address(out);
	if ((rc = by_library(c, p, s->back ? a->grad : a->in, a->out, &done, err)) || done)
		return rc;
	a->n = shape->count;
	a->channels = p->channels;
	a->row = gpu_window_axis(&p->row);
	a->column = gpu_window_axis(&p->column);
	return gpu_run(o->gpu, o->kernel, a->n, a, err);
}

static int forward(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.in = gpu_address(kernel_in(c, 0))};
	struct mu_shape shape;
	struct pool_sizes p;
	int rc = check_pool(c, &s->window, &p, &shape, err);

	return rc ? rc : run(c, &p, &shape, &a, err);
}

static int max_back(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.in = gpu_address(kernel_in(c, 0)),
			      .grad = gpu_address(kernel_in(c, 2))};
	struct pool_sizes p;
	int rc = check_max_pool_grad(c, &s->window, &p, err);

	return rc ? rc : run(c, &p, &kernel_in(c, 0)->shape, &a, err);
}

static int average_back(struct kernel_call *c, struct mu_err *err)
{
	const struct state *s = c->state;
	struct pool_args a = {.grad = gpu_address(kernel_in(c, 1))};
	struct mu_shape in;
	struct pool_sizes p;
	int rc = check_avg_pool_grad(c, &s->window, &p, &in, err);

	return rc ? rc : run(c, &p, &in, &a, err);
}

#define ROW(name, fn)                                                                              \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = prepare, .release = release}, .type_attr = "T",  \
		.types = GPU_FLT                                                                   \
	}
static const struct gpu_kernel rows[] = {
    ROW("MaxPool", forward),        ROW("MaxPoolV2", forward), ROW("MaxPoolGrad", max_back),
    ROW("MaxPoolGradV2", max_back), ROW("AvgPool", forward),   ROW("AvgPoolGrad", average_back),
};
GPU_KERNEL_TABLE(gpu_pool, rows)
