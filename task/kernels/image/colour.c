/* SPDX-License-Identifier: Apache-2.0 */
/* Colour transformations: RGB to HSV and back, hue, saturation and contrast; the first three also
 * in the YIQ space. The arithmetic is in double for all pixel types. */
#include <math.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

enum { LIGHTS = 3, CHUNK = 256 };

/* ---- one pixel ---- */

static void to_hsv(const double *rgb, double *hsv, const double *unused)
{
	double most = fmax(fmax(rgb[0], rgb[1]), rgb[2]);
	double range = most - fmin(fmin(rgb[0], rgb[1]), rgb[2]), h = 0;

	if (range > 0 && rgb[0] == most)
		h = (rgb[1] - rgb[2]) / (6 * range);
	else if (range > 0 && rgb[1] == most)
		h = (rgb[2] - rgb[0]) / (6 * range) + 2 / 6.;
	else if (range > 0)
		h = (rgb[0] - rgb[1]) / (6 * range) + 4 / 6.;
	double s = most > 0 ? range / most : 0;
	hsv[0] = h < 0 ? h + 1 : h;
	hsv[1] = s;
	hsv[2] = most;
}

static double within_one(double x)
{
	return fmin(fmax(x, 0), 1);
}

static void to_rgb(const double *hsv, double *rgb, const double *unused)
{
	double h = hsv[0] * 6, s = hsv[1], v = hsv[2];

	rgb[0] = ((1 - s) + s * within_one(fabs(h - 3) - 1)) * v;
	rgb[1] = ((1 - s) + s * within_one(2 - fabs(h - 2))) * v;
	rgb[2] = ((1 - s) + s * within_one(2 - fabs(h - 4))) * v;
}

/* Between its least and its most light the colour goes around six corners; which light is the most,
 * the middle and the least between one and the next. */
static const unsigned char corners[6][LIGHTS] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0},
						 {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};

static void turn_hue(const double *rgb, double *out, const double *delta)
{
	double most = fmax(fmax(rgb[0], rgb[1]), rgb[2]);
	double least = fmin(fmin(rgb[0], rgb[1]), rgb[2]), hsv[LIGHTS];

	to_hsv(rgb, hsv, NULL);
	/* in float, as TensorFlow's, which a large delta leaves few digits */
	float h = fmodf((float)(hsv[0] * 6) + (float)*delta * 6, 6);
	h = h < 0 ? h + 6 : h;
	unsigned at = h < 6 ? (unsigned)h : 0; /* NaN too */
	double part = h < 6 ? h - at : 0;
	out[corners[at][0]] = most;
	out[corners[at][1]] = least + (at & 1 ? 1 - part : part) * (most - least);
	out[corners[at][2]] = least;
}

static void scale_saturation(const double *rgb, double *out, const double *scale)
{
	double hsv[LIGHTS];

	to_hsv(rgb, hsv, NULL);
	hsv[1] = within_one(hsv[1] * *scale);
	to_rgb(hsv, out, NULL);
}

static void transform_linearly(const double *rgb, double *out, const double *matrix)
{
	for (int i = 0; i < LIGHTS; i++)
		out[i] = matrix[i * LIGHTS] * rgb[0] + matrix[i * LIGHTS + 1] * rgb[1] +
			 matrix[i * LIGHTS + 2] * rgb[2];
}

static const double rgb_to_yiq[LIGHTS][LIGHTS] = {
    {0.299, 0.587, 0.114}, {0.596, -0.274, -0.322}, {0.211, -0.523, 0.312}};
static const double yiq_to_rgb[LIGHTS][LIGHTS] = {
    {1, 0.95617069, 0.62143257}, {1, -0.2726886, -0.64681324}, {1, -1.103744, 1.70062309}};

/* The matrix that scales Y by `value`, scales I and Q by `value` and `saturation` and turns them.
 */
static void yiq_matrix(double hue, double saturation, double value, double *out)
{
	double along = value * saturation * cos(hue), across = value * saturation * sin(hue);
	const double adjust[LIGHTS][LIGHTS] = {
	    {value, 0, 0}, {0, along, -across}, {0, across, along}};

	for (int i = 0; i < LIGHTS; i++)
		for (int j = 0; j < LIGHTS; j++) {
			double sum = 0;
			for (int k = 0; k < LIGHTS * LIGHTS; k++)
				sum += yiq_to_rgb[i][k / LIGHTS] * adjust[k / LIGHTS][k % LIGHTS] *
				       rgb_to_yiq[k % LIGHTS][j];
			out[i * LIGHTS + j] = sum;
		}
}

/* ---- all of them ---- */

static const struct mode {
	const char *op;
	void (*pixel)(const double *in, double *out, const double *by);
	bool adjusts; /* by its other inputs, pictures of at least three dimensions */
} modes[] = {{"RGBToHSV", to_hsv, false},
	     {"HSVToRGB", to_rgb, false},
	     {"AdjustHue", turn_hue, true},
	     {"AdjustSaturation", scale_saturation, true},
	     {"AdjustHsvInYiq", transform_linearly, true}};

struct pixels {
	const struct mode *mode;
	const struct mu_tensor *in;
	struct mu_tensor *out;
	double by[LIGHTS * LIGHTS]; /* a number, or a matrix */
};

static void transform_pixels(void *arg, int64_t from, int64_t to)
{
	double wide[CHUNK * LIGHTS], made[CHUNK * LIGHTS];
	const struct pixels *p = arg;
	size_t size = mu_dtype_size(p->in->dtype) * LIGHTS;

	for (int64_t n; from < to; from += n) {
		n = to - from < CHUNK ? to - from : CHUNK;
		convert(MU_DOUBLE, wide, p->in->dtype,
			(const char *)p->in->data + (size_t)from * size, n * LIGHTS);
		for (int64_t i = 0; i < n; i++)
			p->mode->pixel(wide + i * LIGHTS, made + i * LIGHTS, p->by);
		convert(p->in->dtype, (char *)p->out->data + (size_t)from * size, MU_DOUBLE, made,
			n * LIGHTS);
	}
}

/* Input 1 as one number. */
static int read_by(const struct kernel_call *c, double *by, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 1);

	if (t->shape.rank)
		return mu_invalid(err, "%s must be by a scalar float, got shape %s", c->node->op,
				  mu_shape_str(&t->shape));
	*by = MU_DATA(float, t)[0];
	return 0;
}

static int colour_check_type(const struct kernel_call *c, bool adjusts, struct mu_err *err)
{
	enum mu_dtype t = kernel_in(c, 0)->dtype;

	return t == MU_FLOAT || (!adjusts && (mu_dtype_is_16_bit_float(t) || t == MU_DOUBLE))
		   ? 0
		   : mu_invalid(err, "%s has no kernel for type %s", c->node->op, mu_dtype_name(t));
}

static int colours(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct pixels p = {.in = in};

	for (unsigned i = 0; i < MU_COUNT(modes); i++)
		if (strcmp(modes[i].op, c->node->op) == 0)
			p.mode = &modes[i];
	MU_RETURN_IF_ERROR(colour_check_type(c, p.mode->adjusts, err));
	if (p.mode->adjusts)
		MU_RETURN_IF_ERROR(read_by(c, p.by, err));
	if (c->n_in > 2)
		yiq_matrix(p.by[0], *MU_DATA(float, kernel_in(c, 2)),
			   *MU_DATA(float, kernel_in(c, 3)), p.by);
	int least = p.mode->adjusts ? 3 : 1;
	if (in->shape.rank < least || in->shape.dim[in->shape.rank - 1] != LIGHTS)
		return mu_fail(err,
			       p.mode->adjusts || !in->shape.rank ? MU_INVALID_ARGUMENT
								  : MU_FAILED_PRECONDITION,
			       "input must be at least %d-D with 3 channels in the last dimension, "
			       "got shape %s",
			       least, mu_shape_str(&in->shape));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &p.out, err));
	kernel_parallel(c, in->shape.count / LIGHTS, 1 << 14, transform_pixels, &p);
	return 0;
}

/* ---- contrast: how far each channel of a picture is from its mean ---- */

struct contrast {
	const float *in;
	float *out;
	int64_t pixels, channels;
	double factor;
	float low, high; /* limits of the result */
};

/* The lower limit is the last, and NaN is within them. */
static float colour_limit(const struct contrast *k, float x)
{
	x = x > k->high ? k->high : x;
	return x < k->low ? k->low : x;
}

static void colour_stretch(void *arg, int64_t from, int64_t to)
{
	const struct contrast *k = arg;

	for (int64_t i = from; i < to; i++) { /* a channel of a picture */
		int64_t at = i / k->channels * k->pixels * k->channels + i % k->channels;
		double sum = 0;
		for (int64_t p = 0; p < k->pixels; p++)
			sum += k->in[at + p * k->channels];
		double mean = sum / (double)k->pixels;
		for (int64_t p = 0; p < k->pixels; p++, at += k->channels)
			k->out[at] =
			    colour_limit(k, (float)((k->in[at] - mean) * k->factor + mean));
	}
}

/* The first version of the op also has limits, any type of pictures, and a result of floats. */
static int contrast(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	struct contrast k = {.low = -INFINITY, .high = INFINITY};
	MU_AUTO_TENSOR wide = {0};
	int rank = in->shape.rank;
	struct mu_tensor *out;

	if (c->n_in > 2) {
		k.low = *MU_DATA(float, kernel_in(c, 2));
		k.high = *MU_DATA(float, kernel_in(c, 3));
	} else {
		MU_RETURN_IF_ERROR(colour_check_type(c, true, err));
	}
	MU_RETURN_IF_ERROR(read_by(c, &k.factor, err));
	if (rank < 3)
		return mu_invalid(err, "input must be at least 3-D, got shape %s",
				  mu_shape_str(&in->shape));
	MU_RETURN_IF_ERROR(convert_tensor(&wide, MU_FLOAT, in, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_FLOAT, &in->shape, &out, err));
	if (!in->shape.count)
		return 0;
	k.in = wide.data;
	k.out = out->data;
	k.channels = in->shape.dim[rank - 1];
	k.pixels = in->shape.dim[rank - 2] * in->shape.dim[rank - 3];
	kernel_parallel(c, in->shape.count / k.pixels, 1 + (1 << 14) / k.pixels, colour_stretch,
			&k);
	return 0;
}

static const struct kernel rows[] = {
    {"RGBToHSV HSVToRGB AdjustHue AdjustSaturation AdjustHsvInYiq", KERNEL_EXPENSIVE,
     .run = colours},
    {"AdjustContrast AdjustContrastv2", KERNEL_EXPENSIVE, .run = contrast},
};
KERNEL_TABLE(image_colour, rows)
