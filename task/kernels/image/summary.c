/* SPDX-License-Identifier: Apache-2.0 */
/* ImageSummary and WriteImageSummary: batches of images as PNG files in a summary. */
#include <math.h>

#include "lib/io/event_writer.h"
#include "lib/tensor/half.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/convert.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/io/summary_writer.h"

struct image_format {
	int64_t pixels, depth;
	enum mu_dtype type;
	unsigned char bad_colour[4]; /* replaces a pixel that is not finite */
};

static bool finite_pixel(const double *v, int64_t depth)
{
	for (int64_t i = 0; i < depth; i++)
		if (!isfinite(v[i]))
			return false;
	return true;
}

/* Rounds to the type in which TensorFlow computes this step. */
static double rounded(double v, enum mu_dtype t)
{
	return t == MU_HALF ? half_to_float(float_to_half((float)v)) : t == MU_FLOAT ? (float)v : v;
}

/* Sets the scale and offset that convert values to bytes. If a value is negative, the largest
 * magnitude becomes 127 above or below 128; else the largest value becomes 255. */
static void choose_range(const struct image_format *p, const double *v, double *scale,
			 double *offset)
{
	float low = INFINITY, high = -INFINITY;

	for (int64_t i = 0; i < p->pixels; i++, v += p->depth)
		for (int64_t k = finite_pixel(v, p->depth) ? 0 : p->depth; k < p->depth; k++) {
			low = fminf(low, (float)v[k]);
			high = fmaxf(high, (float)v[k]);
		}
	float max_magnitude = low < 0 ? fmaxf(fabsf(low), fabsf(high)) : high;
	*offset = low < 0 ? 128 : 0;
	*scale =
	    rounded(max_magnitude < 1e-6f ? 0 : (low < 0 ? 127.f : 255.f) / max_magnitude, p->type);
}

static void to_bytes(const struct image_format *p, const double *v, unsigned char *out)
{
	double scale, offset;

	choose_range(p, v, &scale, &offset);
	for (int64_t i = 0; i < p->pixels; i++, v += p->depth, out += p->depth) {
		if (!finite_pixel(v, p->depth)) {
			memcpy(out, p->bad_colour, (size_t)p->depth);
			continue;
		}
		for (int64_t k = 0; k < p->depth; k++)
			out[k] = (unsigned char)rounded(rounded(v[k] * scale, p->type) + offset,
							p->type);
	}
}

/* t: NULL for red. */
static int read_bad_colour(const struct mu_tensor *t, struct image_format *p, struct mu_err *err)
{
	memcpy(p->bad_colour, (unsigned char[]){255, 0, 0, 255}, 4);
	if (!t)
		return 0;
	if (t->dtype != MU_UINT8 || t->shape.rank != 1)
		return mu_invalid(err, "bad_color must be a vector of uint8, not %s of shape %s",
				  mu_dtype_name(t->dtype), mu_shape_str(&t->shape));
	if (t->shape.count < p->depth)
		return mu_invalid(
		    err,
		    "expected depth <= bad_color.size, got depth = %lld, bad_color.size = %lld",
		    (long long)p->depth, (long long)t->shape.count);
	memcpy(p->bad_colour, t->data, (size_t)p->depth);
	return 0;
}

/* Adds a value for each of the first `max_images` images, with the names of TensorFlow. */
static int put_images(const struct mu_tensor *in, const struct image_format *p, const char *tag,
		      int64_t max_images, struct mu_buf *b, struct mu_err *err)
{
	size_t image_elements = (size_t)(p->pixels * p->depth);
	MU_AUTO_FREE unsigned char *bytes = malloc(image_elements + 1);
	MU_AUTO_FREE double *wide =
	    in->dtype == MU_UINT8 ? NULL : malloc(image_elements * sizeof *wide + 1);

	if (!bytes || (!wide && in->dtype != MU_UINT8))
		return mu_fail(err, MU_RESOURCE_EXHAUSTED, "no memory for an image of %s",
			       mu_shape_str(&in->shape));
	for (int64_t i = 0; i < in->shape.dim[0] && i < max_images; i++) {
		const char *from =
		    (const char *)in->data + (size_t)i * image_elements * mu_dtype_size(in->dtype);
		MU_AUTO_FREE char *name = max_images > 1
					      ? mu_xasprintf("%s/image/%lld", tag, (long long)i)
					      : mu_xasprintf("%s/image", tag);
		if (wide) {
			convert(MU_DOUBLE, wide, in->dtype, from, (int64_t)image_elements);
			to_bytes(p, wide, bytes);
		}

		MU_RETURN_IF_ERROR(mu_summary_image(
		    b, name, wide ? bytes : (const unsigned char *)from, (uint32_t)in->shape.dim[1],
		    (uint32_t)in->shape.dim[2], (unsigned)p->depth, err));
	}
	return 0;
}

/* Input `tag_at` is the tag, the next input the images. */
static int make_image_summary(const struct kernel_call *c, unsigned tag_at,
			      const struct mu_tensor *bad, struct mu_buf *b, struct mu_err *err)
{
	int64_t max_images = args_attr_int(c->node, "max_images", 3);
	const struct mu_tensor *in = kernel_in(c, tag_at + 1);
	const int64_t *d = in->shape.dim;
	MU_AUTO_FREE char *tag = NULL;

	MU_RETURN_IF_ERROR(args_string(c, tag_at, &tag, err));
	if (in->shape.rank != 4 || (d[3] != 1 && d[3] != 3 && d[3] != 4) || d[1] > INT32_MAX ||
	    d[2] > INT32_MAX)
		return mu_invalid(err, "Tensor must be 4-D with last dim 1, 3, or 4, not %s",
				  mu_shape_str(&in->shape));
	if (max_images < 1)
		return mu_invalid(err, "max_images must be > 0, not %lld", (long long)max_images);
	/* the input may be a half that was widened to float: the attribute has the type */
	struct image_format p = {d[1] * d[2], d[3], args_attr_type(c->node, "T", in->dtype), {0}};
	MU_RETURN_IF_ERROR(read_bad_colour(bad, &p, err));
	return put_images(in, &p, tag, max_images, b, err);
}

static int image_summary(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_attr *a = mu_node_attr(c->node, "bad_color");
	MU_AUTO_BUF b = {0};

	MU_RETURN_IF_ERROR(
	    make_image_summary(c, 0, a && a->kind == MU_ATTR_TENSOR ? a->tensor : NULL, &b, err));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int write_image_summary(struct kernel_call *c, struct mu_err *err)
{
	MU_AUTO_BUF b = {0};

	MU_RETURN_IF_ERROR(make_image_summary(c, 2, kernel_in(c, 4), &b, err));
	return summary_writer_put(c, &b, err);
}

static const struct kernel rows[] = {
    {"ImageSummary", KERNEL_EXPENSIVE, .run = image_summary},
    {"WriteImageSummary", KERNEL_EXPENSIVE, .run = write_image_summary},
};
KERNEL_TABLE(image_summary, rows)
