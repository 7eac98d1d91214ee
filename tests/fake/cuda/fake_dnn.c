/* SPDX-License-Identifier: Apache-2.0 */
/* A cuDNN fake in host memory: direct convolutions, NHWC with filters [k, rows, columns, c]. It
 * rejects inconsistent descriptors, memory that is too small or misaligned, and calls without a
 * stream. Its list of algorithms starts with ones that must not be chosen. */
#include "tests/fake/cuda/fake_dnn.h"

#include <string.h>

enum { WORKSPACE = 2000, GOOD = 6, UNCERTAIN = 5, N_CHOICES = 5 };

struct filter {
	int type, format, k, c, h, w;
};
struct conv {
	int pad[2], stride[2], dilation[2], mode, compute, groups, math;
};
struct taps_args { /* out: the output; the other two are inputs */
	uint64_t x, w, y;
	int64_t n, c, h[2], k, taps[2], out[2], each_c, each_k;
	int64_t pad[2], stride[2], dilation[2];
	int32_t to; /* 0: y, 1: x, 2: w */
	int32_t unused;
};

/* Sums in a fixed order: for each output, all inputs. */
#define TAPS_KERNEL(t)                                                                             \
	DEVICE void taps_add_##t(const struct taps_args *a, C(t) * sum, int64_t x, int64_t w,      \
				 int64_t y)                                                        \
	{                                                                                          \
		if (a->to == 0)                                                                    \
			sum[y] += GET(t, a->x, x) * GET(t, a->w, w);                               \
		else if (a->to == 1)                                                               \
			sum[x] += GET(t, a->y, y) * GET(t, a->w, w);                               \
		else                                                                               \
			sum[w] += GET(t, a->x, x) * GET(t, a->y, y);                               \
	}                                                                                          \
	DEVICE void taps_pixel_##t(const struct taps_args *a, C(t) * sum, int64_t pixel,           \
				   int64_t k)                                                      \
	{                                                                                          \
		const int64_t q = pixel % a->out[1], o = pixel / a->out[1] % a->out[0];            \
		const int64_t image = pixel / a->out[1] / a->out[0];                               \
		for (int64_t i = 0; i < a->taps[0] * a->taps[1] * a->each_c; i++) {                \
			int64_t c = i % a->each_c, l = i / a->each_c % a->taps[1];                 \
			int64_t r = o * a->stride[0] - a->pad[0] +                                 \
				    i / a->each_c / a->taps[1] * a->dilation[0];                   \
			int64_t s = q * a->stride[1] - a->pad[1] + l * a->dilation[1];             \
			if (r < 0 || r >= a->h[0] || s < 0 || s >= a->h[1])                        \
				continue;                                                          \
			int64_t x = ((image * a->h[0] + r) * a->h[1] + s) * a->c +                 \
				    k / a->each_k * a->each_c + c;                                 \
			int64_t w = k * a->taps[0] * a->taps[1] * a->each_c + i;                   \
			taps_add_##t(a, sum, x, w, pixel * a->k + k);                              \
		}                                                                                  \
	}                                                                                          \
	KERNEL(taps_##t, taps_args)                                                                \
	{                                                                                          \
		const int64_t pixels = a.n * a.out[0] * a.out[1];                                  \
		const int64_t made = a.to == 0   ? pixels * a.k                                    \
				     : a.to == 1 ? a.n * a.h[0] * a.h[1] * a.c                     \
						 : a.k * a.taps[0] * a.taps[1] * a.each_c;         \
		C(t) *sum = calloc((size_t)made, sizeof *sum);                                     \
		for (int64_t i = 0; i < pixels * a.k; i++)                                         \
			taps_pixel_##t(&a, sum, i / a.k, i % a.k);                                 \
		for (int64_t i = 0; i < made; i++)                                                 \
			PUT(t, a.to == 0 ? a.y : a.to == 1 ? a.x : a.w, i, sum[i]);                \
		free(sum);                                                                         \
	}
EACH_FLT(TAPS_KERNEL)

static const struct kind {
	int type, compute;
	const char *kernel;
} kinds[] = {
    {DNN_FLOAT, DNN_FLOAT, "taps_f32"},
    {DNN_DOUBLE, DNN_DOUBLE, "taps_f64"},
    {DNN_HALF, DNN_FLOAT, "taps_f16"},
    {DNN_BFLOAT16, DNN_FLOAT, "taps_bf16"},
};

/* ---- descriptors ---- */

static int fake_library_new(void **library)
{
	int result = fake_cuda_answer_here("dnn_library_new");

	if (result)
		return result;
	fake_cuda_note_library(1);
	*library = calloc(1, sizeof(struct library));
	return 0;
}

static int fake_library_free(void *library)
{
	fake_cuda_note_library(-1);
	free(library);
	return 0;
}

static int fake_stream_set(void *library, void *stream)
{
	((struct library *)library)->stream = stream;
	return 0;
}

int fake_dnn_create_descriptor(void **out, size_t bytes)
{
	int result = fake_cuda_answer("dnn_describe");

	if (result)
		return result;
	fake_cuda_note_description(1);
	*out = calloc(1, bytes);
	return 0;
}

int fake_dnn_take_back(void *what)
{
	fake_cuda_note_description(-1);
	free(what);
	return 0;
}

FAKE_DNN_MAKER(tensor)
FAKE_DNN_MAKER(filter)
FAKE_DNN_MAKER(conv)

static int fake_tensor_set(void *tensor, int format, int type, int n, int c, int h, int w)
{
	if (format != DNN_NHWC || n < 1 || c < 1 || h < 1 || w < 1)
		return DNN_BAD_PARAM;
	*(struct tensor *)tensor = (struct tensor){format, type, n, c, h, w};
	return 0;
}

static int fake_filter_set(void *filter, int type, int format, int k, int c, int h, int w)
{
	if (format != DNN_NHWC || k < 1 || c < 1 || h < 1 || w < 1)
		return DNN_BAD_PARAM;
	*(struct filter *)filter = (struct filter){type, format, k, c, h, w};
	return 0;
}

static int fake_conv_set(void *conv, int pad_h, int pad_w, int stride_h, int stride_w,
			 int dilation_h, int dilation_w, int mode, int compute)
{
	if (pad_h < 0 || pad_w < 0 || stride_h < 1 || stride_w < 1 || dilation_h < 1 ||
	    dilation_w < 1)
		return DNN_BAD_PARAM;
	*(struct conv *)conv = (struct conv){
	    {pad_h, pad_w},  {stride_h, stride_w}, {dilation_h, dilation_w}, mode, compute, 1,
	    DNN_DEFAULT_MATH};
	return 0;
}

static int fake_conv_groups(void *conv, int groups)
{
	((struct conv *)conv)->groups = groups;
	return groups < 1 ? DNN_BAD_PARAM : 0;
}

static int fake_conv_math(void *conv, int math)
{
	((struct conv *)conv)->math = math;
	return 0;
}

/* ---- checks ---- */

static const struct kind *kind_of(int type, int compute)
{
	for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (kinds[i].type == type && kinds[i].compute == compute)
			return &kinds[i];
	return NULL;
}

static bool axis_fits(const struct conv *c, int axis, int in, int taps, int out)
{
	int room = in + 2 * c->pad[axis] - ((taps - 1) * c->dilation[axis] + 1);

	return room >= 0 && room / c->stride[axis] + 1 == out;
}

static bool fits(const struct tensor *x, const struct filter *w, const struct conv *c,
		 const struct tensor *y)
{
	return kind_of(x->type, c->compute) && x->type == w->type && x->type == y->type &&
	       c->mode == DNN_CROSS_CORRELATION && x->n == y->n && y->c == w->k &&
	       x->c == w->c * c->groups && w->k % c->groups == 0 &&
	       axis_fits(c, 0, x->h, w->h, y->h) && axis_fits(c, 1, x->w, w->w, y->w);
}

/* First the algorithms that must not be chosen: failing, too much memory, reduced precision,
 * non-deterministic. */
static int choices(const struct tensor *x, const struct filter *w, const struct conv *c,
		   const struct tensor *y, int most, int *found, struct dnn_choice *out)
{
	const struct dnn_choice all[N_CHOICES] = {
	    {.algorithm = 1, .status = DNN_NOT_SUPPORTED, .deterministic = 1, .math = c->math},
	    {.algorithm = 2, .workspace = (size_t)1 << 40, .deterministic = 1, .math = c->math},
	    {.algorithm = 3, .deterministic = 1, .math = DNN_TENSOR_OP_MATH},
	    {.algorithm = UNCERTAIN, .workspace = WORKSPACE, .math = c->math},
	    {.algorithm = GOOD, .workspace = WORKSPACE, .deterministic = 1, .math = c->math},
	};
	int result = fake_cuda_answer_here("dnn_choose");

	if (result)
		return result;
	if (!fits(x, w, c, y))
		return DNN_BAD_PARAM;
	*found = fake_cuda.no_convolutions ? 1 : most < N_CHOICES ? most : N_CHOICES;
	memcpy(out, all, (size_t)*found * sizeof *out);
	return 0;
}

static int fake_choose_forward(void *library, void *x, void *w, void *conv, void *y, int most,
			       int *found, struct dnn_choice *out)
{
	return choices(x, w, conv, y, most, found, out);
}

static int fake_choose_input(void *library, void *w, void *dy, void *conv, void *dx, int most,
			     int *found, struct dnn_choice *out)
{
	return choices(dx, w, conv, dy, most, found, out);
}

static int fake_choose_filter(void *library, void *x, void *dy, void *conv, void *dw, int most,
			      int *found, struct dnn_choice *out)
{
	return choices(x, dw, conv, dy, most, found, out);
}

bool fake_dnn_holds(cuda_ptr at, int type, size_t a, size_t b, size_t c, size_t d)
{
	const size_t size = type == DNN_DOUBLE ? 8 : type == DNN_FLOAT ? 4 : 2;

	return fake_cuda_is_device(at, a * b * c * d * size);
}

bool fake_dnn_is_tensor(cuda_ptr at, const struct tensor *t)
{
	return fake_dnn_holds(at, t->type, (size_t)t->n, (size_t)t->c, (size_t)t->h, (size_t)t->w);
}

static bool is_filter(cuda_ptr at, const struct filter *f)
{
	return fake_dnn_holds(at, f->type, (size_t)f->k, (size_t)f->c, (size_t)f->h, (size_t)f->w);
}

/* ---- sums ---- */

static void one_convolution(struct fake_cuda_counts *c)
{
	c->launches++;
	c->convolutions++;
}

static void one_uncertain(struct fake_cuda_counts *c)
{
	c->uncertain++;
}

struct parts {
	const struct tensor *x, *y;
	const struct filter *w;
	cuda_ptr at_x, at_y, at_w;
	const void *alpha, *beta;
	int algorithm;
	cuda_ptr workspace;
	size_t bytes;
	int to;
};

bool fake_dnn_is_number(const void *at, int type, double wanted)
{
	double is = type == DNN_DOUBLE ? *(const double *)at : (double)*(const float *)at;

	return is >= wanted && is <= wanted;
}

static int run(const struct library *l, const struct conv *c, const struct parts *p)
{
	const struct tensor *x = p->x, *y = p->y;
	const struct filter *w = p->w;
	int result = fake_cuda_answer_here("convolve");

	if (result)
		return result;
	bool tensor_cores = x->type == DNN_HALF || x->type == DNN_BFLOAT16;
	bool known = p->algorithm == GOOD || p->algorithm == UNCERTAIN ||
		     (p->algorithm == 3 && tensor_cores && c->math == DNN_TENSOR_OP_MATH);
	if (!l->stream || !fits(x, w, c, y) || !known ||
	    (p->algorithm != 3 && p->bytes < WORKSPACE) ||
	    !fake_dnn_is_number(p->alpha, x->type, 1) || !fake_dnn_is_number(p->beta, x->type, 0) ||
	    (p->at_x | p->at_y | p->at_w | p->workspace) % 16)
		return DNN_BAD_PARAM;
	const struct taps_args a = {.x = p->at_x,
				    .w = p->at_w,
				    .y = p->at_y,
				    .n = x->n,
				    .c = x->c,
				    .h = {x->h, x->w},
				    .k = w->k,
				    .taps = {w->h, w->w},
				    .out = {y->h, y->w},
				    .each_c = w->c,
				    .each_k = w->k / c->groups,
				    .pad = {c->pad[0], c->pad[1]},
				    .stride = {c->stride[0], c->stride[1]},
				    .dilation = {c->dilation[0], c->dilation[1]},
				    .to = p->to};
	const struct host_kernel *k = host_kernel_find(kind_of(x->type, c->compute)->kernel);
	if (!fake_dnn_is_tensor(p->at_x, x) || !fake_dnn_is_tensor(p->at_y, y) ||
	    !is_filter(p->at_w, w) || (p->bytes && !fake_cuda_is_device(p->workspace, p->bytes)) ||
	    !fake_cuda_put(l->stream, k, &a))
		return DNN_BAD_PARAM;
	fake_cuda_note(one_convolution);
	if (p->algorithm == UNCERTAIN)
		fake_cuda_note(one_uncertain);
	return 0;
}

static int fake_forward(void *library, const void *alpha, void *x_is, cuda_ptr x, void *w_is,
			cuda_ptr w, void *conv, int algorithm, cuda_ptr workspace, size_t bytes,
			const void *beta, void *y_is, cuda_ptr y)
{
	return run(library, conv,
		   &(struct parts){x_is, y_is, w_is, x, y, w, alpha, beta, algorithm, workspace,
				   bytes, 0});
}

static int fake_to_input(void *library, const void *alpha, void *w_is, cuda_ptr w, void *dy_is,
			 cuda_ptr dy, void *conv, int algorithm, cuda_ptr workspace, size_t bytes,
			 const void *beta, void *dx_is, cuda_ptr dx)
{
	return run(library, conv,
		   &(struct parts){dx_is, dy_is, w_is, dx, dy, w, alpha, beta, algorithm, workspace,
				   bytes, 1});
}

static int fake_to_filter(void *library, const void *alpha, void *x_is, cuda_ptr x, void *dy_is,
			  cuda_ptr dy, void *conv, int algorithm, cuda_ptr workspace, size_t bytes,
			  const void *beta, void *dw_is, cuda_ptr dw)
{
	return run(library, conv,
		   &(struct parts){x_is, dy_is, dw_is, x, dy, dw, alpha, beta, algorithm, workspace,
				   bytes, 2});
}

#define ENTRY(field, symbol, args) .field = fake_##field,
const struct dnn_api fake_dnn = {DNN_API(ENTRY)};
