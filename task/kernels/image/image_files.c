/* SPDX-License-Identifier: Apache-2.0 */
/* Image files: PNG, JPEG, GIF and BMP, decoded and (PNG, JPEG) encoded. The file's content decides
 * the format, not the name of the op: DecodePng also accepts JPEG, as in TensorFlow. */
#include "lib/io/bmp.h"
#include "lib/io/png.h"
#include "task/kernels/engine/args.h"
#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/kernels/image/gif.h"
#include "task/kernels/image/jpeg.h"

/* ---- formats ---- */

#define PNG_MAGIC  "\x89PNG\r\n\x1a\n"
#define JPEG_MAGIC "\xff\xd8\xff"
#define GIF_MAGIC  "GIF8"
#define BMP_MAGIC  "BM"

static bool begins_with(const struct kernel_call *c, const char *magic)
{
	struct mu_span file = elems_span(kernel_in(c, 0), 0);
	size_t n = strlen(magic);

	return file.len >= n && memcmp(file.data, magic, n) == 0;
}

static int unknown_format(const struct kernel_call *c, struct mu_err *err)
{
	return mu_invalid(err,
			  elems_span(kernel_in(c, 0), 0).len
			      ? "Unknown image file format. One of JPEG, PNG, GIF, BMP required."
			      : "Input is empty.");
}

/* Converts output 0 from bytes to pixels of type t. */
static int widen_pixels(struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
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

/* ---- decoding ---- */

static unsigned char *output_memory(void *arg, const struct jpeg_shape *s, struct mu_err *err)
{
	struct mu_tensor *out;
	struct mu_shape shape;

	if (mu_shape_set(&shape, 3, (int64_t[]){s->height, s->width, s->channels}, err) ||
	    kernel_out(arg, 0, MU_UINT8, &shape, &out, err))
		return NULL;
	return out->data;
}

static int read_jpeg_options(const struct kernel_call *c, struct jpeg_read_options *options,
			     struct mu_err *err)
{
	int64_t channels = args_attr_int(c->node, "channels", 0);
	int64_t ratio = args_attr_int(c->node, "ratio", 1);
	const char *method = args_attr_string(c->node, "dct_method", "");

	if (channels != 0 && channels != 1 && channels != 3)
		return mu_invalid(err, "channels must be 0, 1, or 3 for JPEG, got %lld",
				  (long long)channels);
	if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
		return mu_invalid(err, "ratio must be 1, 2, 4, or 8, got %lld", (long long)ratio);
	if (*method && strcmp(method, "INTEGER_FAST") && strcmp(method, "INTEGER_ACCURATE"))
		return mu_invalid(
		    err, "dct_method must be one of {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'}");
	*options = (struct jpeg_read_options){
	    .channels = (int)channels,
	    .ratio = (unsigned)ratio,
	    .fancy = args_attr_bool(c->node, "fancy_upscaling", true),
	    .fast = strcmp(method, "INTEGER_ACCURATE") != 0,
	    .truncated_ok = args_attr_bool(c->node, "try_recover_truncated", false)};
	return 0;
}

static int decode_from_jpeg(struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	struct jpeg_read_options options;

	MU_RETURN_IF_ERROR(read_jpeg_options(c, &options, err));
	MU_RETURN_IF_ERROR(
	    jpeg_read(elems_span(kernel_in(c, 0), 0), &options, output_memory, c, err));
	return widen_pixels(c, t, err);
}

static int decode_from_bmp(struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	int64_t channels = args_attr_int(c->node, "channels", 0);
	struct mu_tensor *out;
	struct mu_bmp bmp;

	if (channels && channels != 3 && channels != 4)
		return mu_invalid(err, "`channels` must be 0, 3 or 4 for BMP, but got %lld",
				  (long long)channels);
	MU_RETURN_IF_ERROR(mu_bmp_open(&bmp, elems_span(kernel_in(c, 0), 0), err));
	unsigned n = channels ? (unsigned)channels : bmp.channels;
	MU_RETURN_IF_ERROR(
	    kernel_out_dims(c, 0, MU_UINT8, 3, (int64_t[]){bmp.height, bmp.width, n}, &out, err));
	mu_bmp_pixels(&bmp, n, out->data);
	return widen_pixels(c, t, err);
}

/* True if the output has a dimension of frames. */
static bool has_frames(const struct kernel_call *c)
{
	if (strcmp(c->node->op, "DecodeImage") == 0)
		return args_attr_bool(c->node, "expand_animations", true);
	return strcmp(c->node->op, "DecodeGif") == 0;
}

static unsigned char *frames_memory(void *arg, const struct gif_shape *s, struct mu_err *err)
{
	struct kernel_call *c = arg;
	bool frames = has_frames(c);
	struct mu_tensor *out;

	if (!frames && s->frames > 1) {
		mu_invalid(err,
			   "Got %lld frames, but animated gifs can only be decoded by "
			   "tf.io.decode_gif or tf.io.decode_image",
			   (long long)s->frames);
		return NULL;
	}
	if (kernel_out_dims(c, 0, MU_UINT8, frames ? 4 : 3,
			    (int64_t[]){s->frames, s->height, s->width, 3} + !frames, &out, err))
		return NULL;
	return out->data;
}

static int decode_from_gif(struct kernel_call *c, enum mu_dtype t, struct mu_err *err)
{
	int64_t channels = args_attr_int(c->node, "channels", 0);
	bool all_frames = has_frames(c) || strcmp(c->node->op, "DecodeImage");

	if (channels && channels != 3)
		return mu_invalid(err, "channels must be 0 or 3 for GIF, got %lld",
				  (long long)channels);
	MU_RETURN_IF_ERROR(
	    gif_read(elems_span(kernel_in(c, 0), 0), all_frames, frames_memory, c, err));
	return widen_pixels(c, t, err);
}

static int decode_gif(struct kernel_call *c, struct mu_err *err)
{
	return begins_with(c, GIF_MAGIC) ? decode_from_gif(c, MU_UINT8, err)
					 : unknown_format(c, err);
}

static int image_open_file(const struct kernel_call *c, struct mu_png *png, struct mu_err *err)
{
	struct mu_span file = elems_span(kernel_in(c, 0), 0);

	return begins_with(c, PNG_MAGIC) ? mu_png_open(png, file, err) : unknown_format(c, err);
}

/* Decodes the pixels as type t; floats are between 0 and 1. */
static int output_pixels(struct kernel_call *c, struct mu_png *png, unsigned channels,
			 enum mu_dtype t, struct mu_err *err)
{
	MU_AUTO_TENSOR wide = {0};
	struct mu_tensor *out;
	struct mu_shape shape;

	MU_RETURN_IF_ERROR(
	    mu_shape_set(&shape, 3, (int64_t[]){png->height, png->width, channels}, err));
	MU_RETURN_IF_ERROR(kernel_out(c, 0, t, &shape, &out, err));
	if (t != MU_FLOAT)
		return mu_png_read(png, channels, t == MU_UINT8 ? 8 : 16, out->data, err);
	MU_RETURN_IF_ERROR(mu_tensor_new(&wide, MU_UINT16, &shape, err));
	MU_RETURN_IF_ERROR(mu_png_read(png, channels, 16, wide.data, err));
	for (int64_t i = 0; i < shape.count; i++)
		MU_DATA(float, out)[i] = (float)MU_DATA(uint16_t, &wide)[i] * (1.f / 65535);
	return 0;
}

static int decode_from_png(struct kernel_call *c, struct mu_err *err)
{
	int64_t channels = args_attr_int(c->node, "channels", 0);
	enum mu_dtype t = args_attr_type(c->node, "dtype", MU_UINT8);
	struct mu_png png;
	int rc;

	if (kernel_in(c, 0)->shape.rank)
		return mu_invalid(err, "`contents` must be scalar but got shape%s",
				  mu_shape_str(&kernel_in(c, 0)->shape));
	if (channels < 0 || channels == 2 || channels > 4)
		return mu_invalid(err, "`channels` must be 0, 1, 3 or 4 but got %lld",
				  (long long)channels);
	if (t != MU_UINT8 && t != MU_UINT16 &&
	    (t != MU_FLOAT || strcmp(c->node->op, "DecodePng") == 0))
		return mu_invalid(err, "%s gives no pixels of type %s", c->node->op,
				  mu_dtype_name(t));
	if (begins_with(c, JPEG_MAGIC))
		return decode_from_jpeg(c, t, err);
	if (begins_with(c, GIF_MAGIC))
		return decode_from_gif(c, t, err);
	if (begins_with(c, BMP_MAGIC) && strcmp(c->node->op, "DecodePng"))
		return decode_from_bmp(c, t, err);
	MU_RETURN_IF_ERROR(image_open_file(c, &png, err));
	rc = output_pixels(c, &png, channels ? (unsigned)channels : png.channels, t, err);
	mu_png_fini(&png);
	return rc;
}

static int decode_bmp(struct kernel_call *c, struct mu_err *err)
{
	if (!begins_with(c, BMP_MAGIC))
		return unknown_format(c, err);
	return decode_from_bmp(c, MU_UINT8, err);
}

static int decode_jpeg(struct kernel_call *c, struct mu_err *err)
{
	struct jpeg_read_options options;

	MU_RETURN_IF_ERROR(read_jpeg_options(c, &options, err));
	if (begins_with(c, JPEG_MAGIC))
		return decode_from_jpeg(c, MU_UINT8, err);
	return decode_from_png(c, err); /* another format, or the error for an unknown one */
}

static int decode_and_crop(struct kernel_call *c, struct mu_err *err)
{
	struct jpeg_read_options options;
	int64_t window[4];
	int n = 0, rc = read_jpeg_options(c, &options, err);

	if (rc || (rc = args_ints(c, 1, window, 4, &n, err)))
		return rc;
	if (!begins_with(c, JPEG_MAGIC))
		return begins_with(c, PNG_MAGIC)
			   ? mu_invalid(err, "DecodeAndCropJpeg operation can run on JPEG "
					     "only, but detected PNG.")
			   : unknown_format(c, err);
	options.crops = true;
	options.top = window[0];
	options.left = window[1];
	options.height = window[2];
	options.width = window[3];
	return jpeg_read(elems_span(kernel_in(c, 0), 0), &options, output_memory, c, err);
}

static int extract_shape(struct kernel_call *c, struct mu_err *err)
{
	enum mu_dtype t = args_attr_type(c->node, "output_type", MU_INT32);
	struct mu_tensor *out;
	struct jpeg_shape s;

	MU_RETURN_IF_ERROR(jpeg_shape(elems_span(kernel_in(c, 0), 0), &s, err));
	MU_RETURN_IF_ERROR(kernel_out_vec(c, 0, t, 3, &out, err));
	const int64_t sides[] = {s.height, s.width, s.channels};
	for (int i = 0; i < 3; i++)
		mu_tensor_set_int(out, i, sides[i]);
	return 0;
}

/* ---- encoding ---- */

/* One PNG for each image of a batch of any rank. */
static int encode_png(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	int64_t level = args_attr_int(c->node, "compression", -1);
	const int rank = in->shape.rank;
	const int64_t *d = in->shape.dim + rank - 3;
	struct mu_shape batch;
	struct mu_tensor *out;
	MU_AUTO_BUF b = {0};

	if (rank < 3 || d[2] < 1 || d[2] > 4 || d[0] > INT32_MAX || d[1] > INT32_MAX ||
	    level < -1 || level > 9)
		return mu_invalid(err,
				  "image must be at least 3-dimensional with 1, 2, 3 or 4 "
				  "channels, and compression -1 to 9: %s, %lld",
				  mu_shape_str(&in->shape), (long long)level);
	const struct mu_png_shape shape = {(uint32_t)d[0], (uint32_t)d[1], (unsigned)d[2],
					   in->dtype == MU_UINT8 ? 8 : 16, (int)level};
	MU_RETURN_IF_ERROR(mu_shape_set(&batch, rank - 3, in->shape.dim, err));
	if (batch.count && !in->shape.count)
		return mu_fail(err, MU_INTERNAL, "PNG encoding failed: the image is empty");
	MU_RETURN_IF_ERROR(kernel_out(c, 0, MU_STRING, &batch, &out, err));
	const size_t image_bytes = (size_t)(d[0] * d[1] * d[2]) * mu_dtype_size(in->dtype);
	for (int64_t i = 0; i < batch.count; i++) {
		mu_buf_clear(&b);
		MU_RETURN_IF_ERROR(mu_png_write(
		    &b, (const char *)in->data + (size_t)i * image_bytes, &shape, err));
		mu_string_set(&MU_DATA(struct mu_string, out)[i], b.data, b.len);
	}
	return 0;
}

static int write_jpeg(struct kernel_call *c, const struct jpeg_write_options *options,
		      int64_t format, struct mu_err *err)
{
	const struct mu_tensor *in = kernel_in(c, 0);
	MU_AUTO_BUF b = {0};

	if (in->shape.rank != 3 || (in->shape.dim[2] != 1 && in->shape.dim[2] != 3) ||
	    (format && format != in->shape.dim[2]) || options->quality < 0 ||
	    options->quality > 100)
		return mu_invalid(err,
				  "image must be 3-dimensional with 1 or 3 channels, as its "
				  "format, and quality 0 to 100: %s, %d",
				  mu_shape_str(&in->shape), options->quality);
	if (!in->shape.count || in->shape.dim[0] > 65500 || in->shape.dim[1] > 65500)
		return mu_fail(err, MU_INTERNAL, "JPEG encoding failed: no file is of %s",
			       mu_shape_str(&in->shape));
	struct jpeg_shape s = {in->shape.dim[0], in->shape.dim[1], in->shape.dim[2]};
	MU_RETURN_IF_ERROR(jpeg_write(&b, in->data, &s, options, err));
	return kernel_out_string(c, 0, mu_buf_span(&b), err);
}

static int encode_jpeg(struct kernel_call *c, struct mu_err *err)
{
	const struct mu_node *n = c->node;
	const char *format = args_attr_string(n, "format", "");
	const char *unit = args_attr_string(n, "density_unit", "in");
	int64_t quality = args_attr_int(n, "quality", 95), x = args_attr_int(n, "x_density", 300),
		y = args_attr_int(n, "y_density", 300);

	if ((*format && strcmp(format, "grayscale") && strcmp(format, "rgb")) ||
	    (strcmp(unit, "in") && strcmp(unit, "cm")) || quality < 0 || quality > 100 || x < 0 ||
	    y < 0 || x > UINT16_MAX || y > UINT16_MAX)
		return mu_invalid(err, "format must be '', 'grayscale' or 'rgb', density_unit 'in' "
				       "or 'cm', quality 0 to 100, densities 16 bits");
	return write_jpeg(c,
			  &(struct jpeg_write_options){
			      .quality = (int)quality,
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

	MU_RETURN_IF_ERROR(args_int(c, 1, &quality, err));
	if (quality < 0 || quality > 100)
		return mu_invalid(err, "quality must be in [0,100], got %lld", (long long)quality);
	return write_jpeg(c,
			  &(struct jpeg_write_options){.quality = (int)quality,
						       .downsample = true,
						       .density_unit = 1,
						       .x_density = 300,
						       .y_density = 300},
			  0, err);
}

static const struct kernel rows[] = {
    {"DecodePng DecodeImage", KERNEL_EXPENSIVE, .run = decode_from_png},
    {"DecodeGif", KERNEL_EXPENSIVE, .run = decode_gif},
    {"DecodeBmp", KERNEL_EXPENSIVE, .run = decode_bmp},
    {"DecodeJpeg", KERNEL_EXPENSIVE, .run = decode_jpeg},
    {"DecodeAndCropJpeg", KERNEL_EXPENSIVE, .run = decode_and_crop},
    {"ExtractJpegShape", .run = extract_shape},
    {"EncodePng", KERNEL_EXPENSIVE, .run = encode_png},
    {"EncodeJpeg", KERNEL_EXPENSIVE, .run = encode_jpeg},
    {"EncodeJpegVariableQuality", KERNEL_EXPENSIVE, .run = encode_variable},
};
KERNEL_TABLE(image_image_files, rows)
