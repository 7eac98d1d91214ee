/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation over neighbouring channels, and its gradient; float. */
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/nn/checks.h"

struct lrn {
	const float *g, *x, *y;
	float *out;
	struct lrn_plan p;
};

int check_lrn(const struct kernel_call *c, unsigned in, struct lrn_plan *p, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, in);

	*p = (struct lrn_plan){.n = x->shape.dim[3],
			       .radius = args_attr_int(c->node, "depth_radius", 5),
			       .bias = args_attr_float(c->node, "bias", 1),
			       .alpha = args_attr_float(c->node, "alpha", 1),
			       .beta = args_attr_float(c->node, "beta", 0.5f)};
	if (p->radius < 0)
		return mu_invalid(err, "depth_radius = %lld must be >= 0", (long long)p->radius);
	if (p->radius > p->n)
		p->radius = p->n;
	return 0;
}

static int64_t window_begin(const struct lrn *l, int64_t ch)
{
	return ch > l->p.radius ? ch - l->p.radius : 0;
}

static int64_t window_end(const struct lrn *l, int64_t ch)
{
	return ch + l->p.radius < l->p.n ? ch + l->p.radius + 1 : l->p.n;
}

static float norm(const struct lrn *l, const float *x, int64_t ch)
{
	float sum = 0;

	for (int64_t k = window_begin(l, ch); k < window_end(l, ch); k++)
		sum += x[k] * x[k];
	return l->p.bias + l->p.alpha * sum;
}

static void lrn_forward(void *arg, int64_t from, int64_t to)
{
	const struct lrn *l = arg;

	for (int64_t i = from; i < to; i++)
		for (int64_t ch = 0; ch < l->p.n; ch++)
			l->out[i * l->p.n + ch] = l->x[i * l->p.n + ch] *
						  powf(norm(l, l->x + i * l->p.n, ch), -l->p.beta);
}

static void lrn_backward(void *arg, int64_t from, int64_t to)
{
	const struct lrn *l = arg;

	memset(l->out + from * l->p.n, 0, (size_t)((to - from) * l->p.n) * sizeof(float));
	for (int64_t i = from; i < to; i++) {
		const float *x = l->x + i * l->p.n, *y = l->y + i * l->p.n, *g = l->g + i * l->p.n;
		float *o = l->out + i * l->p.n;
		for (int64_t ch = 0; ch < l->p.n; ch++) {
			float n = norm(l, x, ch);
			float share = -2 * l->p.alpha * l->p.beta * y[ch] / n * g[ch];
			for (int64_t k = window_begin(l, ch); k < window_end(l, ch); k++)
				o[k] += share * x[k];
			o[ch] += powf(n, -l->p.beta) * g[ch];
		}
	}
}

static int lrn_run(struct kernel_call *c, struct lrn *l, const struct mu_shape *shape,
		   void (*body)(void *, int64_t, int64_t), struct mu_err *err)
{
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, shape, &out, err));
	if (!shape->count)
		return 0;
	l->out = out->data;
	kernel_parallel(c, shape->count / l->p.n, 1 + 2048 / l->p.n, body, l);
	return 0;
}

static int lrn(struct kernel_call *c, struct mu_err *err)
{
	struct lrn l = {.x = kernel_in(c, 0)->data};

	MU_RETURN_IF_ERROR(check_lrn(c, 0, &l.p, err));
	return lrn_run(c, &l, &kernel_in(c, 0)->shape, lrn_forward, err);
}

static int lrn_grad(struct kernel_call *c, struct mu_err *err)
{
	struct lrn l = {
	    kernel_in(c, 0)->data, kernel_in(c, 1)->data, kernel_in(c, 2)->data, NULL, {0}};

	MU_RETURN_IF_ERROR(check_lrn(c, 1, &l.p, err));
	return lrn_run(c, &l, &kernel_in(c, 1)->shape, lrn_backward, err);
}

static const struct kernel rows[] = {
    {"LRN", KERNEL_EXPENSIVE, .run = lrn},
    {"LRNGrad", KERNEL_EXPENSIVE, .run = lrn_grad},
};
KERNEL_TABLE(nn_lrn, rows)
