/* SPDX-License-Identifier: Apache-2.0 */
/* libpng reports errors by longjmp.  All resources are members of a struct that the function with
 * setjmp does not modify, so they can be released after a jump. */
#include "lib/io/png.h"

#include <setjmp.h>
#include <stdio.h>

#include <png.h>
#include <zlib.h>

/* TensorFlow's limits for sides and pixels, and deflate's largest compression ratio. */
enum { MAX_SIDE = 1 << 27, MAX_PIXELS = 1 << 29, MAX_INFLATION = 1032 };

static void ignore_warning(png_structp png, png_const_charp message)
{
}

/* ---- reader ---- */

static void on_read_error(png_structp png, png_const_charp message)
{
	struct mu_png *p = png_get_error_ptr(png);

	snprintf(p->message, sizeof p->message, "%s", message);
	png_longjmp(png, 1);
}

static void read_bytes(png_structp png, png_bytep to, size_t n)
{
	struct mu_png *p = png_get_io_ptr(png);

	if (n > p->remaining.len)
		png_error(png, "the file is truncated");
	memcpy(to, p->remaining.data, n);
	p->remaining.data += n;
	p->remaining.len -= n;
}

static bool read_info(struct mu_png *p)
{
	/* Skips unused text chunks; libpng would store a thousand of 8 MB each. */
	static const png_byte skipped[] = "tEXt\0zTXt\0iTXt\0sPLT";

	if (setjmp(png_jmpbuf(p->png)))
		return false;
	if (!(p->info = png_create_info_struct(p->png)))
		png_error(p->png, "out of memory");
	png_set_read_fn(p->png, p, read_bytes);
	png_set_keep_unknown_chunks(p->png, PNG_HANDLE_CHUNK_NEVER, skipped, 4);
	png_read_info(p->png, p->info);
	return true;
}

static bool has_transparency(const struct mu_png *p)
{
	return png_get_valid(p->png, p->info, PNG_INFO_tRNS);
}

static int check_size(const struct mu_png *p, struct mu_err *err)
{
	if (p->width >= MAX_SIDE || p->height >= MAX_SIDE ||
	    (uint64_t)p->width * p->height >= MAX_PIXELS)
		return mu_fail(err, MU_INVALID_ARGUMENT, "PNG size too large for int: %u by %u",
			       p->width, p->height);
	if (png_get_rowbytes(p->png, p->info) * p->height / MAX_INFLATION > p->file.len)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Invalid PNG data, size %zu: too short for %u by %u pixels",
			       p->file.len, p->width, p->height);
	return 0;
}

int mu_png_open(struct mu_png *p, struct mu_span file, struct mu_err *err)
{
	int rc;

	*p = (struct mu_png){.file = file, .remaining = file};
	p->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, p, on_read_error, ignore_warning);
	if (!p->png || !read_info(p)) {
		mu_png_fini(p);
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Invalid PNG. Failed to initialize decoder. %s", p->message);
	}
	p->width = png_get_image_width(p->png, p->info);
	p->height = png_get_image_height(p->png, p->info);
	p->channels = png_get_channels(p->png, p->info);
	if (png_get_color_type(p->png, p->info) == PNG_COLOR_TYPE_PALETTE)
		p->channels = has_transparency(p) ? 4 : 3;
	if ((rc = check_size(p, err)))
		mu_png_fini(p);
	return rc;
}

/* Sets the same conversions as TensorFlow.  Therefore an image of fewer than 8 bits without alpha
 * has its largest sample value as alpha (3 for 2 bits), not 255. */
static void set_conversions(const struct mu_png *p, unsigned channels, unsigned bits)
{
	unsigned colour = png_get_color_type(p->png, p->info);
	unsigned depth = png_get_bit_depth(p->png, p->info);
	bool is_grey = !(colour & PNG_COLOR_MASK_COLOR), has_alpha = colour & PNG_COLOR_MASK_ALPHA;

	if (channels % 2 && (has_alpha || has_transparency(p)))
		png_set_strip_alpha(p->png);
	else if (channels % 2 == 0 && !has_alpha && has_transparency(p))
		png_set_tRNS_to_alpha(p->png);
	else if (channels % 2 == 0 && !has_alpha)
		png_set_add_alpha(p->png, (1u << depth) - 1, PNG_FILLER_AFTER);
	if (depth == 16 && bits == 8)
		png_set_strip_16(p->png);
	if (depth == 16 && bits == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		png_set_swap(p->png);
	png_set_packing(p->png);
	if (colour == PNG_COLOR_TYPE_PALETTE)
		png_set_palette_to_rgb(p->png);
	if (is_grey && depth < 8)
		png_set_expand_gray_1_2_4_to_8(p->png);
	if (is_grey && channels >= 3)
		png_set_gray_to_rgb(p->png);
	else if (!is_grey && channels < 3)
		png_set_rgb_to_gray(p->png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
}

/* Converts a row of n samples of 8 bits to 16, in place. */
static void widen(unsigned char *row, size_t n)
{
	for (size_t i = n; i-- > 0;)
		memcpy(row + 2 * i, &(uint16_t){(uint16_t)(row[i] * 257)}, 2);
}

static bool read_pixels(struct mu_png *p, unsigned channels, unsigned bits, unsigned char *out)
{
	size_t n = (size_t)p->width * channels, row_bytes = n * bits / 8;
	bool is_widened = bits == 16 && png_get_bit_depth(p->png, p->info) <= 8;

	if (setjmp(png_jmpbuf(p->png)))
		return false;
	set_conversions(p, channels, bits);
	int passes = png_set_interlace_handling(p->png);
	png_read_update_info(p->png, p->info);
	if (png_get_rowbytes(p->png, p->info) != (is_widened ? n : row_bytes))
		png_error(p->png, "unexpected row size");
	for (int pass = 0; pass < passes; pass++)
		for (uint32_t y = 0; y < p->height; y++)
			png_read_row(p->png, out + y * row_bytes, NULL);
	png_read_end(p->png, NULL);
	for (uint32_t y = 0; is_widened && y < p->height; y++)
		widen(out + y * row_bytes, n);
	return true;
}

int mu_png_read(struct mu_png *p, unsigned channels, unsigned bits, void *out, struct mu_err *err)
{
	return read_pixels(p, channels, bits, out)
		   ? 0
		   : mu_fail(err, MU_INVALID_ARGUMENT, "Invalid PNG data, size %zu: %s",
			     p->file.len, p->message);
}

void mu_png_fini(struct mu_png *p)
{
	png_destroy_read_struct(&p->png, &p->info, NULL);
}

/* ---- writer ---- */

struct writing {
	png_structp png;
	png_infop info;
	struct mu_buf *out;
	char message[128];
};

static void on_write_error(png_structp png, png_const_charp message)
{
	struct writing *w = png_get_error_ptr(png);

	snprintf(w->message, sizeof w->message, "%s", message);
	png_longjmp(png, 1);
}

static void write_bytes(png_structp png, png_bytep from, size_t n)
{
	mu_buf_put(png_get_io_ptr(png), from, n);
}

static bool write_image(struct writing *w, const unsigned char *pixels,
			const struct mu_png_shape *s)
{
	static const int colours[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
				      PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};

	if (setjmp(png_jmpbuf(w->png)))
		return false;
	if (!(w->info = png_create_info_struct(w->png)))
		png_error(w->png, "out of memory");
	png_set_write_fn(w->png, w->out, write_bytes, NULL);
	png_set_compression_level(w->png, s->level);
	png_set_compression_mem_level(w->png, MAX_MEM_LEVEL);
	png_set_IHDR(w->png, w->info, s->width, s->height, (int)s->bits, colours[s->channels],
		     PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
	png_write_info(w->png, w->info);
	if (s->bits == 16 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
		png_set_swap(w->png);
	for (uint32_t y = 0; y < s->height; y++)
		png_write_row(w->png, pixels + (size_t)y * s->width * s->channels * s->bits / 8);
	png_write_end(w->png, NULL);
	return true;
}

int mu_png_write(struct mu_buf *out, const void *pixels, const struct mu_png_shape *s,
		 struct mu_err *err)
{
	struct writing w = {.out = out};
	size_t old_len = out->len;
	int rc = 0;

	if (!s->height || !s->width || !s->channels || s->channels > 4 ||
	    (s->bits != 8 && s->bits != 16))
		return mu_fail(
		    err, MU_INVALID_ARGUMENT,
		    "an image of %u x %u pixels with %u channels of %u bits: expected at least one "
		    "pixel, 1 to 4 channels, and 8 or 16 bits",
		    s->height, s->width, s->channels, s->bits);
	w.png = png_create_write_struct(PNG_LIBPNG_VER_STRING, &w, on_write_error, ignore_warning);
	if (!w.png || !write_image(&w, pixels, s)) {
		out->len = old_len;
		rc = mu_fail(err, MU_INTERNAL, "PNG encoding failed: %s", w.message);
	}
	png_destroy_write_struct(&w.png, &w.info);
	return rc;
}
