/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation and its gradient: float.  NCHW is transposed to NHWC and back.
 *
 * The tensor is a matrix of pixels by channels.  Both ops sum over the pixels of each channel and
 * then compute y = x * a + b for each channel.  Loops go over rows in order, with channels as the
 * inner loop.  Sums are in double: an image batch has millions of pixels. */
#include <math.h>
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/transpose_2d.h"
#include "task/kernels/nn/checks.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum { X, SCALE, OFFSET, MEAN, VARIANCE };
enum { GRAD_Y, GRAD_X, GRAD_SCALE, GRAD_MEAN, GRAD_VARIANCE };
enum { PIECE_ELEMENTS = 16384 }; /* elements of a thread's piece */

struct rows {
	const float *x, *g;
	float *y;
	int64_t pixels, channels, pieces;
	const float *mean;      /* subtracted from x */
	double *sums;           /* [pieces][2][channels] */
	const float *a, *b, *k; /* y = g * a + (x - mean) * k + b; a or k NULL: without its term */
};

static void sum_rows(void *arg, int64_t from, int64_t to)
{
	const struct rows *r = arg;
	const int64_t n = r->channels;

	for (int64_t piece = from; piece < to; piece++) {
		double *s = r->sums + piece * 2 * n, *t = s + n;
		int64_t end = (piece + 1) * r->pixels / r->pieces;
		for (int64_t i = piece * r->pixels / r->pieces; i < end; i++) {
			const float *x = r->x + i * n, *g = r->g + i * n;
			for (int64_t ch = 0; ch < n; ch++) {
				s[ch] += (double)g[ch];
				t[ch] += (double)g[ch] * (double)(x[ch] - r->mean[ch]);
			}
		}
	}
}

/* sums[0][ch] = sum of g, sums[1][ch] = sum of g * (x - mean). */
static int sum_channels(struct kernel_call *c, struct rows *r, struct mu_tensor *memory,
			struct mu_err *err)
{
	int64_t threads = c->runtime ? thread_pool_size(c->runtime->pool) : 1;
	int64_t max_pieces = r->pixels * r->channels / PIECE_ELEMENTS + 1;

	r->pieces = threads < max_pieces ? threads : max_pieces;
	struct mu_shape shape = mu_shape_vec(r->pieces * 2 * r->channels);

	MU_RETURN_IF_ERROR(mu_tensor_new(memory, MU_DOUBLE, &shape, err));
	r->sums = memory->data;
	memset(r->sums, 0, (size_t)shape.count * sizeof(double));
	kernel_parallel(c, r->pieces, 1, sum_rows, r);
	for (int64_t piece = 1; piece < r->pieces; piece++)
		for (int64_t i = 0; i < 2 * r->channels; i++)
			r->sums[i] += r->sums[piece * 2 * r->channels + i];
	return 0;
}

static void map_rows(void *arg, int64_t from, int64_t to)
{
	const struct rows *r = arg;
	const int64_t n = r->channels;

	for (int64_t i = from; i < to; i++) {
		const float *x = r->x + i * n, *g = r->g + i * n;
		float *y = r->y + i * n;
		if (!r->a)
			for (int64_t ch = 0; ch < n; ch++)
				y[ch] = (x[ch] - r->mean[ch]) * r->k[ch] + r->b[ch];
		else if (!r->k)
			for (int64_t ch = 0; ch < n; ch++)
				y[ch] = g[ch] * r->a[ch] + r->b[ch];
		else
			for (int64_t ch = 0; ch < n; ch++)
				y[ch] =
				    g[ch] * r->a[ch] + (x[ch] - r->mean[ch]) * r->k[ch] + r->b[ch];
	}
}

static void map(struct kernel_call *c, struct rows *r)
{
	kernel_parallel(c, r->pixels, 1 + PIECE_ELEMENTS / (r->channels + 1), map_rows, r);
}

/* Checks that inputs 0 to `last` are float, that input x has four dimensions, and that the inputs
 * from `first` on have one element a channel.  Mean and variance may be empty if allow_empty. */
static int batch_norm_check(const struct kernel_call *c, unsigned x, unsigned first, unsigned last,
			    bool allow_empty, struct mu_err *err)
{
	const struct mu_shape *s = &kernel_in(c, x)->shape;

	for (unsigned i = 0; i <= last; i++)
		if (kernel_in(c, i)->dtype != MU_FLOAT)
			return args_no_kernel(c, kernel_in(c, i)->dtype, err);
	if (s->rank != 4)
		return mu_invalid(err, "input must be 4-dimensional: %s", mu_shape_str(s));
	for (unsigned i = first; i <= last; i++) {
		const struct mu_shape *v = &kernel_in(c, i)->shape;
		if (v->count != s->dim[3] && !(allow_empty && i >= MEAN && !v->count))
			return mu_invalid(err,
					  "input %u must have the same number of elements as the "
					  "channels of x, got %lld and %lld",
					  i, (long long)v->count, (long long)s->dim[3]);
	}
	return 0;
}

static struct norm_sizes batch_norm_sizes_of(const struct kernel_call *c, const struct mu_shape *x)
{
	return (struct norm_sizes){.channels = x->dim[3],
				   .pixels = x->dim[3] ? x->count / x->dim[3] : 0,
				   .training = args_attr_bool(c->node, "is_training", true)};
}

int check_batch_norm(const struct kernel_call *c, struct norm_sizes *s, struct mu_err *err)
{
	bool training = args_attr_bool(c->node, "is_training", true);
	bool needs_statistics =
	    !training || args_attr_float(c->node, "exponential_avg_factor", 1) != 1;

	MU_RETURN_IF_ERROR(batch_norm_check(c, X, SCALE, VARIANCE, !needs_statistics, err));
	*s = batch_norm_sizes_of(c, &kernel_in(c, X)->shape);
	return 0;
}

int check_batch_norm_grad(const struct kernel_call *c, struct norm_sizes *s, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, GRAD_Y), *x = kernel_in(c, GRAD_X);

	MU_RETURN_IF_ERROR(batch_norm_check(c, GRAD_X, GRAD_SCALE, GRAD_VARIANCE, false, err));
	if (!mu_shape_eq(&g->shape, &x->shape))
		return mu_invalid(err,
				  "x and y_backprop must have same shape, but x has shape %s and "
				  "y_backprop has shape %s",
				  mu_shape_str(&x->shape), mu_shape_str(&g->shape));
	*s = batch_norm_sizes_of(c, &x->shape);
	return 0;
}

static float epsilon_of(const struct kernel_call *c)
{
	return args_attr_float(c->node, "epsilon", 1e-4f);
}

static struct rows batch_norm_rows_of(const struct norm_sizes *s, const struct mu_tensor *x,
				      const struct mu_tensor *g, float *y)
{
	return (struct rows){
	    .x = x->data, .g = g->data, .y = y, .channels = s->channels, .pixels = s->pixels};
}

/* Creates outputs [from, to): vectors of n elements. */
static int vector_outputs(struct kernel_call *c, unsigned from, unsigned to, int64_t n,
			  struct mu_tensor **out, struct mu_err *err)
{
	for (unsigned i = from; i < to; i++) {
		MU_RETURN_IF_ERROR(kernel_out_vec(c, i, MU_FLOAT, n, &out[i], err));
	}
	return 0;
}

/* Creates the outputs from `from` on, which CPU kernels do not use, such as the third reserve space
 * of V3: scalar zeros if n is negative, else vectors of n elements. */
static int unused_outputs(struct kernel_call *c, unsigned from, int64_t n, struct mu_err *err)
{
	for (; from < c->n_out; from++) {
		struct mu_shape shape = n < 0 ? mu_shape_scalar() : mu_shape_vec(n);
		struct mu_tensor *t;

		MU_RETURN_IF_ERROR(kernel_out(c, from, MU_FLOAT, &shape, &t, err));
		if (shape.count)
			*MU_DATA(float, t) = 0;
	}
	return 0;
}

/* Writes mean and variance of the batch to outputs 3 and 4.  Outputs 1 and 2 are the running
 * statistics: the inputs, mixed with those of the batch. */
static int batch_statistics(struct kernel_call *c, struct rows *r, struct mu_tensor **out,
			    struct mu_err *err)
{
	float factor = args_attr_float(c->node, "exponential_avg_factor", 1);
	const struct mu_tensor *old_mean = kernel_in(c, MEAN), *old_var = kernel_in(c, VARIANCE);
	float *mean = out[3]->data, *var = out[4]->data;
	double n = (double)r->pixels;
	MU_AUTO_TENSOR memory = {0};
	/* Deviations are from the first pixel: for values much larger than their spread, the
	 * variance would otherwise be lost in rounding. */
	r->mean = r->x;

	MU_RETURN_IF_ERROR(r->pixels ? sum_channels(c, r, &memory, err) : 0);
	for (int64_t ch = 0; ch < r->channels; ch++) {
		if (!r->pixels) {
			mean[ch] = var[ch] = NAN;
		} else {
			mean[ch] = (float)(r->sums[ch] / n);
			/* sum x (x - p) - m sum (x - p), from sum x and sum x (x - p) */
			double m = r->sums[ch] / n, p = (double)r->x[ch];
			double v = (r->sums[r->channels + ch] - m * (r->sums[ch] - n * p)) / n;
			var[ch] = (float)(v > 0 ? v : 0);
		}
		float bessel = (float)(n / (n > 1 ? n - 1 : 1));
		bool mix = factor != 1;
		MU_DATA(float, out[1])
		[ch] = mix ? (1 - factor) * MU_DATA(float, old_mean)[ch] + factor * mean[ch]
			   : mean[ch];
		MU_DATA(float, out[2])
		[ch] = mix ? (1 - factor) * MU_DATA(float, old_var)[ch] + factor * var[ch] * bessel
			   : var[ch] * bessel;
		if (!r->pixels) /* the gradient of an empty batch is zero, not NaN */
			mean[ch] = var[ch] = 0;
	}
	return 0;
}

static int batch_norm_forward(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *x = kernel_in(c, X);
	MU_AUTO_TENSOR scale = {0};
	struct norm_sizes s;
	struct mu_tensor *out[5];
	int rc = 0;

	MU_RETURN_IF_ERROR(check_batch_norm(c, &s, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &x->shape, &out[0], err));
	MU_RETURN_IF_ERROR(vector_outputs(c, 1, 5, x->shape.dim[3], out, err));
	MU_RETURN_IF_ERROR(unused_outputs(c, 5, -1, err));
	struct rows r = batch_norm_rows_of(&s, x, x, out[0]->data);
	size_t bytes = (size_t)r.channels * sizeof(float);
	struct mu_shape scale_shape = mu_shape_vec(r.channels);
	MU_RETURN_IF_ERROR(mu_tensor_new(&scale, MU_FLOAT, &scale_shape, err));
	if (s.training) {
		rc = batch_statistics(c, &r, out, err);
	} else if (bytes) {
		memcpy(out[1]->data, kernel_in(c, MEAN)->data, bytes);
		memcpy(out[2]->data, kernel_in(c, VARIANCE)->data, bytes);
		memset(out[3]->data, 0, bytes);
		memset(out[4]->data, 0, bytes);
	}
	const float *var = s.training ? out[4]->data : kernel_in(c, VARIANCE)->data;
	for (int64_t ch = 0; !rc && ch < r.channels; ch++)
		MU_DATA(float, &scale)
	[ch] = MU_DATA(float, kernel_in(c, SCALE))[ch] / sqrtf(var[ch] + epsilon_of(c));
	r.mean = s.training ? out[3]->data : kernel_in(c, MEAN)->data;
	r.k = scale.data;
	r.b = kernel_in(c, OFFSET)->data;
	if (!rc)
		map(c, &r);
	return rc;
}

static int batch_norm_backward(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *g = kernel_in(c, GRAD_Y), *x = kernel_in(c, GRAD_X);
	MU_AUTO_TENSOR factors = {0}, memory = {0};
	struct mu_tensor *out[3];
	struct norm_sizes s;

	MU_RETURN_IF_ERROR(check_batch_norm_grad(c, &s, err));
	struct rows r = batch_norm_rows_of(&s, x, g, NULL);
	struct mu_shape factors_shape = mu_shape_vec(3 * r.channels);
	r.mean = kernel_in(c, GRAD_MEAN)->data;
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &x->shape, &out[0], err));
	MU_RETURN_IF_ERROR(vector_outputs(c, 1, 3, r.channels, out, err));
	MU_RETURN_IF_ERROR(unused_outputs(c, 3, 0, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&factors, MU_FLOAT, &factors_shape, err));
	MU_RETURN_IF_ERROR(sum_channels(c, &r, &memory, err));
	float *a = factors.data, *b = a + r.channels, *k = b + r.channels, eps = epsilon_of(c);
	double n = r.pixels ? (double)r.pixels : 1;
	for (int64_t ch = 0; ch < r.channels; ch++) {
		double inv =
		    1 / sqrt((double)MU_DATA(float, kernel_in(c, GRAD_VARIANCE))[ch] + (double)eps);
		double dy = r.sums[ch], dyx = r.sums[r.channels + ch];
		double scale = (double)MU_DATA(float, kernel_in(c, GRAD_SCALE))[ch] * inv;
		double slope = s.training ? -scale * inv * inv * dyx / n : 0;
		MU_DATA(float, out[1])[ch] = (float)(dyx * inv);
		MU_DATA(float, out[2])[ch] = (float)dy;
		/* dx = scale * (dy - mean dy - (x - mean) inv^2 mean(dy (x - mean))) */
		a[ch] = (float)scale;
		k[ch] = (float)slope;
		b[ch] = s.training ? (float)(-scale * dy / n) : 0;
	}
	r.y = out[0]->data;
	r.a = a;
	r.b = b;
	r.k = s.training ? k : NULL;
	map(c, &r);
	return 0;
}

/* ---- NCHW, which Keras's LayerNormalization uses ---- */

struct mu_shape norm_transposed_shape(const struct mu_shape *s, bool to_nhwc)
{
	const int64_t *d = s->dim;
	struct mu_shape out = *s;

	if (to_nhwc)
		memcpy(&out.dim[1], (int64_t[]){d[2], d[3], d[1]}, 3 * sizeof *d);
	else
		memcpy(&out.dim[1], (int64_t[]){d[3], d[1], d[2]}, 3 * sizeof *d);
	return out;
}

static int transpose_format(struct kernel_call *c, const struct mu_tensor *t, bool to_nhwc,
			    struct mu_tensor *out, struct mu_err *err)
{
	const int64_t *d = t->shape.dim;
	int64_t channels = to_nhwc ? d[1] : d[3], pixels = to_nhwc ? d[2] * d[3] : d[1] * d[2];
	int64_t m = to_nhwc ? pixels : channels, n = to_nhwc ? channels : pixels;
	struct mu_shape shape = norm_transposed_shape(&t->shape, to_nhwc);

	MU_RETURN_IF_ERROR(mu_tensor_new(out, t->dtype, &shape, err));
	for (int64_t i = 0; t->shape.count && i < d[0]; i++)
		transpose_2d(sizeof(float), MU_DATA(float, out) + i * m * n, n,
			     MU_DATA(float, t) + i * m * n, m, m, n);
	return 0;
}

static int run_images(struct kernel_call *c, unsigned n, kernel_fn *run,
		      norm_transpose_fn *transpose, struct mu_err *err)
{
	const char *format = args_attr_string(c->node, "data_format", "NHWC");
	struct mu_tensor originals[2], result;
	unsigned n_transposed = 0;
	int rc = 0;

	if (strcmp(format, "NHWC") == 0 || strcmp(format, "NDHWC") == 0)
		return run(c, err);
	if (strcmp(format, "NCHW") != 0 && strcmp(format, "NCDHW") != 0)
		rc = mu_fail(err, MU_UNIMPLEMENTED, "%s has no kernel for the format %s",
			     c->node->op, format);

	for (; !rc && n_transposed < n; n_transposed++) {
		struct mu_tensor *in = &c->in[n_transposed].tensor;
		if ((rc = args_rank(c, n_transposed, 4, err)) ||
		    (rc = transpose(c, in, true, &result, err)))
			break;
		originals[n_transposed] = *in;
		*in = result;
	}
	if (!rc && !(rc = run(c, err)) &&
	    !(rc = transpose(c, &c->out[0].tensor, false, &result, err)))
		kernel_out_take(c, 0, result);
	while (n_transposed--) {
		mu_tensor_unref(&c->in[n_transposed].tensor);
		c->in[n_transposed].tensor = originals[n_transposed];
	}
	return rc;
}

/* Computes a 5-D tensor as a 4-D one, with two of its spatial dimensions joined. */
int norm_run(struct kernel_call *c, unsigned n, kernel_fn *run, norm_transpose_fn *transpose,
	     struct mu_err *err)
{
	const bool channels_last =
	    strchr(args_attr_string(c->node, "data_format", "NHWC"), 'C')[1] == 0;
	struct mu_tensor originals[2], out;
	unsigned n_joined = 0;
	int rc = 0;

	if (kernel_in(c, 0)->shape.rank != 5)
		return run_images(c, n, run, transpose, err);
	for (; !rc && n_joined < n && !(rc = args_rank(c, n_joined, 5, err)); n_joined++) {
		struct mu_tensor *in = &c->in[n_joined].tensor;
		const int64_t *d = in->shape.dim;
		struct mu_shape image = {.rank = 4, .count = in->shape.count};
		memcpy(image.dim,
		       channels_last ? (int64_t[]){d[0], d[1], d[2] * d[3], d[4]}
				     : (int64_t[]){d[0], d[1], d[2], d[3] * d[4]},
		       4 * sizeof *d);
		originals[n_joined] = *in;
		*in = mu_tensor_reshaped(in, &image);
	}
	if (!rc && !(rc = run_images(c, n, run, transpose, err))) {
		out = mu_tensor_reshaped(&c->out[0].tensor, &originals[0].shape);
		kernel_out_take(c, 0, out);
	}
	while (n_joined--) {
		mu_tensor_unref(&c->in[n_joined].tensor);
		c->in[n_joined].tensor = originals[n_joined];
	}
	return rc;
}

KERNEL_RUN(batch_norm, norm_run(c, 1, batch_norm_forward, transpose_format, err))
KERNEL_RUN(batch_norm_grad, norm_run(c, 2, batch_norm_backward, transpose_format, err))

static const struct kernel rows[] = {
    {"FusedBatchNorm FusedBatchNormV2 FusedBatchNormV3", KERNEL_EXPENSIVE, .run = batch_norm},
    {"FusedBatchNormGrad FusedBatchNormGradV2 FusedBatchNormGradV3", KERNEL_EXPENSIVE,
     .run = batch_norm_grad},
};
KERNEL_TABLE(nn_batch_norm, rows)
