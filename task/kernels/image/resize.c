/* SPDX-License-Identifier: Apache-2.0 */
/* Resizing of images, and its gradients.
 *
 * Along an axis, each output position is a weighted sum of input positions, its taps.  The resize
 * methods differ in their taps only.  An output row is computed in two passes: first over rows,
 * then over columns.  A gradient uses the same taps in reverse. */
#include <float.h>
#include <math.h>

#include "lib/base/ints.h"
#include "task/device/gpu.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/move.h"
#include "task/kernels/image/resize.h"

typedef void taps_fn(const struct resize_axis *a, struct resize_taps *t);

static void add_tap(struct resize_taps *t, int64_t *k, int64_t at, float weight)
{
	t->at[*k] = at;
	t->weight[(*k)++] = weight;
}

static int64_t resize_clamp(int64_t at, int64_t n)
{
	return at < 0 ? 0 : at < n ? at : n - 1;
}

/* The input position of output pixel i; at least -0.5 with half-pixel centres, else at least 0. */
static float source_position(const struct resize_axis *a, int64_t i)
{
	return a->centers ? ((float)i + 0.5f) * a->scale - 0.5f : (float)i * a->scale;
}

static void nearest_taps(const struct resize_axis *a, struct resize_taps *t)
{
	for (int64_t i = 0, k = 0; i < a->out; i++) {
		float x = ((float)i + (a->centers ? 0.5f : 0)) * a->scale;

		t->first[i] = k;
		add_tap(t, &k, resize_clamp((int64_t)(a->corners ? roundf(x) : floorf(x)), a->in),
			1);
	}
	t->first[a->out] = a->out;
}

static void linear_taps(const struct resize_axis *a, struct resize_taps *t)
{
	for (int64_t i = 0, k = 0; i < a->out; i++) {
		float x = source_position(a, i), part = x - floorf(x);

		t->first[i] = k;
		add_tap(t, &k, resize_clamp((int64_t)floorf(x), a->in), 1 - part);
		add_tap(t, &k, resize_clamp((int64_t)ceilf(x), a->in), part);
	}
	t->first[a->out] = 2 * a->out;
}

/* Keys' polynomial at a distance of 0 to 2. */
static float cubic(float a, float x)
{
	if (x <= 1)
		return ((a + 2) * x - (a + 3)) * x * x + 1;
	return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
}

/* With half-pixel centres, taps outside the image have weight 0; else they read the edge. */
static void cubic_taps(const struct resize_axis *a, struct resize_taps *t)
{
	enum { STEPS = 1024 }; /* TensorFlow tabulates the polynomial at this many distances */
	const float keys_a = a->centers ? -0.5f : -0.75f;

	for (int64_t i = 0, k = 0; i < a->out; i++) {
		float x = source_position(a, i), low = floorf(x), sum = 0, w[4];
		int64_t at = (int64_t)low;
		float part = (float)lrintf((x - low) * STEPS) / STEPS;

		for (int j = 0; j < 4; j++) {
			bool is_inside = resize_clamp(at + j - 1, a->in) == at + j - 1;
			w[j] = a->centers && !is_inside
				   ? 0
				   : cubic(keys_a, fabsf((float)(j - 1) - part));
			sum += w[j];
		}
		t->first[i] = k;
		for (int j = 0; j < 4; j++)
			add_tap(t, &k, resize_clamp(at + j - 1, a->in),
				a->centers && fabsf(sum) >= 1000 * FLT_MIN ? w[j] / sum : w[j]);
	}
	t->first[a->out] = 4 * a->out;
}

/* The part of each pixel that the output position covers. */
static void area_taps(const struct resize_axis *a, struct resize_taps *t)
{
	int64_t k = 0;

	for (int64_t i = 0; i < a->out; i++) {
		float from = (float)i * a->scale, to = (float)(i + 1) * a->scale;

		t->first[i] = k;
		for (int64_t at = (int64_t)floorf(from); at < (int64_t)ceilf(to); at++) {
			float low = fmaxf((float)at, from), high = fminf((float)(at + 1), to);
			float weight = (high - low) / a->scale;
			if (at >= a->in && k > t->first[i])
				t->weight[k - 1] += weight; /* beyond the edge */
			else if (k < a->in + 2 * (i + 1))   /* rounding may add a tap */
				add_tap(t, &k, resize_clamp(at, a->in), weight);
		}
		if (t->first[i] == k) /* the scale is 0: every position shows the first pixel */
			add_tap(t, &k, resize_clamp((int64_t)from, a->in), 1);
	}
	t->first[a->out] = k;
}

/* ---- ScaleAndTranslate: kernels that weight a pixel by its distance from the sample ---- */

static float lanczos(float x, float radius)
{
	if (x > radius)
		return 0;
	if (x <= 1e-3f)
		return 1;
	return radius * sinf((float)M_PI * x) * sinf((float)M_PI * x / radius) /
	       ((float)(M_PI * M_PI) * x * x);
}

static float gaussian(float x, float radius)
{
	float sigma = radius / 3;

	return x >= radius ? 0 : expf(-x * x / (2 * sigma * sigma));
}

static float box(float x, float radius)
{
	return x < 0.5f ? 1 : x == 0.5f ? 0.5f : 0;
}

static float triangle(float x, float radius)
{
	return x < radius ? 1 - x : 0;
}

static float keys_cubic(float x, float radius)
{
	return x < radius ? cubic(-0.5f, x) : 0;
}

static float mitchell_cubic(float x, float radius)
{
	if (x >= radius)
		return 0;
	if (x >= 1)
		return ((-7.0f / 18 * x + 2) * x - 10.0f / 3) * x + 16.0f / 9;
	return (7.0f / 6 * x - 2) * x * x + 8.0f / 9;
}

static const struct resample_kernel {
	const char *name; /* in lower case */
	float radius;
	float (*at)(float distance, float radius);
} resample_kernels[] = {
    {"lanczos1", 1, lanczos},
    {"lanczos3", 3, lanczos},
    {"lanczos5", 5, lanczos},
    {"gaussian", 1.5f, gaussian},
    {"box", 1, box},
    {"triangle", 1, triangle},
    {"keyscubic", 2, keys_cubic},
    {"mitchellcubic", 2, mitchell_cubic},
};

/* Adds the taps of the sample at x; the weights sum to 1. */
static void add_sample(const struct resize_axis *a, struct resize_taps *t, int64_t *k, float x)
{
	float support = a->kernel->radius * a->kernel_scale, sum = 0;
	float low = fmaxf(ceilf(x - support - 0.5f), 0);
	float high = fminf(floorf(x + support - 0.5f), (float)(a->in - 1));
	int64_t first = *k, from = resize_clamp((int64_t)low, a->in);
	int64_t to = resize_clamp((int64_t)high, a->in);

	for (int64_t at = from; at <= to; at++) {
		float distance = fabsf((float)at + 0.5f - x) / a->kernel_scale;

		add_tap(t, k, at, a->kernel->at(distance, a->kernel->radius));
		sum += t->weight[*k - 1];
	}
	for (int64_t i = first; i < *k; i++)
		t->weight[i] = fabsf(sum) >= 1000 * FLT_MIN ? t->weight[i] / sum : 0;
}

/* Positions outside the translated image have no taps. */
static void scaled_taps(const struct resize_axis *a, struct resize_taps *t)
{
	int64_t k = 0;

	for (int64_t i = 0; i < a->out; i++) {
		float x = ((float)i + 0.5f) * a->scale - a->scale * a->translation;

		t->first[i] = k;
		if (x >= 0 && x <= (float)a->in)
			add_sample(a, t, &k, x);
	}
	t->first[a->out] = k;
}

static const struct resize_method {
	const char *name; /* prefix of the op's name */
	taps_fn *taps;
	int max_taps; /* of a position; 0: depends on the support of the kernel */
} methods[] = {
    {"ScaleAndTranslate", scaled_taps, 0},
    {"ResizeBilinear", linear_taps, 2},
    {"FusedResizeAndPadConv2D", linear_taps, 2}, /* runs ResizeBilinear with its own attributes */
    {"ResizeNearestNeighbor", nearest_taps, 1},
    {"ResizeBicubic", cubic_taps, 4},
    {"ResizeArea", area_taps, 2},
};

static void free_taps(struct resize *r)
{
	for (int d = 0; d < 2; d++)
		for (int k = 0; k < 3; k++)
			mu_tensor_unref(&r->taps[d].memory[k]);
}

static int resize_alloc(struct mu_tensor *t, enum mu_dtype type, int64_t n, struct mu_err *err)
{
	struct mu_shape s;

	MU_RETURN_IF_ERROR(mu_shape_set(&s, 1, &n, err));
	return mu_tensor_new(t, type, &s, err);
}

/* An upper bound of the number of taps of all positions. */
static int64_t max_taps(const struct resize *r, const struct resize_axis *a)
{
	if (r->method->max_taps)
		return r->method->max_taps * a->out + a->in;
	float support = ceilf(a->kernel->radius * a->kernel_scale);
	return a->out * (support < (float)a->in ? mu_min(2 * (int64_t)support + 3, a->in) : a->in);
}

static int find_taps(struct resize *r, struct mu_err *err)
{
	for (int d = 0; d < 2; d++) {
		const struct resize_axis *a = &r->axis[d];
		struct resize_taps *t = &r->taps[d];
		int64_t capacity = max_taps(r, a);
		int rc;

		if ((rc = resize_alloc(&t->memory[0], MU_INT64, a->out + 1, err)) ||
		    (rc = resize_alloc(&t->memory[1], MU_INT64, capacity, err)) ||
		    (rc = resize_alloc(&t->memory[2], MU_FLOAT, capacity, err))) {
			free_taps(r);
			return rc;
		}
		t->n = a->out;
		t->first = t->memory[0].data;
		t->at = t->memory[1].data;
		t->weight = t->memory[2].data;
		r->method->taps(a, t);
	}
	return 0;
}

/* Inputs 2 and 3 and the attributes of ScaleAndTranslate. */
static int read_scale(const struct kernel_call *c, struct resize *r, struct mu_err *err)
{
	const char *name = args_attr_string(c->node, "kernel_type", "lanczos3");
	bool antialias = args_attr_bool(c->node, "antialias", true);
	const float *scale = MU_DATA(float, kernel_in(c, 2));
	const float *translation = MU_DATA(float, kernel_in(c, 3));
	const struct resample_kernel *kernel = NULL;

	for (unsigned i = 0; i < MU_COUNT(resample_kernels); i++)
		if (strcasecmp(name, resample_kernels[i].name) == 0)
			kernel = &resample_kernels[i];
	if (!kernel)
		return mu_invalid(err, "Unrecognized kernel type: %.40s", name);
	for (int d = 0; d < 2; d++) {
		struct resize_axis *a = &r->axis[d];

		if (!(scale[d] > 0))
			return mu_invalid(err, "Scale must be greater than zero.");
		a->scale = 1 / scale[d];
		a->translation = translation[d];
		a->kernel = kernel;
		a->kernel_scale = antialias ? fmaxf(a->scale, 1) : 1;
	}
	return 0;
}

/* Reads the attributes for resizing images of in[0] by in[1] to out[0] by out[1]. */
static int read_sizes(const struct kernel_call *c, struct resize *r, const int64_t *in,
		      const int64_t *out, struct mu_err *err)
{
	bool corners = args_attr_bool(c->node, "align_corners", false) ||
		       args_attr_bool(c->node, "resize_align_corners", false);
	bool centers = args_attr_bool(c->node, "half_pixel_centers", false);

	for (unsigned i = 0; i < MU_COUNT(methods); i++)
		if (strncmp(c->node->op, methods[i].name, strlen(methods[i].name)) == 0)
			r->method = &methods[i];
	if (corners && centers)
		return mu_invalid(err,
				  "If half_pixel_centers is True, align_corners must be False.");
	for (int d = 0; d < 2; d++) {
		struct resize_axis *a = &r->axis[d];

		if (in[d] < 1 || out[d] < 1 || in[d] > INT32_MAX || out[d] > INT32_MAX)
			return mu_invalid(err,
					  "pictures to be resized must have a size, and get one: "
					  "from [%lld, %lld] to [%lld, %lld]",
					  (long long)in[0], (long long)in[1], (long long)out[0],
					  (long long)out[1]);
		*a = (struct resize_axis){
		    .in = in[d], .out = out[d], .corners = corners, .centers = centers};
		a->scale = corners && out[d] > 1 ? (float)(in[d] - 1) / (float)(out[d] - 1)
						 : (float)in[d] / (float)out[d];
	}
	return r->method->taps == scaled_taps ? read_scale(c, r, err) : 0;
}

static void read_images(const struct kernel_call *c, struct resize *r)
{
	const struct mu_tensor *t = kernel_in(c, 0);

	r->in = t;
	r->images = t->shape.dim[0];
	r->depth = t->shape.dim[3];
}

static int read_size_input(const struct kernel_call *c, int64_t *size, struct mu_err *err)
{
	int n;

	return args_ints(c, 1, size, 2, &n, err);
}

static int output_images(struct kernel_call *c, struct resize *r, enum mu_dtype t,
			 const int64_t *size, struct mu_err *err)
{
	struct mu_shape s;

	MU_RETURN_IF_ERROR(
	    mu_shape_set(&s, 4, (int64_t[]){r->images, size[0], size[1], r->depth}, err));
	MU_RETURN_IF_ERROR(kernel_out_on_device(c, 0, t, &s, &r->out, err));
	return 0;
}

/* ---- forward ---- */

static void resize_weigh(float *to, const float *from, float w, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		to[i] += w * from[i];
}

static void resize_rows(void *arg, int64_t from, int64_t to)
{
	const struct resize *r = arg;
	const int64_t row_elements = r->axis[1].in * r->depth, out_rows = r->axis[0].out;
	float *row = mu_xmalloc((size_t)row_elements * sizeof *row);

	for (int64_t i = from; i < to; i++) {
		const float *image =
		    MU_DATA(float, r->in) + i / out_rows * r->axis[0].in * row_elements;
		float *out = MU_DATA(float, r->out) + i * r->axis[1].out * r->depth;
		const struct resize_taps *y = &r->taps[0], *x = &r->taps[1];

		memset(row, 0, (size_t)row_elements * sizeof *row);
		for (int64_t k = y->first[i % out_rows]; k < y->first[i % out_rows + 1]; k++)
			resize_weigh(row, image + y->at[k] * row_elements, y->weight[k],
				     row_elements);
		memset(out, 0, (size_t)(x->n * r->depth) * sizeof *out);
		for (int64_t j = 0; j < x->n; j++)
			for (int64_t k = x->first[j]; k < x->first[j + 1]; k++)
				resize_weigh(out + j * r->depth, row + x->at[k] * r->depth,
					     x->weight[k], r->depth);
	}
	free(row);
}

/* Copies one pixel for each output pixel, in any type. */
static void copy_rows(void *arg, int64_t from, int64_t to)
{
	const struct resize *r = arg;
	const int64_t out_rows = r->axis[0].out, out_columns = r->axis[1].out;

	for (int64_t i = from; i < to; i++) {
		int64_t row =
		    (i / out_rows * r->axis[0].in + r->taps[0].at[i % out_rows]) * r->axis[1].in;

		for (int64_t j = 0; j < out_columns; j++)
			elems_copy(r->in->dtype, r->out->data, (i * out_columns + j) * r->depth,
				   r->in->data, (row + r->taps[1].at[j]) * r->depth, r->depth);
	}
}

static int resize_forward(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_TENSOR floats = {0};
	struct resize r = {0};
	int64_t size[2];
	int rc = 0;

	read_images(c, &r);
	MU_RETURN_IF_ERROR(read_size_input(c, size, err));
	MU_RETURN_IF_ERROR(read_sizes(c, &r, r.in->shape.dim + 1, size, err));
	bool is_nearest = r.method->taps == nearest_taps;
	if (!r.depth)
		return mu_invalid(err, "image must have at least one channel");
	MU_RETURN_IF_ERROR(output_images(c, &r, is_nearest ? r.in->dtype : MU_FLOAT, size, err));
	if (!r.out->shape.count)
		return 0;
	if (!is_nearest && r.in->dtype != MU_FLOAT) {
		MU_RETURN_IF_ERROR(mu_tensor_new(&floats, MU_FLOAT, &r.in->shape, err));
		convert(MU_FLOAT, floats.data, r.in->dtype, r.in->data, r.in->shape.count);
		r.in = &floats;
	}
	MU_RETURN_IF_ERROR(find_taps(&r, err));
	if (gpu_of_tensor(r.out))
		rc = gpu_resize(c, &r, false, err);
	else
		kernel_parallel(c, r.images * r.axis[0].out,
				1 + 16384 / (r.axis[1].out * r.depth + 1),
				is_nearest ? copy_rows : resize_rows, &r);
	free_taps(&r);
	return rc;
}

/* ---- gradients ---- */

struct resize_gradient {
	const struct resize *r;
	const double *grad;
	double *sums;
};

static void add_input_gradients(void *arg, int64_t from, int64_t to)
{
	const struct resize_gradient *b = arg;
	const struct resize *r = b->r;
	const struct resize_taps *y = &r->taps[0], *x = &r->taps[1];
	const int64_t in_columns = r->axis[1].in, depth = r->depth;

	for (int64_t i = from * y->n; i < to * y->n; i++)
		for (int64_t j = 0; j < x->n; j++)
			for (int64_t k = y->first[i % y->n]; k < y->first[i % y->n + 1]; k++)
				for (int64_t l = x->first[j]; l < x->first[j + 1]; l++) {
					int64_t row = i / y->n * r->axis[0].in + y->at[k];
					double w = (double)y->weight[k] * x->weight[l];
					double *sum =
					    b->sums + (row * in_columns + x->at[l]) * depth;

					for (int64_t d = 0; d < depth; d++)
						sum[d] += w * b->grad[(i * x->n + j) * depth + d];
				}
}

static int resize_gradient_gpu(struct kernel_call *c, struct resize *r, struct mu_err *err)
{
	int rc;

	MU_RETURN_IF_ERROR(find_taps(r, err));
	rc = gpu_resize(c, r, true, err);
	free_taps(r);
	return rc;
}

/* Sums are in double for all gradient types. */
static int run_gradient(struct kernel_call *c, struct resize *r, struct mu_err *err)
{
	MU_AUTO_TENSOR grad = {0};
	MU_AUTO_TENSOR sums = {0};
	struct resize_gradient b = {.r = r};

	if (!r->out->shape.count)
		return 0;
	if (gpu_of_tensor(r->out))
		return resize_gradient_gpu(c, r, err);
	MU_RETURN_IF_ERROR(mu_tensor_new(&grad, MU_DOUBLE, &r->in->shape, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&sums, MU_DOUBLE, &r->out->shape, err));
	convert(MU_DOUBLE, grad.data, r->in->dtype, r->in->data, r->in->shape.count);
	memset(sums.data, 0, (size_t)sums.shape.count * sizeof(double));
	b.grad = grad.data;
	b.sums = sums.data;
	MU_RETURN_IF_ERROR(find_taps(r, err));
	kernel_parallel(c, r->images, 1, add_input_gradients, &b);
	free_taps(r);
	convert(r->out->dtype, r->out->data, MU_DOUBLE, sums.data, sums.shape.count);
	return 0;
}

static int check_sum_type(const struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	if (convert_supports(MU_DOUBLE, t) && convert_supports(t, MU_DOUBLE) && t != MU_BOOL)
		return 0;
	return args_no_kernel(c, t, err);
}

/* Inputs: gradient, image.  ResizeBilinearGrad, ResizeBicubicGrad, ScaleAndTranslateGrad. */
static int gradient_by_image(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *image = kernel_in(c, 1);
	struct resize r = {0};

	read_images(c, &r);
	MU_RETURN_IF_ERROR(check_sum_type(c, image->dtype, err));
	if (image->shape.dim[0] != r.images || image->shape.dim[3] != r.depth)
		return mu_invalid(err, "the gradient is of other pictures: %s, %s",
				  mu_shape_str(&r.in->shape), mu_shape_str(&image->shape));
	MU_RETURN_IF_ERROR(read_sizes(c, &r, image->shape.dim + 1, r.in->shape.dim + 1, err));
	MU_RETURN_IF_ERROR(output_images(c, &r, image->dtype, image->shape.dim + 1, err));
	return run_gradient(c, &r, err);
}

/* Inputs: gradient, image size.  ResizeNearestNeighborGrad. */
static int gradient_by_size(struct kernel_call *c, struct mu_err *err)
{
	struct resize r = {0};
	int64_t size[2];

	read_images(c, &r);
	MU_RETURN_IF_ERROR(read_size_input(c, size, err));
	MU_RETURN_IF_ERROR(check_sum_type(c, r.in->dtype, err));
	MU_RETURN_IF_ERROR(read_sizes(c, &r, size, r.in->shape.dim + 1, err));
	MU_RETURN_IF_ERROR(output_images(c, &r, r.in->dtype, size, err));
	return run_gradient(c, &r, err);
}

static const struct kernel rows[] = {
    {"ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor ScaleAndTranslate",
     KERNEL_EXPENSIVE, .run = resize_forward},
    {"ResizeBicubicGrad ResizeBilinearGrad ScaleAndTranslateGrad", KERNEL_EXPENSIVE,
     .run = gradient_by_image},
    {"ResizeNearestNeighborGrad", KERNEL_EXPENSIVE, .run = gradient_by_size},
};
KERNEL_TABLE(image_resize, rows)
