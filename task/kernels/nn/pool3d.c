/* SPDX-License-Identifier: Apache-2.0 */
/* Max and average pooling in three dimensions, and their gradients. As in TensorFlow, the gradient
 * of a maximum goes to all elements that equal it. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/nn/checks.h"

struct pool3d {
	struct volume v;
	bool average;
	const char *in, *top, *grad; /* top: what the pool gave */
	char *out;
};

/* An output position. */
struct place {
	const struct pool3d *p;
	int64_t n;   /* taps seen so far */
	size_t at;   /* bytes, in what the pool gives */
	char *share; /* of an average's gradient, for each tap */
};

static void pool3d_divide(const struct volume *v, char *to, const char *from, int64_t n)
{
	float f = (float)n;
	double d = (double)n;

	loops->binary[BIN_RealDiv][v->type](to, from, v->type == MU_FLOAT ? (void *)&f : (void *)&d,
					    v->channels, RIGHT_SCALAR);
}

static void pool3d_join(void *arg, int64_t tap, int64_t channels_at)
{
	struct place *x = arg;
	const struct volume *v = &x->p->v;
	const char *from = x->p->in + (size_t)channels_at * v->size;
	char *to = x->p->out + x->at;

	if (x->n++)
		loops->binary[x->p->average ? BIN_AddV2 : BIN_Maximum][v->type](
		    to, to, from, v->channels, BOTH_RUN);
	else
		memcpy(to, from, (size_t)v->channels * v->size);
}

static void pool3d_forward(void *arg, int64_t from, int64_t to)
{
	const struct pool3d *p = arg;
	size_t pixel = (size_t)p->v.channels * p->v.size;

	for (int64_t i = from; i < to; i++) {
		struct place x = {.p = p, .at = (size_t)i * pixel};
		volume_taps(&p->v, i, pool3d_join, &x);
		if (!x.n)
			memset(p->out + x.at, 0, pixel);
		else if (p->average)
			pool3d_divide(&p->v, p->out + x.at, p->out + x.at, x.n);
	}
}

int check_pool3d(const struct kernel_call *c, struct volume *v, struct mu_shape *shape,
		 struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	MU_RETURN_IF_ERROR(volume_set(v, c, in->dtype, &in->shape, NULL, err));
	return volume_out_shape(v, v->channels, shape, err);
}

static int pool3d_run(struct kernel_call *c, bool average, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct pool3d p = {.average = average, .in = in->data};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(check_pool3d(c, &p.v, &shape, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	if (!shape.count)
		return 0;
	p.out = out->data;
	int64_t n = shape.count / p.v.channels;
	kernel_parallel(c, n, 1 + 16384 * n / (in->shape.count + 1), pool3d_forward, &p);
	return 0;
}

KERNEL_RUN(avg_pool3d, pool3d_run(c, true, err))
KERNEL_RUN(max_pool3d, pool3d_run(c, false, err))

/* ---- gradients ---- */

static void pool3d_count(void *arg, int64_t tap, int64_t channels_at)
{
	((struct place *)arg)->n++;
}

static void give_share(void *arg, int64_t tap, int64_t channels_at)
{
	const struct place *x = arg;
	const struct volume *v = &x->p->v;
	char *to = x->p->out + (size_t)channels_at * v->size;

	loops->binary[BIN_AddV2][v->type](to, to, x->share, v->channels, BOTH_RUN);
}

#define GIVE_LARGEST(T)                                                                            \
	static void give_largest_##T(void *arg, int64_t tap, int64_t channels_at)                  \
	{                                                                                          \
		const struct place *x = arg;                                                       \
		const T *in = (const T *)x->p->in + channels_at;                                   \
		const T *top = (const T *)(x->p->top + x->at);                                     \
		const T *grad = (const T *)(x->p->grad + x->at);                                   \
		T *out = (T *)x->p->out + channels_at;                                             \
		for (int64_t i = 0; i < x->p->v.channels; i++)                                     \
			out[i] += in[i] == top[i] ? grad[i] : 0;                                   \
	}
GIVE_LARGEST(float)
GIVE_LARGEST(double)

/* Images go to different threads. */
static void pool3d_backward(void *arg, int64_t from, int64_t to)
{
	const struct pool3d *p = arg;
	const struct volume *v = &p->v;
	int64_t each = v->axis[0].out * v->axis[1].out * v->axis[2].out;
	size_t pixel = (size_t)v->channels * v->size;
	MU_AUTO_FREE char *share = mu_xmalloc(pixel + 1);

	for (int64_t i = from * each; i < to * each; i++) {
		struct place x = {.p = p, .at = (size_t)i * pixel, .share = share};
		if (p->average) {
			volume_taps(v, i, pool3d_count, &x);
			pool3d_divide(v, share, p->grad + x.at, x.n ? x.n : 1);
			volume_taps(v, i, give_share, &x);
		} else {
			volume_taps(v, i,
				    v->type == MU_FLOAT ? give_largest_float : give_largest_double,
				    &x);
		}
	}
}

/* Input `at` must be what the gradient of the pool's output is. */
static int check_back(const struct kernel_call *c, const struct volume *v, unsigned at,
		      struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, at);
	struct mu_shape want;

	MU_RETURN_IF_ERROR(volume_out_shape(v, v->channels, &want, err));
	if (mu_shape_eq(&want, &grad->shape))
		return 0;
	return mu_invalid(err, "Expected grad shape to be %s, but got %s", mu_shape_str(&want),
			  mu_shape_str(&grad->shape));
}

int check_max_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 0), *top = kernel_in(c, 1);

	MU_RETURN_IF_ERROR(volume_set(v, c, t->dtype, &t->shape, NULL, err));
	if (!mu_shape_eq(&top->shape, &kernel_in(c, 2)->shape))
		return mu_invalid(err, "orig_output is %s, its gradient %s",
				  mu_shape_str(&top->shape), mu_shape_str(&kernel_in(c, 2)->shape));
	*in = t->shape;
	return check_back(c, v, 2, err);
}

int check_avg_pool3d_grad(const struct kernel_call *c, struct volume *v, struct mu_shape *in,
			  struct mu_err *err)
{
	MU_RETURN_IF_ERROR(args_shape(c, 0, in, err));
	MU_RETURN_IF_ERROR(volume_set(v, c, kernel_in(c, 1)->dtype, in, NULL, err));
	return check_back(c, v, 1, err);
}

/* Into output 0, of the shape of the pool's input; input `at` is the gradient. */
static int run_backward(struct kernel_call *c, struct pool3d *p, const struct mu_shape *in,
			unsigned at, struct mu_err *err)
{
	const struct mu_tensor *grad = kernel_in(c, at);
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(kernel_out(c, 0, p->v.type, in, &out, err));
	if (!in->count)
		return 0;
	memset(out->data, 0, (size_t)in->count * p->v.size);
	p->grad = grad->data;
	p->out = out->data;
	if (grad->shape.count)
		kernel_parallel(c, p->v.batch, 1 + 16384 * p->v.batch / in->count, pool3d_backward,
				p);
	return 0;
}

static int max_pool3d_grad(struct kernel_call *c, struct mu_err *err)
{
	struct pool3d p = {.in = kernel_in(c, 0)->data, .top = kernel_in(c, 1)->data};
	struct mu_shape in;

	MU_RETURN_IF_ERROR(check_max_pool3d_grad(c, &p.v, &in, err));
	return run_backward(c, &p, &in, 2, err);
}

static int avg_pool3d_grad(struct kernel_call *c, struct mu_err *err)
{
	struct pool3d p = {.average = true};
	struct mu_shape in;

	MU_RETURN_IF_ERROR(check_avg_pool3d_grad(c, &p.v, &in, err));
	return run_backward(c, &p, &in, 1, err);
}

#define ROW(op, fn)                                                                                \
	{                                                                                          \
		op, KERNEL_EXPENSIVE, .run = fn, .prepare = volume_prepare                         \
	}
static const struct kernel rows[] = {
    ROW("AvgPool3D", avg_pool3d),
    ROW("AvgPool3DGrad", avg_pool3d_grad),
    ROW("MaxPool3D", max_pool3d),
    ROW("MaxPool3DGrad", max_pool3d_grad),
};
KERNEL_TABLE(nn_pool3d, rows)
