/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products, and local response normalisation, on a GPU. */
#include <string.h>

#include "task/kernels/engine/checks.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/math/scan_launch.h"

static int scan(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct mu_tensor *out;
	struct scan_plan p;
	int rc = check_scan(c, &p, err);

	if (rc || (rc = gpu_out(c, 0, in->dtype, &in->shape, &out, err)) || !in->shape.count)
		return rc;
	struct scan_args a = {gpu_address(out), gpu_address(in), p.outer,  p.n,
			      p.inner,          p.exclusive,     p.reverse};
	return gpu_scan(c, c->node->op, in->dtype, &a, err);
}

/* ---- LRN ---- */

static int lrn_prepare(const struct mu_node *n, struct runtime *rt, void **state,
		       struct mu_err *err)
{
	struct gpu_one o = {gpu_of_node(n, rt), NULL, MU_FLOAT};
	int rc = gpu_kernel(o.gpu, strcmp(n->op, "LRN") == 0 ? "lrn" : "lrn_back", &o.kernel, err);

	if (!rc)
		*state = memcpy(MU_NEW(struct gpu_one), &o, sizeof o);
	return rc;
}

static int lrn_run(struct kernel_call *c, const struct lrn_plan *p, const struct mu_shape *shape,
		   struct lrn_args *a, struct mu_err *err)
{
	const struct gpu_one *o = c->state;
	struct mu_tensor *out;
	int rc = gpu_out(c, 0, MU_FLOAT, shape, &out, err);

	if (rc)
		return rc;
	a->out = gpu_address(out);
	a->n = shape->count;
	a->channels = p->n;
	a->radius = p->radius;
	a->bias = p->bias;
	a->alpha = p->alpha;
	a->beta = p->beta;
	return gpu_run(o->gpu, o->kernel, a->n, a, err);
}

static int lrn(struct kernel_call *c, struct mu_err *err)
{
	struct lrn_args a = {.x = gpu_address(kernel_in(c, 0))};
	struct lrn_plan p;
	int rc = check_lrn(c, 0, &p, err);

	return rc ? rc : lrn_run(c, &p, &kernel_in(c, 0)->shape, &a, err);
}

static int lrn_grad(struct kernel_call *c, struct mu_err *err)
{
	struct lrn_args a = {.g = gpu_address(kernel_in(c, 0)),
			     .x = gpu_address(kernel_in(c, 1)),
			     .y = gpu_address(kernel_in(c, 2))};
	struct lrn_plan p;
	int rc = check_lrn_grad(c, &p, err);

	return rc ? rc : lrn_run(c, &p, &kernel_in(c, 1)->shape, &a, err);
}

#define ROW(name, fn, before, set, host)                                                           \
	{                                                                                          \
		.k = {name, .run = fn, .prepare = before}, .type_attr = "T", .types = set,         \
		.host_in = host                                                                    \
	}
static const struct gpu_kernel rows[] = {
    ROW("Cumsum", scan, NULL, GPU_NUM, 1 << 1),
    ROW("Cumprod", scan, NULL, GPU_NUM, 1 << 1),
    ROW("LRN", lrn, lrn_prepare, GPU_TYPE(MU_FLOAT), 0),
    ROW("LRNGrad", lrn_grad, lrn_prepare, GPU_TYPE(MU_FLOAT), 0),
};
GPU_KERNEL_TABLE(gpu_scan, rows)
