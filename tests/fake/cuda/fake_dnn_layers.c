/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN in host memory, goes on: pools and batch normalisation.  Numbers are gone through one after
 * another; what does not fit together, or comes in another type than the library takes, is refused.
 */
#include "tests/fake/cuda/fake_dnn.h"

struct pool {
	int mode, nan, size[2], pad[2], stride[2];
};
struct slide_args {
	uint64_t x, y;
	int64_t n, c, in[2], out[2];
	struct pool p;
	int32_t unused;
};
/* A window's numbers one after another. */
#define SLIDE_KERNEL(t)                                                                            \
	KERNEL(slide_##t, slide_args)                                                              \
	{                                                                                          \
		for (int64_t i = 0; i < a.n * a.out[0] * a.out[1] * a.c; i++) {                    \
			const int64_t c = i % a.c, q = i / a.c % a.out[1];                         \
			const int64_t o = i / a.c / a.out[1] % a.out[0];                           \
			const int64_t image = i / a.c / a.out[1] / a.out[0];                       \
			C(t) sum = 0, most = 0;                                                    \
			int count = 0;                                                             \
			for (int64_t k = 0; k < a.p.size[0] * a.p.size[1]; k++) {                  \
				int64_t r = o * a.p.stride[0] - a.p.pad[0] + k / a.p.size[1];      \
				int64_t s = q * a.p.stride[1] - a.p.pad[1] + k % a.p.size[1];      \
				if (r < 0 || r >= a.in[0] || s < 0 || s >= a.in[1])                \
					continue;                                                  \
				const C(t) x =                                                     \
				    GET(t, a.x, ((image * a.in[0] + r) * a.in[1] + s) * a.c + c);  \
				most = !count || x > most || x != x ? x : most;                    \
				sum += x;                                                          \
				count++;                                                           \
			}                                                                          \
			PUT(t, a.y, i, a.p.mode == DNN_POOL_MAX ? most : sum / (C(t))count);       \
		}                                                                                  \
	}
EACH_FLT(SLIDE_KERNEL)

/* What each window gives back to each number that it was the average of. */
#define SLIDE_BACK_KERNEL(t)                                                                       \
	KERNEL(slide_back_##t, slide_args)                                                         \
	{                                                                                          \
		const int64_t line = a.in[1] * a.c, all = a.n * a.in[0] * line;                    \
		C(t) *sum = calloc((size_t)all, sizeof *sum);                                      \
		for (int64_t i = 0; i < a.n * a.out[0] * a.out[1] * a.c; i++) {                    \
			const int64_t c = i % a.c, q = i / a.c % a.out[1];                         \
			const int64_t o = i / a.c / a.out[1] % a.out[0];                           \
			const int64_t image = i / a.c / a.out[1] / a.out[0];                       \
			const struct span down = covered(&a.p, 0, o, a.in[0]),                     \
					  across = covered(&a.p, 1, q, a.in[1]);                   \
			const int64_t count = (down.to - down.from) * (across.to - across.from);   \
			for (int64_t r = down.from; r < down.to; r++)                              \
				for (int64_t s = across.from; s < across.to; s++)                  \
					sum[(image * a.in[0] + r) * line + s * a.c + c] +=         \
					    GET(t, a.x, i) / (C(t))count;                          \
		}                                                                                  \
		for (int64_t i = 0; i < all; i++)                                                  \
			PUT(t, a.y, i, sum[i]);                                                    \
		free(sum);                                                                         \
	}

struct span {
	int64_t from, to;
};
static struct span covered(const struct pool *p, int axis, int64_t o, int64_t in)
{
	const int64_t at = o * p->stride[axis] - p->pad[axis], end = at + p->size[axis];

	return (struct span){at < 0 ? 0 : at, end < in ? end : in};
}
EACH_FLT(SLIDE_BACK_KERNEL)

FAKE_DNN_MAKER(pool)

int fake_pool_set(void *pool, int mode, int nan, int size_h, int size_w, int pad_h, int pad_w,
		  int stride_h, int stride_w)
{
	if ((mode != DNN_POOL_MAX && mode != DNN_POOL_AVERAGE_INSIDE) || nan != DNN_PROPAGATE_NAN ||
	    size_h < 1 || size_w < 1 || stride_h < 1 || stride_w < 1 || pad_h < 0 || pad_w < 0 ||
	    pad_h >= size_h || pad_w >= size_w)
		return DNN_BAD_PARAM;
	*(struct pool *)pool =
	    (struct pool){mode, nan, {size_h, size_w}, {pad_h, pad_w}, {stride_h, stride_w}};
	return 0;
}

static bool slides(const struct pool *p, int axis, int in, int out)
{
	return (in + 2 * p->pad[axis] - p->size[axis]) / p->stride[axis] + 1 == out;
}

static void one_pool(struct fake_cuda_counts *c)
{
	c->launches++;
	c->pools++;
}

int fake_pool(void *library, void *pool, const void *alpha, void *x_is, cuda_ptr x,
	      const void *beta, void *y_is, cuda_ptr y)
{
	static const char *const kernels[] = {[DNN_FLOAT] = "slide_f32",
					      [DNN_DOUBLE] = "slide_f64",
					      [DNN_HALF] = "slide_f16",
					      [DNN_BFLOAT16] = "slide_bf16"};
	const struct library *l = library;
	const struct tensor *in = x_is, *out = y_is;
	const struct pool *p = pool;
	int result = fake_cuda_answer_here("pool");

	if (result)
		return result;
	if (!l->stream || in->type != out->type || in->n != out->n || in->c != out->c ||
	    !slides(p, 0, in->h, out->h) || !slides(p, 1, in->w, out->w) ||
	    !fake_dnn_is_number(alpha, in->type, 1) || !fake_dnn_is_number(beta, in->type, 0) ||
	    (x | y) % 16)
		return DNN_BAD_PARAM;
	const struct slide_args a = {.x = x,
				     .y = y,
				     .n = in->n,
				     .c = in->c,
				     .in = {in->h, in->w},
				     .out = {out->h, out->w},
				     .p = *p};
	if (!fake_dnn_is_tensor(x, in) || !fake_dnn_is_tensor(y, out) ||
	    !fake_cuda_put(l->stream, host_kernel_find(kernels[in->type]), &a))
		return DNN_BAD_PARAM;
	fake_cuda_note(one_pool);
	return 0;
}

int fake_pool_back(void *library, void *pool, const void *alpha, void *y_is, cuda_ptr y,
		   void *dy_is, cuda_ptr dy, void *x_is, cuda_ptr x, const void *beta, void *dx_is,
		   cuda_ptr dx)
{
	static const char *const kernels[] = {[DNN_FLOAT] = "slide_back_f32",
					      [DNN_DOUBLE] = "slide_back_f64",
					      [DNN_HALF] = "slide_back_f16",
					      [DNN_BFLOAT16] = "slide_back_bf16"};
	const struct library *l = library;
	const struct tensor *in = dx_is, *out = dy_is;
	const struct pool *p = pool;
	int result = fake_cuda_answer_here("pool_back");

	if (result)
		return result;
	if (!l->stream || p->mode != DNN_POOL_AVERAGE_INSIDE || in->type != out->type ||
	    in->n != out->n || in->c != out->c || !slides(p, 0, in->h, out->h) ||
	    !slides(p, 1, in->w, out->w) || !fake_dnn_is_number(alpha, in->type, 1) ||
	    !fake_dnn_is_number(beta, in->type, 0) || !fake_dnn_is_tensor(y, y_is) ||
	    !fake_dnn_is_tensor(dy, out) || !fake_dnn_is_tensor(x, x_is) ||
	    !fake_dnn_is_tensor(dx, in))
		return DNN_BAD_PARAM;
	const struct slide_args a = {.x = dy,
				     .y = dx,
				     .n = in->n,
				     .c = in->c,
				     .in = {in->h, in->w},
				     .out = {out->h, out->w},
				     .p = *p};
	if (!fake_cuda_put(l->stream, host_kernel_find(kernels[in->type]), &a))
		return DNN_BAD_PARAM;
	fake_cuda_note(one_pool);
	return 0;
}

/* ---- batch normalisation ---- */

struct normed_args {
	uint64_t x, y, scale, offset, mean, variance, own_mean, own_inverse, dy, dx, dscale,
	    doffset;
	int64_t pixels, channels;
	double epsilon, factor;
};
#define F(address) PTR(float, address)

static double mixed(double factor, double old, double new)
{
	return factor < 1 ? old * (1 - factor) + new *factor : new;
}

/* Statistics in two goes, so that nothing is lost between large numbers. */
KERNEL(normed, normed_args)
{
	for (int64_t c = 0; c < a.channels; c++) {
		double n = (double)a.pixels, mean = 0, variance = 0;
		for (int64_t i = 0; i < a.pixels; i++)
			mean += (double)F(a.x)[i * a.channels + c] / n;
		for (int64_t i = 0; i < a.pixels; i++) {
			const double away = (double)F(a.x)[i * a.channels + c] - mean;
			variance += away * away / n;
		}
		const double inverse = 1 / sqrt(variance + a.epsilon);
		for (int64_t i = c; i < a.pixels * a.channels; i += a.channels)
			F(a.y)
		[i] = (float)(((double)F(a.x)[i] - mean) * inverse * (double)F(a.scale)[c] +
			      (double)F(a.offset)[c]);
		F(a.mean)[c] = (float)mixed(a.factor, (double)F(a.mean)[c], mean);
		F(a.variance)
		[c] = (float)mixed(a.factor, (double)F(a.variance)[c], variance * n / (n - 1));
		F(a.own_mean)[c] = (float)mean;
		F(a.own_inverse)[c] = (float)inverse;
	}
}

KERNEL(normed_back, normed_args)
{
	for (int64_t c = 0; c < a.channels; c++) {
		const double n = (double)a.pixels, mean = (double)F(a.own_mean)[c];
		const double inverse = (double)F(a.own_inverse)[c];
		double sum = 0, product = 0;
		for (int64_t i = c; i < a.pixels * a.channels; i += a.channels) {
			sum += (double)F(a.dy)[i];
			product += (double)F(a.dy)[i] * ((double)F(a.x)[i] - mean) * inverse;
		}
		for (int64_t i = c; i < a.pixels * a.channels; i += a.channels)
			F(a.dx)
		[i] = (float)((double)F(a.scale)[c] * inverse *
			      ((double)F(a.dy)[i] - sum / n -
			       ((double)F(a.x)[i] - mean) * inverse * product / n));
		F(a.dscale)[c] = (float)product;
		F(a.doffset)[c] = (float)sum;
	}
}
#undef F

static void one_norm(struct fake_cuda_counts *c)
{
	c->launches++;
	c->norms++;
}

int fake_norm_derive(void *channels, void *image, int mode)
{
	const struct tensor *x = image;

	if (mode != DNN_NORM_SPATIAL || !x->n)
		return DNN_BAD_PARAM;
	*(struct tensor *)channels = (struct tensor){
	    x->format, x->type == DNN_DOUBLE ? DNN_DOUBLE : DNN_FLOAT, 1, x->c, 1, 1};
	return 0;
}

/* Images of one shape and type, what is one element a channel of another. */
static bool norm_fits(const struct tensor *x, const struct tensor *y, const struct tensor *z,
		      const struct tensor *channels, int mode, double epsilon)
{
	const struct tensor *other[] = {y, z};

	for (unsigned i = 0; i < 2; i++)
		if (other[i]->type != x->type || other[i]->n != x->n || other[i]->c != x->c ||
		    other[i]->h != x->h || other[i]->w != x->w)
			return false;
	return mode == DNN_NORM_SPATIAL && x->type == DNN_FLOAT && channels->type == DNN_FLOAT &&
	       channels->c == x->c && channels->n == 1 && channels->h == 1 && channels->w == 1 &&
	       epsilon >= 0;
}

static bool all_there(const cuda_ptr *at, unsigned n, const struct tensor *t)
{
	for (unsigned i = 0; i < n; i++)
		if (!fake_dnn_is_tensor(at[i], t))
			return false;
	return true;
}

static int put_normed(const char *call, const struct library *l, const char *kernel,
		      const struct normed_args *a)
{
	int result = fake_cuda_answer_here(call);

	if (result)
		return result;
	if (!l->stream || !fake_cuda_put(l->stream, host_kernel_find(kernel), a))
		return DNN_BAD_PARAM;
	fake_cuda_note(one_norm);
	return 0;
}

int fake_norm_train(void *library, int mode, const void *alpha, const void *beta, void *x_is,
		    cuda_ptr x, void *y_is, cuda_ptr y, void *channels, cuda_ptr scale,
		    cuda_ptr offset, double factor, cuda_ptr mean, cuda_ptr variance,
		    double epsilon, cuda_ptr own_mean, cuda_ptr own_inverse)
{
	const struct tensor *t = x_is;
	const cuda_ptr images[] = {x, y};
	const cuda_ptr vectors[] = {scale, offset, mean, variance, own_mean, own_inverse};
	const struct normed_args a = {.x = x,
				      .y = y,
				      .scale = scale,
				      .offset = offset,
				      .mean = mean,
				      .variance = variance,
				      .own_mean = own_mean,
				      .own_inverse = own_inverse,
				      .pixels = (int64_t)t->n * t->h * t->w,
				      .channels = t->c,
				      .epsilon = epsilon,
				      .factor = factor};

	if (!norm_fits(t, y_is, t, channels, mode, epsilon) || !all_there(images, 2, t) ||
	    !all_there(vectors, 6, channels) || !fake_dnn_is_number(alpha, t->type, 1) ||
	    !fake_dnn_is_number(beta, t->type, 0) || !(factor >= 0 && factor <= 1))
		return DNN_BAD_PARAM;
	return put_normed("norm_train", library, "normed", &a);
}

int fake_norm_back(void *library, int mode, const void *alpha, const void *beta,
		   const void *alpha_sums, const void *beta_sums, void *x_is, cuda_ptr x,
		   void *dy_is, cuda_ptr dy, void *dx_is, cuda_ptr dx, void *channels,
		   cuda_ptr scale, cuda_ptr dscale, cuda_ptr doffset, double epsilon,
		   cuda_ptr own_mean, cuda_ptr own_inverse)
{
	const struct tensor *t = x_is;
	const cuda_ptr images[] = {x, dy, dx};
	const cuda_ptr vectors[] = {scale, dscale, doffset, own_mean, own_inverse};
	const struct normed_args a = {.x = x,
				      .dy = dy,
				      .dx = dx,
				      .scale = scale,
				      .dscale = dscale,
				      .doffset = doffset,
				      .own_mean = own_mean,
				      .own_inverse = own_inverse,
				      .pixels = (int64_t)t->n * t->h * t->w,
				      .channels = t->c,
				      .epsilon = epsilon};

	if (!norm_fits(t, dy_is, dx_is, channels, mode, epsilon) || !all_there(images, 3, t) ||
	    !all_there(vectors, 5, channels) || !fake_dnn_is_number(alpha, t->type, 1) ||
	    !fake_dnn_is_number(beta, t->type, 0) || !fake_dnn_is_number(alpha_sums, t->type, 1) ||
	    !fake_dnn_is_number(beta_sums, t->type, 0))
		return DNN_BAD_PARAM;
	return put_normed("norm_back", library, "normed_back", &a);
}
