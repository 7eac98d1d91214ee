/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation over neighbouring channels, and its gradient; float. */
#include <math.h>
#include <string.h>

#include "task/kernels/args.h"
#include "task/kernels/kernel_table.h"

struct lrn {
	const float *g, *x, *y;
	float *out;
	int64_t n, radius; /* channels; how many on either side are neighbours */
	float bias, alpha, beta;
};

static int read_attrs(struct kernel_call *c, const struct mu_tensor *x, struct lrn *l,
		      struct mu_err *err)
{
	if (x->dtype != MU_FLOAT)
		return mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for type %s", c->node->op,
			       mu_dtype_name(x->dtype));
	if (x->shape.rank != 4)
		return mu_fail(err, MU_INVALID_ARGUMENT, "in must be 4-dimensional");
	*l = (struct lrn){.x = x->data,
			  .n = x->shape.dim[3],
			  .radius = args_attr_int(c->node, "depth_radius", 5),
			  .bias = args_attr_float(c->node, "bias", 1),
			  .alpha = args_attr_float(c->node, "alpha", 1),
			  .beta = args_attr_float(c->node, "beta", 0.5f)};
	if (l->radius < 0)
		return mu_fail(err, MU_INVALID_ARGUMENT, "depth_radius = %lld must be >= 0",
			       (long long)l->radius);
	if (l->radius > l->n)
		l->radius = l->n;
	return 0;
}

static int64_t low(const struct lrn *l, int64_t ch)
{
	return ch > l->radius ? ch - l->radius : 0;
}

static int64_t high(const struct lrn *l, int64_t ch)
{
	return ch + l->radius < l->n ? ch + l->radius + 1 : l->n;
}

static float norm(const struct lrn *l, const float *x, int64_t ch)
{
	float sum = 0;

	for (int64_t k = low(l, ch); k < high(l, ch); k++)
		sum += x[k] * x[k];
	return l->bias + l->alpha * sum;
}

static void forward(void *arg, int64_t from, int64_t to)
{
	const struct lrn *l = arg;

	for (int64_t i = from; i < to; i++)
		for (int64_t ch = 0; ch < l->n; ch++)
			l->out[i * l->n + ch] =
			    l->x[i * l->n + ch] * powf(norm(l, l->x + i * l->n, ch), -l->beta);
}

static void backward(void *arg, int64_t from, int64_t to)
{
	const struct lrn *l = arg;

	memset(l->out + from * l->n, 0, (size_t)((to - from) * l->n) * sizeof(float));
	for (int64_t i = from; i < to; i++) {
		const float *x = l->x + i * l->n, *y = l->y + i * l->n, *g = l->g + i * l->n;
		float *o = l->out + i * l->n;
		for (int64_t ch = 0; ch < l->n; ch++) {
			float n = norm(l, x, ch);
			float share = -2 * l->alpha * l->beta * y[ch] / n * g[ch];
			for (int64_t k = low(l, ch); k < high(l, ch); k++)
				o[k] += share * x[k];
			o[ch] += powf(n, -l->beta) * g[ch];
		}
	}
}

static int run(struct kernel_call *c, struct lrn *l, const struct mu_shape *shape,
	       void (*body)(void *, int64_t, int64_t), struct mu_err *err)
{
	struct mu_tensor *out;
	int rc = kernel_out(c, 0, MU_FLOAT, shape, &out, err);

	if (rc || !shape->count)
		return rc;
	l->out = out->data;
	kernel_parallel(c, shape->count / l->n, 1 + 2048 / l->n, body, l);
	return 0;
}

static int lrn(struct kernel_call *c, struct mu_err *err)
{
	struct lrn l;
	int rc = read_attrs(c, kernel_in(c, 0), &l, err);

	return rc ? rc : run(c, &l, &kernel_in(c, 0)->shape, forward, err);
}

static int lrn_grad(struct kernel_call *c, struct mu_err *err)
{
	struct lrn l;
	int rc;

	if ((rc = read_attrs(c, kernel_in(c, 1), &l, err)) || (rc = args_same_type(c, 1, 0, err)) ||
	    (rc = args_same_type(c, 1, 2, err)))
		return rc;
	for (unsigned i = 0; i < 3; i += 2)
		if (!mu_shape_eq(&kernel_in(c, i)->shape, &kernel_in(c, 1)->shape))
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "input_grads, input_image, and out_image should have the "
				       "same shape");
	l.g = kernel_in(c, 0)->data;
	l.y = kernel_in(c, 2)->data;
	return run(c, &l, &kernel_in(c, 1)->shape, backward, err);
}

static const struct kernel rows[] = {
    {"LRN", KERNEL_EXPENSIVE, .run = lrn},
    {"LRNGrad", KERNEL_EXPENSIVE, .run = lrn_grad},
};
KERNEL_TABLE(lrn, rows)
