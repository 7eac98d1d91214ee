/* SPDX-License-Identifier: Apache-2.0 */
/* libjpeg reports errors by longjmp. The memory of a decoder or encoder is owned by one struct on
 * the heap, which is still valid after the jump. */
#include "task/kernels/image/jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum {
	MAX_PIXEL_BYTES = 1 << 29, /* of pixels: the limit of TensorFlow */
	MAX_SCANS = 500, /* a small file may have many, each as expensive as a whole image */
};

struct jpeg_error {
	struct jpeg_error_mgr mgr; /* first member: libjpeg passes a pointer to it */
	jmp_buf out;
	char message[JMSG_LENGTH_MAX];
};

static void jpeg_error_exit(j_common_ptr c)
{
	struct jpeg_error *t = (struct jpeg_error *)c->err;

	c->err->format_message(c, t->message);
	longjmp(t->out, 1);
}

static void jpeg_no_message(j_common_ptr c)
{
}

static struct jpeg_error_mgr *jpeg_error_init(struct jpeg_error *t)
{
	jpeg_std_error(&t->mgr);
	t->mgr.error_exit = jpeg_error_exit;
	t->mgr.output_message = jpeg_no_message;
	return &t->mgr;
}

/* ---- a file in memory as a source ---- */

struct decoder {
	struct jpeg_decompress_struct d;
	struct jpeg_error error;
	struct jpeg_source_mgr source;
	struct jpeg_progress_mgr progress;
	const struct jpeg_read_options *options;
	unsigned char *row;
	int64_t left; /* the first pixel of the crop in a row */
	bool succeeded;
};

static void jpeg_source_noop(j_decompress_ptr d)
{
}

static boolean jpeg_fill_input(j_decompress_ptr d)
{
	static const JOCTET end[] = {0xff, JPEG_EOI};
	const struct decoder *r = d->client_data;

	if (!r->options || !r->options->truncated_ok)
		return FALSE; /* stops reading, with too few rows */
	d->src->next_input_byte = end;
	d->src->bytes_in_buffer = sizeof end;
	return TRUE;
}

static void jpeg_skip_input(j_decompress_ptr d, long n)
{
	struct jpeg_source_mgr *s = d->src;
	size_t skipped = n > 0 && (size_t)n < s->bytes_in_buffer ? (size_t)n : s->bytes_in_buffer;

	s->next_input_byte += n > 0 ? skipped : 0;
	s->bytes_in_buffer -= n > 0 ? skipped : 0;
}

static void limit_scans(j_common_ptr c)
{
	struct decoder *r = c->client_data;

	if (r->d.input_scan_number > MAX_SCANS)
		longjmp(r->error.out, 1);
}

static struct decoder *decoder_new(struct mu_span file, const struct jpeg_read_options *options)
{
	struct decoder *r = MU_NEW(struct decoder);

	r->options = options;
	r->d.err = jpeg_error_init(&r->error);
	r->source = (struct jpeg_source_mgr){.next_input_byte = (const JOCTET *)file.data,
					     .bytes_in_buffer = file.len,
					     .init_source = jpeg_source_noop,
					     .fill_input_buffer = jpeg_fill_input,
					     .skip_input_data = jpeg_skip_input,
					     .resync_to_restart = jpeg_resync_to_restart,
					     .term_source = jpeg_source_noop};
	r->progress.progress_monitor = limit_scans;
	return r;
}

static bool jpeg_read_head(struct decoder *r)
{
	jpeg_create_decompress(&r->d);
	r->d.client_data = r;
	r->d.src = &r->source;
	r->d.progress = &r->progress;
	return jpeg_read_header(&r->d, TRUE) == JPEG_HEADER_OK;
}

/* Frees the decoder.  Returns an error if decoding failed. */
static int decoder_free(struct decoder *r, struct mu_err *err)
{
	int rc =
	    r->succeeded || err->code != MU_OK
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
	struct decoder *r = decoder_new(file, NULL);

	err->code = MU_OK;
	if (!setjmp(r->error.out) && (r->succeeded = jpeg_read_head(r)))
		*out =
		    (struct jpeg_shape){r->d.image_height, r->d.image_width, r->d.num_components};
	return decoder_free(r, err);
}

/* ---- decoding ---- */

static bool jpeg_start(struct decoder *r, struct jpeg_shape *out)
{
	int channels = r->options->channels;

	if (!jpeg_read_head(r))
		return false;
	if (!channels) /* four components are CMYK */
		channels = r->d.num_components > 3 ? 3 : r->d.num_components;
	if ((channels != 1 && channels != 3) ||
	    (int64_t)r->d.image_height * r->d.image_width * channels >= MAX_PIXEL_BYTES)
		return false;
	bool cmyk = r->d.jpeg_color_space == JCS_CMYK || r->d.jpeg_color_space == JCS_YCCK;
	r->d.out_color_space = channels == 1 ? JCS_GRAYSCALE : cmyk ? JCS_CMYK : JCS_RGB;
	r->d.do_fancy_upsampling = r->options->fancy;
	r->d.scale_num = 1;
	r->d.scale_denom = r->options->ratio;
	r->d.dct_method = r->options->fast ? JDCT_IFAST : JDCT_ISLOW;
	if (!jpeg_start_decompress(&r->d))
		return false;
	*out = (struct jpeg_shape){r->d.output_height, r->d.output_width, channels};
	return true;
}

static bool crop(struct decoder *r, struct jpeg_shape *s)
{
	const struct jpeg_read_options *w = r->options;

	if (!w->crops)
		return true;
	if (w->height <= 0 || w->width <= 0 || w->top < 0 || w->left < 0 ||
	    w->top > s->height - w->height || w->left > s->width - w->width)
		return false;
	JDIMENSION from = (JDIMENSION)w->left, columns = (JDIMENSION)w->width;
	jpeg_crop_scanline(&r->d, &from, &columns); /* rounds `from` down to the start of a block */
	r->left = w->left - from;
	s->height = w->height;
	s->width = w->width;
	return true;
}

/* Adobe's programs invert the colours. */
static void cmyk_to_rgb(const unsigned char *from, int64_t n, bool inverted, unsigned char *to)
{
	for (; n; n--, from += 4, to += 3)
		for (int i = 0; i < 3; i++)
			to[i] = (unsigned char)(inverted ? from[3] * from[i] / 255
							 : (255 - from[3]) * (255 - from[i]) / 255);
}

static bool read_rows(struct decoder *r, const struct jpeg_shape *s, unsigned char *to)
{
	size_t row_bytes = (size_t)(s->width * s->channels);
	JDIMENSION top = r->options->crops ? (JDIMENSION)r->options->top : 0;

	if (top && jpeg_skip_scanlines(&r->d, top) != top)
		return false;
	for (int64_t y = 0; y < s->height; y++, to += row_bytes) {
		JSAMPROW row = r->row;
		if (jpeg_read_scanlines(&r->d, &row, 1) != 1)
			return false;
		const unsigned char *from = r->row + r->left * r->d.output_components;
		if (r->d.out_color_space == JCS_CMYK)
			cmyk_to_rgb(from, s->width, r->d.saw_Adobe_marker, to);
		else
			memcpy(to, from, row_bytes);
	}
	return true;
}

int jpeg_read(struct mu_span file, const struct jpeg_read_options *options, jpeg_alloc_fn *alloc,
	      void *arg, struct mu_err *err)
{
	struct decoder *r = decoder_new(file, options);
	struct jpeg_shape s;
	unsigned char *to;

	err->code = MU_OK;
	if (!setjmp(r->error.out) && jpeg_start(r, &s)) {
		r->row = mu_xcalloc((size_t)(s.width + 1), (size_t)r->d.output_components);
		if (crop(r, &s) && (to = alloc(arg, &s, err)))
			r->succeeded = read_rows(r, &s, to);
	}
	return decoder_free(r, err);
}

/* ---- encoding ---- */

struct encoder {
	struct jpeg_compress_struct c;
	struct jpeg_error error;
	unsigned char *file;
	unsigned long len;
	bool succeeded;
};

static void jpeg_set_up(struct encoder *w, const struct jpeg_shape *s,
			const struct jpeg_write_options *options)
{
	w->c.image_width = (JDIMENSION)s->width;
	w->c.image_height = (JDIMENSION)s->height;
	w->c.input_components = (int)s->channels;
	w->c.in_color_space = s->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
	jpeg_set_defaults(&w->c);
	w->c.optimize_coding = options->optimize;
	w->c.density_unit = (UINT8)options->density_unit;
	w->c.X_density = (UINT16)options->x_density;
	w->c.Y_density = (UINT16)options->y_density;
	jpeg_set_quality(&w->c, options->quality, TRUE);
	if (options->progressive)
		jpeg_simple_progression(&w->c);
	for (int i = 0; !options->downsample && i < w->c.num_components; i++)
		w->c.comp_info[i].h_samp_factor = w->c.comp_info[i].v_samp_factor = 1;
}

static void write_xmp(struct encoder *w, struct mu_span xmp)
{
	static const char name[] = "http://ns.adobe.com/xap/1.0/"; /* with its terminating zero */
	MU_AUTO_BUF b = {0};

	mu_buf_put(&b, name, sizeof name);
	mu_buf_put(&b, xmp.data, xmp.len);
	jpeg_write_marker(&w->c, JPEG_APP0 + 1, (const JOCTET *)b.data, (unsigned)b.len);
}

static void jpeg_write_rows(struct encoder *w, const unsigned char *pixels,
			    const struct jpeg_shape *s)
{
	for (int64_t y = 0; y < s->height; y++) {
		JSAMPROW row = (JSAMPROW)(uintptr_t)(pixels + y * s->width * s->channels);
		jpeg_write_scanlines(&w->c, &row, 1);
	}
}

int jpeg_write(struct mu_buf *b, const unsigned char *pixels, const struct jpeg_shape *s,
	       const struct jpeg_write_options *options, struct mu_err *err)
{
	enum { MAX_XMP_BYTES = 65000 }; /* a marker holds it and its name */
	struct encoder *w = MU_NEW(struct encoder);
	int rc = 0;

	w->c.err = jpeg_error_init(&w->error);
	if (options->xmp.len <= MAX_XMP_BYTES && !setjmp(w->error.out)) {
		jpeg_create_compress(&w->c);
		jpeg_mem_dest(&w->c, &w->file, &w->len);
		jpeg_set_up(w, s, options);
		jpeg_start_compress(&w->c, TRUE);
		if (options->xmp.len)
			write_xmp(w, options->xmp);
		jpeg_write_rows(w, pixels, s);
		jpeg_finish_compress(&w->c);
		w->succeeded = true;
	}
	if (w->succeeded)
		mu_buf_put(b, w->file, w->len);
	else
		rc = mu_invalid(err, "JPEG encoding failed: %s", w->error.message);
	jpeg_destroy_compress(&w->c);
	free(w->file);
	free(w);
	return rc;
}
