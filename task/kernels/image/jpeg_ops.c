/* SPDX-License-Identifier: Apache-2.0 */
/* JPEG files to pixels and back. */
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/image/image.h"
#include "task/kernels/image/jpeg.h"

static unsigned char *room(void *arg, const struct jpeg_shape *s, struct mu_err *err)
{
	struct mu_tensor *out;
	struct mu_shape shape;

	if (mu_shape_set(&shape, 3, (int64_t[]){s->height, s->width, s->channels}, err) ||
	    kernel_out(arg, 0, MU_UINT8, &shape, &out, err))
		return NULL;
	return out->data;
}

static int read_how(const struct kernel_call *c, struct jpeg_reading *how, struct mu_err *err)
{
	int64_t channels = args_attr_int(c->node, "channels", 0);
	int64_t ratio = args_attr_int(c->node, "ratio", 1);
	const char *method = args_attr_string(c->node, "dct_method", "");
	int rc = args_type(c, 0, MU_STRING, err);

	if (rc || (rc = args_rank(c, 0, 0, err)))
		return rc;
	if (channels != 0 && channels != 1 && channels != 3)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "channels must be 0, 1, or 3 for JPEG, got %lld",
			       (long long)channels);
	if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
		return mu_fail(err, MU_INVALID_ARGUMENT, "ratio must be 1, 2, 4, or 8, got %lld",
			       (long long)ratio);
	if (*method && strcmp(method, "INTEGER_FAST") && strcmp(method, "INTEGER_ACCURATE"))
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "dct_method must be one of {'', 'INTEGER_FAST', "
			       "'INTEGER_ACCURATE'}");
	*how = (struct jpeg_reading){.channels = (int)channels,
				     .ratio = (unsigned)ratio,
				     .fancy = args_attr_bool(c->node, "fancy_upscaling", true),
				     .fast = strcmp(method, "INTEGER_ACCURATE") != 0,
				     .truncated_ok =
					 args_attr_bool(c->node, "try_recover_truncated", false)};
	return 0;
}

bool image_is_jpeg(const struct kernel_call *c)
{
	const struct mu_tensor *in = kernel_in(c, 0);

	return in->dtype == MU_STRING && !in->shape.rank && elems_span(in, 0).len >= 3 &&
	       memcmp(elems_span(in, 0).data, "\xff\xd8\xff", 3) == 0;
}

int image_widen(struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	struct mu_tensor narrow = c->out[0].tensor, *out;

	if (t == MU_UINT8)
		return 0;
	c->out[0].tensor = (struct mu_tensor){0};
	int rc = kernel_out(c, 0, t, &narrow.shape, &out, err);
	for (int64_t i = 0; i < narrow.shape.count && !rc; i++)
		if (t == MU_FLOAT)
			MU_DATA(float, out)[i] = (float)MU_DATA(uint8_t, &narrow)[i] * (1.f / 255);
		else
			MU_DATA(uint16_t, out)[i] = (uint16_t)(MU_DATA(uint8_t, &narrow)[i] << 8);
	mu_tensor_unref(&narrow);
	return rc;
}

int image_from_jpeg(struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	struct jpeg_reading how;
	int rc = read_how(c, &how, err);

	if (rc || (rc = jpeg_read(elems_span(kernel_in(c, 0), 0), &how, room, c, err)))
		return rc;
	return image_widen(c, t, err);
}

static int decode(struct kernel_call *c, struct mu_err *err)
{
	struct jpeg_reading how;
	int rc = read_how(c, &how, err);

	if (rc)
		return rc;
	if (image_is_jpeg(c))
		return image_from_jpeg(c, MU_UINT8, err);
	return image_from_png(c, err); /* or what else it is, or why it is nothing */
}

static int decode_and_crop(struct kernel_call *c, struct mu_err *err)
{
	struct jpeg_reading how;
	int64_t window[4];
	int n = 0, rc = read_how(c, &how, err);

	if (rc || (rc = args_rank(c, 1, 1, err)) || (rc = args_ints(c, 1, window, 4, &n, err)))
		return rc;
	if (n != 4)
		return mu_fail(err, MU_INVALID_ARGUMENT, "crop_window must have four elements");
	if (!image_is_jpeg(c))
		return image_is_png(c)
			   ? mu_fail(err, MU_INVALID_ARGUMENT,
				     "DecodeAndCropJpeg operation can run on JPEG only, but "
				     "detected PNG.")
			   : image_unknown(c, err);
	how.crops = true;
	how.top = window[0];
	how.left = window[1];
	how.height = window[2];
	how.width = window[3];
	return jpeg_read(elems_span(kernel_in(c, 0), 0), &how, room, c, err);
}

static int extract_shape(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "output_type", MU_INT32);
	struct mu_shape three = mu_shape_vec(3);
	struct mu_tensor *out;
	struct jpeg_shape s;
	int rc;

	if ((rc = args_type(c, 0, MU_STRING, err)) || (rc = args_rank(c, 0, 0, err)))
		return rc;
	if (t != MU_INT32 && t != MU_INT64)
		return mu_fail(err, MU_INVALID_ARGUMENT, "a shape is int32 or int64");
	if ((rc = jpeg_shape(elems_span(kernel_in(c, 0), 0), &s, err)) ||
	    (rc = kernel_out(c, 0, t, &three, &out, err)))
		return rc;
	const int64_t sides[] = {s.height, s.width, s.channels};
	for (int i = 0; i < 3; i++)
		if (t == MU_INT64)
			MU_DATA(int64_t, out)[i] = sides[i];
		else
			MU_DATA(int32_t, out)[i] = (int32_t)sides[i];
	return 0;
}

/* ---- to a file ---- */

static int write_picture(struct kernel_call *c, const struct jpeg_writing *how, int64_t format,
			 struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_BUF b = {0};
	struct mu_tensor t;
	int rc = args_type(c, 0, MU_UINT8, err);

	if (rc)
		return rc;
	if (in->shape.rank != 3 || (in->shape.dim[2] != 1 && in->shape.dim[2] != 3) ||
	    (format && format != in->shape.dim[2]) || how->quality < 0 || how->quality > 100)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "image must be 3-dimensional with 1 or 3 channels, as its format, "
			       "and quality 0 to 100: %s, %d",
			       mu_shape_str(&in->shape), how->quality);
	if (!in->shape.count || in->shape.dim[0] > 65500 || in->shape.dim[1] > 65500)
		return mu_fail(err, MU_INTERNAL, "JPEG encoding failed: no file is of %s",
			       mu_shape_str(&in->shape));
	struct jpeg_shape s = {in->shape.dim[0], in->shape.dim[1], in->shape.dim[2]};
	if ((rc = jpeg_write(&b, in->data, &s, how, err)) ||
	    (rc = mu_tensor_string(&t, b.data, b.len, err)))
		return rc;
	kernel_out_take(c, 0, t);
	return 0;
}

static int encode(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_node *n = c->node;
	const char *format = args_attr_string(n, "format", "");
	const char *unit = args_attr_string(n, "density_unit", "in");
	int64_t quality = args_attr_int(n, "quality", 95), x = args_attr_int(n, "x_density", 300),
		y = args_attr_int(n, "y_density", 300);

	if ((*format && strcmp(format, "grayscale") && strcmp(format, "rgb")) ||
	    (strcmp(unit, "in") && strcmp(unit, "cm")) || quality < 0 || quality > 100 || x < 0 ||
	    y < 0 || x > UINT16_MAX || y > UINT16_MAX)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "format must be '', 'grayscale' or 'rgb', density_unit 'in' or "
			       "'cm', quality 0 to 100, densities 16 bits");
	return write_picture(
	    c,
	    &(struct jpeg_writing){.quality = (int)quality,
				   .progressive = args_attr_bool(n, "progressive", false),
				   .optimize = args_attr_bool(n, "optimize_size", false),
				   .downsample = args_attr_bool(n, "chroma_downsampling", true),
				   .density_unit = strcmp(unit, "in") ? 2 : 1,
				   .x_density = (int)x,
				   .y_density = (int)y,
				   .xmp = mu_span_of(args_attr_string(n, "xmp_metadata", ""))},
	    !*format                ? 0
	    : strcmp(format, "rgb") ? 1
				    : 3,
	    err);
}

static int encode_variable(struct kernel_call *c, struct mu_err *err)
{
	int64_t quality;
	int rc = args_int(c, 1, &quality, err);

	if (rc)
		return rc;
	if (quality < 0 || quality > 100)
		return mu_fail(err, MU_INVALID_ARGUMENT, "quality must be in [0,100], got %lld",
			       (long long)quality);
	return write_picture(c,
			     &(struct jpeg_writing){.quality = (int)quality,
						    .downsample = true,
						    .density_unit = 1,
						    .x_density = 300,
						    .y_density = 300},
			     0, err);
}

static const struct kernel rows[] = {
    {"DecodeJpeg", KERNEL_EXPENSIVE, .run = decode},
    {"DecodeAndCropJpeg", KERNEL_EXPENSIVE, .run = decode_and_crop},
    {"ExtractJpegShape", .run = extract_shape},
    {"EncodeJpeg", KERNEL_EXPENSIVE, .run = encode},
    {"EncodeJpegVariableQuality", KERNEL_EXPENSIVE, .run = encode_variable},
};
KERNEL_TABLE(image_jpeg, rows)
