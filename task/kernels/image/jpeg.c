/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg reports errors by longjmp. Everything a decoder or encoder owns is in one struct on the
 * heap, which is still valid after the jump. */
#include "task/kernels/image/jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum {
	MOST_BYTES = 1 << 29, /* of pixels: TensorFlow reads no larger ones */
	MOST_SCANS = 500,     /* a small file may have many, each as long as the picture */
};

struct jpeg_error {
	struct jpeg_error_mgr mgr; /* first: libjpeg hands it back */
	jmp_buf out;
	char message[JMSG_LENGTH_MAX];
};

static void jpeg_leave(j_common_ptr c)
{
	struct jpeg_error *t = (struct jpeg_error *)c->err;

	c->err->format_message(c, t->message);
	longjmp(t->out, 1);
}

static void say_nothing(j_common_ptr c)
{
}

static struct jpeg_error_mgr *catch_trouble(struct jpeg_error *t)
{
	jpeg_std_error(&t->mgr);
	t->mgr.error_exit = jpeg_leave;
	t->mgr.output_message = say_nothing;
	return &t->mgr;
}

/* ---- a file in memory as a source ---- */

struct reading {
	struct jpeg_decompress_struct d;
	struct jpeg_error error;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	const struct jpeg_reading *how;
	unsigned char *row;
	int64_t left; /* where the crop begins in a row */
	bool good;
};

static void jpeg_nothing(j_decompress_ptr d)
{
}

static boolean no_more(j_decompress_ptr d)
{
	static const JOCTET end[] = {0xff, JPEG_EOI};
	const struct reading *r = d->client_data;

	if (!r->how || !r->how->truncated_ok)
		return FALSE; /* stops reading, with too few rows */
	d->src->next_input_byte = end;
	d->src->bytes_in_buffer = sizeof end;
	return TRUE;
}

static void jpeg_skip(j_decompress_ptr d, long n)
{
	struct jpeg_source_mgr *s = d->src;
	size_t most = n > 0 && (size_t)n < s->bytes_in_buffer ? (size_t)n : s->bytes_in_buffer;

	s->next_input_byte += n > 0 ? most : 0;
	s->bytes_in_buffer -= n > 0 ? most : 0;
}

static void count_scans(j_common_ptr c)
{
	struct reading *r = c->client_data;

	if (r->d.input_scan_number > MOST_SCANS)
		longjmp(r->error.out, 1);
}

static struct reading *reading_new(struct mu_span file, const struct jpeg_reading *how)
{
	struct reading *r = MU_NEW(struct reading);

	r->how = how;
	r->d.err = catch_trouble(&r->error);
	r->source = (struct jpeg_source_mgr){.next_input_byte = (const JOCTET *)file.data,
					     .bytes_in_buffer = file.len,
					     .init_source = jpeg_nothing,
					     .fill_input_buffer = no_more,
					     .skip_input_data = jpeg_skip,
					     .resync_to_restart = jpeg_resync_to_restart,
					     .term_source = jpeg_nothing};
	r->progress.progress_monitor = count_scans;
	return r;
}

static bool jpeg_read_head(struct reading *r)
{
	jpeg_create_decompress(&r->d);
	r->d.client_data = r;
	r->d.src = &r->source;
	r->d.progress = &r->progress;
	return jpeg_read_header(&r->d, TRUE) == JPEG_HEADER_OK;
}

/* Gives everything back; fails when the reading was not good. */
static int reading_end(struct reading *r, struct mu_err *err)
{
	int rc =
	    r->good || err->code != MU_OK
		? -(int)err->code
		: mu_invalid(err, "jpeg::Uncompress failed. Invalid JPEG data or crop window.%s%s",
			     r->error.message[0] ? " " : "", r->error.message);

	jpeg_destroy_decompress(&r->d);
	free(r->row);
	free(r);
	return rc;
}

int jpeg_shape(struct mu_span file, struct jpeg_shape *out, struct mu_err *err)
{
	struct reading *r = reading_new(file, NULL);

	err->code = MU_OK;
	if (!setjmp(r->error.out) && (r->good = jpeg_read_head(r)))
		*out =
		    (struct jpeg_shape){r->d.image_height, r->d.image_width, r->d.num_components};
	return reading_end(r, err);
}

/* ---- pixels ---- */

static bool jpeg_start(struct reading *r, struct jpeg_shape *out)
{
	int channels = r->how->channels;

	if (!jpeg_read_head(r))
		return false;
	if (!channels) /* four components are CMYK */
		channels = r->d.num_components > 3 ? 3 : r->d.num_components;
	if ((channels != 1 && channels != 3) ||
	    (int64_t)r->d.image_height * r->d.image_width * channels >= MOST_BYTES)
		return false;
	bool cmyk = r->d.jpeg_color_space == JCS_CMYK || r->d.jpeg_color_space == JCS_YCCK;
	r->d.out_color_space = channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
	r->d.do_fancy_upsampling = r->how->fancy;
	r->d.scale_num = 1;
	r->d.scale_denom = r->how->ratio;
	r->d.dct_method = r->how->fast ? JDCT_IFAST : JDCT_ISLOW;
	if (!jpeg_start_decompress(&r->d))
		return false;
	*out = (struct jpeg_shape){r->d.output_height, r->d.output_width, channels};
	return true;
}

static bool crop(struct reading *r, struct jpeg_shape *s)
{
	const struct jpeg_reading *w = r->how;

	if (!w->crops)
		return true;
	if (w->height <= 0 || w->width <= 0 || w->top < 0 || w->left < 0 ||
	    w->top > s->height - w->height || w->left > s->width - w->width)
		return false;
	JDIMENSION from = (JDIMENSION)w->left, columns = (JDIMENSION)w->width;
	jpeg_crop_scanline(&r->d, &from, &columns); /* begins where a block does */
	r->left = w->left - from;
	s->height = w->height;
	s->width = w->width;
	return true;
}

/* Adobe's programs write the colours inverted. */
static void cmyk_to_rgb(const unsigned char *from, int64_t n, bool inverted, unsigned char *to)
{
	for (; n; n--, from += 4, to += 3)
		for (int i = 0; i < 3; i++)
			to[i] = (unsigned char)(inverted ? from[3] * from[i] / 255
							 : (255 - from[3]) * (255 - from[i]) / 255);
}

static bool read_rows(struct reading *r, const struct jpeg_shape *s, unsigned char *to)
{
	size_t each = (size_t)(s->width * s->channels);
	JDIMENSION top = r->how->crops ? (JDIMENSION)r->how->top : 0;

	if (top && jpeg_skip_scanlines(&r->d, top) != top)
		return false;
	for (int64_t y = 0; y < s->height; y++, to += each) {
		JSAMPROW row = r->row;
		if (jpeg_read_scanlines(&r->d, &row, 1) != 1)
			return false;
		const unsigned char *from = r->row + r->left * r->d.output_components;
		if (r->d.out_color_space == JCS_CMYK)
			cmyk_to_rgb(from, s->width, r->d.saw_Adobe_marker, to);
		else
			memcpy(to, from, each);
	}
	return true;
}

int jpeg_read(struct mu_span file, const struct jpeg_reading *how, jpeg_alloc_fn *alloc, void *arg,
	      struct mu_err *err)
{
	struct reading *r = reading_new(file, how);
	struct jpeg_shape s;
	unsigned char *to;

	err->code = MU_OK;
	if (!setjmp(r->error.out) && jpeg_start(r, &s)) {
		r->row = mu_xcalloc((size_t)(s.width + 1), (size_t)r->d.output_components);
		if (crop(r, &s) && (to = alloc(arg, &s, err)))
			r->good = read_rows(r, &s, to);
	}
	return reading_end(r, err);
}

/* ---- writing ---- */

struct writing {
	struct jpeg_compress_struct c;
	struct jpeg_error error;
	unsigned char *file;
	unsigned long len;
	bool good;
};

static void jpeg_set_up(struct writing *w, const struct jpeg_shape *s,
			const struct jpeg_writing *how)
{
	w->c.image_width = (JDIMENSION)s->width;
	w->c.image_height = (JDIMENSION)s->height;
	w->c.input_components = (int)s->channels;
	w->c.in_color_space = s->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(&w->c);
	w->c.optimize_coding = how->optimize;
	w->c.density_unit = (UINT8)how->density_unit;
	w->c.X_density = (UINT16)how->x_density;
	w->c.Y_density = (UINT16)how->y_density;
	jpeg_set_quality(&w->c, how->quality, TRUE);
	if (how->progressive)
		jpeg_simple_progression(&w->c);
	for (int i = 0; !how->downsample && i < w->c.num_components; i++)
		w->c.comp_info[i].h_samp_factor = w->c.comp_info[i].v_samp_factor = 1;
}

static void write_xmp(struct writing *w, struct mu_span xmp)
{
	static const char name[] = "http://ns.adobe.com/xap/1.0/"; /* and its zero */
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, name, sizeof name);
	mu_buf_put(&b, xmp.data, xmp.len);
	jpeg_write_marker(&w->c, JPEG_APP0 + 1, (const JOCTET *)b.data, (unsigned)b.len);
}

static void jpeg_write_rows(struct writing *w, const unsigned char *pixels,
			    const struct jpeg_shape *s)
{
	for (int64_t y = 0; y < s->height; y++) {
		JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + y * s->width * s->channels);
		jpeg_write_scanlines(&w->c, &row, 1);
	}
}

int jpeg_write(struct mu_buf *b, const unsigned char *pixels, const struct jpeg_shape *s,
	       const struct jpeg_writing *how, struct mu_err *err)
{
	enum { LONGEST_XMP = 65000 }; /* of a marker, with its name */
	struct writing *w = MU_NEW(struct writing);
	int rc = 0;

	w->c.err = catch_trouble(&w->error);
	if (how->xmp.len <= LONGEST_XMP && !setjmp(w->error.out)) {
		jpeg_create_compress(&w->c);
		jpeg_mem_dest(&w->c, &w->file, &w->len);
		jpeg_set_up(w, s, how);
		jpeg_start_compress(&w->c, TRUE);
		if (how->xmp.len)
			write_xmp(w, how->xmp);
		jpeg_write_rows(w, pixels, s);
		jpeg_finish_compress(&w->c);
		w->good = true;
	}
	if (w->good)
		mu_buf_put(b, w->file, w->len);
	else
		rc = mu_invalid(err, "JPEG encoding failed: %s", w->error.message);
	jpeg_destroy_compress(&w->c);
	free(w->file);
	free(w);
	return rc;
}
