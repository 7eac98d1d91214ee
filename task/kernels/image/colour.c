/* SPDX-License-Identifier: Apache-2.0 */
/* Colour transformations: RGB to HSV and back, hue, saturation and contrast; the first three also
 * in the YIQ space. The arithmetic is in double for all pixel types. */
#include <math.h>

#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"

enum { CHANNELS = 3, CHUNK = 256 };

/* ---- one pixel ---- */

static void to_hsv(const double *rgb, double *hsv, const double *unused)
{
	double max = fmax(fmax(rgb[0], rgb[1]), rgb[2]);
	double range = max - fmin(fmin(rgb[0], rgb[1]), rgb[2]), h = 0;

	if (range > 0 && rgb[0] == max)
		h = (rgb[1] - rgb[2]) / (6 * range);
	else if (range > 0 && rgb[1] == max)
		h = (rgb[2] - rgb[0]) / (6 * range) + 2 / 6.;
	else if (range > 0)
		h = (rgb[0] - rgb[1]) / (6 * range) + 4 / 6.;
	double s = max > 0 ? range / max : 0;
	hsv[0] = h < 0 ? h + 1 : h;
	hsv[1] = s;
	hsv[2] = max;
}

static double clamp_unit(double x)
{
	return fmin(fmax(x, 0), 1);
}

static void to_rgb(const double *hsv, double *rgb, const double *unused)
{
	double h = hsv[0] * 6, s = hsv[1], v = hsv[2];

	rgb[0] = ((1 - s) + s * clamp_unit(fabs(h - 3) - 1)) * v;
	rgb[1] = ((1 - s) + s * clamp_unit(2 - fabs(h - 2))) * v;
	rgb[2] = ((1 - s) + s * clamp_unit(2 - fabs(h - 4))) * v;
}

/* The hue circle has six sectors.  For each sector: the index of the largest, the middle and the
 * smallest channel. */
static const unsigned char sectors[6][CHANNELS] = {{0, 1, 2}, {1, 0, 2}, {1, 2, 0},
						   {2, 1, 0}, {2, 0, 1}, {0, 2, 1}};

static void rotate_hue(const double *rgb, double *out, const double *delta)
{
	double max = fmax(fmax(rgb[0], rgb[1]), rgb[2]);
	double min = fmin(fmin(rgb[0], rgb[1]), rgb[2]), hsv[CHANNELS];

	to_hsv(rgb, hsv, NULL);
	/* in float, as in TensorFlow: a large delta leaves few digits */
	float h = fmodf((float)(hsv[0] * 6) + (float)*delta * 6, 6);
	h = h < 0 ? h + 6 : h;
	unsigned at = h < 6 ? (unsigned)h : 0; /* NaN too */
	double part = h < 6 ? h - at : 0;
	out[sectors[at][0]] = max;
	out[sectors[at][1]] = min + (at & 1 ? 1 - part : part) * (max - min);
	out[sectors[at][2]] = min;
}

static void scale_saturation(const double *rgb, double *out, const double *scale)
{
	double hsv[CHANNELS];

	to_hsv(rgb, hsv, NULL);
	hsv[1] = clamp_unit(hsv[1] * *scale);
	to_rgb(hsv, out, NULL);
}

static void transform_linearly(const double *rgb, double *out, const double *matrix)
{
	for (int i = 0; i < CHANNELS; i++)
		out[i] = matrix[i * CHANNELS] * rgb[0] + matrix[i * CHANNELS + 1] * rgb[1] +
			 matrix[i * CHANNELS + 2] * rgb[2];
}

static const double rgb_to_yiq[CHANNELS][CHANNELS] = {
    {0.299, 0.587, 0.114}, {0.596, -0.274, -0.322}, {0.211, -0.523, 0.312}};
static const double yiq_to_rgb[CHANNELS][CHANNELS] = {
    {1, 0.95617069, 0.62143257}, {1, -0.2726886, -0.64681324}, {1, -1.103744, 1.70062309}};

/* The matrix that scales Y by `value`, and scales I and Q by `value` and `saturation` and rotates
 * them by `hue`. */
static void yiq_matrix(double hue, double saturation, double value, double *out)
{
	double along = value * saturation * cos(hue), across = value * saturation * sin(hue);
	const double adjust[CHANNELS][CHANNELS] = {
	    {value, 0, 0}, {0, along, -across}, {0, across, along}};

	for (int i = 0; i < CHANNELS; i++)
		for (int j = 0; j < CHANNELS; j++) {
			double sum = 0;
			for (int k = 0; k < CHANNELS * CHANNELS; k++)
				sum += yiq_to_rgb[i][k / CHANNELS] *
				       adjust[k / CHANNELS][k % CHANNELS] *
				       rgb_to_yiq[k % CHANNELS][j];
			out[i * CHANNELS + j] = sum;
		}
}

/* ---- images ---- */

static const struct mode {
	const char *op;
	void (*pixel)(const double *in, double *out, const double *parameters);
	bool adjusts; /* has parameter inputs; images have at least 3 dimensions */
} modes[] = {{"RGBToHSV", to_hsv, false},
	     {"HSVToRGB", to_rgb, false},
	     {"AdjustHue", rotate_hue, true},
	     {"AdjustSaturation", scale_saturation, true},
	     {"AdjustHsvInYiq", transform_linearly, true}};

struct pixels {
	const struct mode *mode;
	const struct mu_tensor *in;
	struct mu_tensor *out;
	double parameters[CHANNELS * CHANNELS]; /* of the mode: a number, or a matrix */
};

static void transform_pixels(void *arg, int64_t from, int64_t to)
{
	double wide[CHUNK * CHANNELS], results[CHUNK * CHANNELS];
	const struct pixels *p = arg;
	size_t size = mu_dtype_size(p->in->dtype) * CHANNELS;

	for (int64_t n; from < to; from += n) {
		n = to - from < CHUNK ? to - from : CHUNK;
		convert(MU_DOUBLE, wide, p->in->dtype,
			(const char *)p->in->data + (size_t)from * size, n * CHANNELS);
		for (int64_t i = 0; i < n; i++)
			p->mode->pixel(wide + i * CHANNELS, results + i * CHANNELS, p->parameters);
		convert(p->in->dtype, (char *)p->out->data + (size_t)from * size, MU_DOUBLE,
			results, n * CHANNELS);
	}
}

/* Reads input 1, a scalar. */
static int read_parameter(const struct kernel_call *c, double *parameter, struct mu_err *err)
{
	const struct mu_tensor *t = kernel_in(c, 1);

	if (t->shape.rank)
		return mu_invalid(err, "%s needs a scalar float, got shape %s", c->node->op,
				  mu_shape_str(&t->shape));
	*parameter = MU_DATA(float, t)[0];
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
		MU_RETURN_IF_ERROR(read_parameter(c, p.parameters, err));
	if (c->n_in > 2)
		yiq_matrix(p.parameters[0], *MU_DATA(float, kernel_in(c, 2)),
			   *MU_DATA(float, kernel_in(c, 3)), p.parameters);
	int min_rank = p.mode->adjusts ? 3 : 1;
	if (in->shape.rank < min_rank || in->shape.dim[in->shape.rank - 1] != CHANNELS)
		return mu_fail(err,
			       p.mode->adjusts || !in->shape.rank ? MU_INVALID_ARGUMENT
								  : MU_FAILED_PRECONDITION,
			       "input must be at least %d-D with 3 channels in the last dimension, "
			       "got shape %s",
			       min_rank, mu_shape_str(&in->shape));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, in->dtype, &in->shape, &p.out, err));
	kernel_parallel(c, in->shape.count / CHANNELS, 1 << 14, transform_pixels, &p);
	return 0;
}

/* ---- contrast: scales the distance of each channel of an image from its mean ---- */

struct contrast {
	const float *in;
	float *out;
	int64_t pixels, channels;
	double factor;
	float low, high; /* limits of the result */
};

/* If the limits contradict, the lower one applies.  NaN stays NaN. */
static float colour_limit(const struct contrast *k, float x)
{
	x = x > k->high ? k->high : x;
	return x < k->low ? k->low : x;
}

static void colour_stretch(void *arg, int64_t from, int64_t to)
{
	const struct contrast *k = arg;

	for (int64_t i = from; i < to; i++) { /* a channel of an image */
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

/* The first version of the op also has limits, accepts any type, and outputs floats. */
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
	MU_RETURN_IF_ERROR(read_parameter(c, &k.factor, err));
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
