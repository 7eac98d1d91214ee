/* SPDX-License-Identifier: Apache-2.0 */
/* Projective transforms of images: an output pixel is sampled at the input position that a
 * projection of eight parameters computes. */
#include <math.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"

enum { TRANSFORM_PARAMS = 8 };

struct projection {
	const struct fill *fill;
	bool nearest;
	enum mu_dtype type; /* of the pixels; float unless `nearest` */
	int64_t in[2], size[2], depth;
	const float *transforms;
	int64_t step; /* from one image's transform to the next; 0: all images share one */
	const void *from;
	void *to;
	unsigned char fill_value[16]; /* one element */
};

/* ---- fill modes: the source of pixels outside the image ---- */

static float projective_clamp(float at, float n)
{
	return fminf(fmaxf(at, 0), n - 1);
}

static float fill_none(float at, float n)
{
	return at;
}

static float fill_reflect(float at, float n)
{
	float twice = 2 * n;

	if (at < 0) {
		if (n <= 1)
			return 0;
		if (at < twice)
			at = twice * truncf(-at / twice) + at;
		at = at < -n ? at + twice : -at - 1;
	} else if (at > n - 1) {
		if (n <= 1)
			return 0;
		at -= twice * truncf(at / twice);
		if (at >= n)
			at = twice - at - 1;
	}
	return projective_clamp(at, n);
}

static float fill_wrap(float at, float n)
{
	if ((at < 0 || at > n - 1) && n <= 1)
		return 0;
	if (at < 0)
		at += n * (truncf(-at / (n - 1)) + 1);
	else if (at > n - 1)
		at -= n * truncf(at / (n - 1));
	return projective_clamp(at, n);
}

static const struct fill {
	const char *name;
	float (*at)(float at, float n);
} fills[] = {
    {"CONSTANT", fill_none},
    {"REFLECT", fill_reflect},
    {"WRAP", fill_wrap},
    {"NEAREST", projective_clamp},
};

/* ---- sampling ---- */

/* The first element of a pixel; -1: outside, or NaN. */
static int64_t projective_pixel(const struct projection *k, int64_t image, float y, float x)
{
	if (!(y >= 0 && y < (float)k->in[0] && x >= 0 && x < (float)k->in[1]))
		return -1;
	return ((image * k->in[0] + (int64_t)y) * k->in[1] + (int64_t)x) * k->depth;
}

static void sample_nearest(const struct projection *k, int64_t image, float y, float x, int64_t to)
{
	int64_t from = projective_pixel(k, image, roundf(y), roundf(x));

	if (from < 0)
		elems_fill(k->type, k->to, to, k->fill_value, k->depth);
	else
		elems_copy(k->type, k->to, to, k->from, from, k->depth);
}

static void sample_bilinear(const struct projection *k, int64_t image, float y, float x, int64_t to)
{
	float top = floorf(y), left = floorf(x), fill_value;
	float weight[2][2] = {{top + 1 - y, y - top}, {left + 1 - x, x - left}};
	const float *in = k->from;
	int64_t at[2][2];

	memcpy(&fill_value, k->fill_value, sizeof fill_value);
	for (int i = 0; i < 4; i++)
		at[i / 2][i % 2] =
		    projective_pixel(k, image, top + (float)(i / 2), left + (float)(i % 2));
	for (int64_t d = 0; d < k->depth; d++) {
		float row[2];
		for (int i = 0; i < 2; i++) {
			float a = at[i][0] < 0 ? fill_value : in[at[i][0] + d];
			float b = at[i][1] < 0 ? fill_value : in[at[i][1] + d];
			row[i] = weight[1][0] * a + weight[1][1] * b;
		}
		((float *)k->to)[to + d] = weight[0][0] * row[0] + weight[0][1] * row[1];
	}
}

static void sample_pixels(void *arg, int64_t first, int64_t end)
{
	const struct projection *k = arg;

	for (int64_t n = first; n < end; n++) { /* rows of the result */
		int64_t image = n / k->size[0];
		const float *t = k->transforms + image * k->step;
		float y = (float)(n % k->size[0]);
		for (int64_t j = 0; j < k->size[1]; j++) {
			int64_t to = (n * k->size[1] + j) * k->depth;
			float x = (float)j, divisor = t[6] * x + t[7] * y + 1;
			if (divisor == 0) { /* at infinity */
				elems_fill(k->type, k->to, to, k->fill_value, k->depth);
				continue;
			}
			float in_x = (t[0] * x + t[1] * y + t[2]) / divisor;
			float in_y = (t[3] * x + t[4] * y + t[5]) / divisor;
			in_x = k->fill->at(in_x, (float)k->in[1]);
			in_y = k->fill->at(in_y, (float)k->in[0]);
			(k->nearest ? sample_nearest : sample_bilinear)(k, image, in_y, in_x, to);
		}
	}
}

/* ---- attributes and inputs ---- */

static int read_modes(const struct mu_node *n, struct projection *k, struct mu_err *err)
{
	const char *interpolation = args_attr_string(n, "interpolation", "");
	const char *fill = args_attr_string(n, "fill_mode", "CONSTANT");

	k->nearest = strcmp(interpolation, "NEAREST") == 0;
	if (!k->nearest && strcmp(interpolation, "BILINEAR"))
		return mu_invalid(err,
				  "Invalid interpolation %.40s. Supported types: NEAREST, BILINEAR",
				  interpolation);
	for (unsigned i = 0; i < MU_COUNT(fills) && !k->fill; i++)
		if (strcmp(fill, fills[i].name) == 0)
			k->fill = &fills[i];
	if (!k->fill)
		return mu_invalid(
		    err, "Invalid mode %.40s. Supported types: REFLECT, WRAP, CONSTANT, NEAREST",
		    fill);
	return 0;
}

static int projective_read_inputs(const struct kernel_call *c, struct projection *k,
				  struct mu_err *err)
{
	const struct mu_shape *in = &kernel_in(c, 0)->shape, *transforms = &kernel_in(c, 1)->shape;
	int n = 0;

	if (transforms->rank != 2 || transforms->dim[1] != TRANSFORM_PARAMS ||
	    (transforms->dim[0] != in->dim[0] && transforms->dim[0] != 1))
		return mu_invalid(err, "Input transform should be num_images x 8 or 1 x 8, not %s",
				  mu_shape_str(transforms));
	if (c->n_in == 2) { /* the first version: the size of the input */
		memcpy(k->size, in->dim + 1, sizeof k->size);
		n = 2;
	} else {
		MU_RETURN_IF_ERROR(args_ints(c, 2, k->size, 2, &n, err));
	}
	if (n != 2 || k->size[0] < 1 || k->size[1] < 1)
		return mu_invalid(err, "new_height and new_width must be positive");
	memcpy(k->in, in->dim + 1, sizeof k->in);
	k->depth = in->dim[3];
	k->transforms = MU_DATA(float, kernel_in(c, 1));
	k->step = transforms->dim[0] == 1 ? 0 : TRANSFORM_PARAMS;
	return 0;
}

static int project(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_TENSOR wide = {0};
	MU_AUTO_TENSOR result = {0};
	struct projection k = {.type = in->dtype};
	float fill_value = 0;
	struct mu_shape shape;
	struct mu_tensor *out;

	MU_RETURN_IF_ERROR(read_modes(c->node, &k, err));
	MU_RETURN_IF_ERROR(projective_read_inputs(c, &k, err));
	MU_RETURN_IF_ERROR(mu_shape_set(
	    &shape, 4, (int64_t[]){in->shape.dim[0], k.size[0], k.size[1], k.depth}, err));
	if (!k.nearest)
		k.type = MU_FLOAT;
	MU_RETURN_IF_ERROR(convert_tensor(&wide, k.type, in, err));
	MU_RETURN_IF_ERROR(mu_tensor_new(&result, k.type, &shape, err));
	if (c->n_in > 3)
		fill_value = *MU_DATA(float, kernel_in(c, 3));
	convert(k.type, k.fill_value, MU_FLOAT, &fill_value, 1);
	k.from = wide.data;
	k.to = result.data;
	if (shape.count) {
		int64_t n = shape.dim[0] * k.size[0];
		kernel_parallel(c, n, 1 + (1 << 13) / (shape.count / n), sample_pixels, &k);
	}
	if (k.type == in->dtype) {
		kernel_out_take(c, 0, result);
		result = (struct mu_tensor){0};
		return 0;
	}
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &shape, &out, err));
	convert(in->dtype, out->data, k.type, result.data, shape.count);
	return 0;
}

static const struct kernel rows[] = {
    {"ImageProjectiveTransform ImageProjectiveTransformV2 ImageProjectiveTransformV3",
     KERNEL_EXPENSIVE, .run = project},
};
KERNEL_TABLE(image_projective_transform, rows)
