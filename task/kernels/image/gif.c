/* SPDX-License-Identifier: Apache-2.0 */
/* A file is decoded twice, so that it needs no pixel buffer of its own. The first pass finds the
 * number of frames and the largest size, because the header may lack them. The second pass decodes
 * into the caller's memory. */
#include "task/kernels/image/gif.h"

#include <gif_lib.h>
#include <string.h>

#include "lib/base/mem.h"

enum { CHANNELS = 3, MAX_FRAMES = 1 << 20 };

struct canvas {
	struct gif_shape shape; /* the result of the first pass, and the size of `pixels` */
	unsigned char *pixels;  /* NULL in the first pass */
	int64_t frame;
	int transparent;
	struct mu_err *err;
};

static int read_bytes(GifFileType *gif, GifByteType *to, int n)
{
	struct mu_span *rest = gif->UserData;
	size_t len = (size_t)n < rest->len ? (size_t)n : rest->len;

	memcpy(to, rest->data, len);
	rest->data += len;
	rest->len -= len;
	return (int)len;
}

/* Draws a row of a frame, given as colour indices, onto the canvas. */
static int put_row(const GifFileType *gif, struct canvas *c, int row, const GifPixelType *indices)
{
	const GifImageDesc *d = &gif->Image;
	const ColorMapObject *map = d->ColorMap ? d->ColorMap : gif->SColorMap;
	int64_t y = (int64_t)d->Top + row;
	unsigned char *line;

	if (!map)
		return mu_fail(c->err, MU_INVALID_ARGUMENT, "missing color map for frame %lld",
			       (long long)c->frame);
	if (y >= c->shape.height)
		return 0;
	line = c->pixels + (c->frame * c->shape.height + y) * c->shape.width * CHANNELS;
	for (int i = 0; i < d->Width && (int64_t)d->Left + i < c->shape.width; i++) {
		if (indices[i] == c->transparent)
			continue;
		if (indices[i] >= map->ColorCount)
			return mu_fail(c->err, MU_INVALID_ARGUMENT,
				       "found color index %d outside of color map range %d",
				       indices[i], map->ColorCount);
		const GifColorType *colour = &map->Colors[indices[i]];
		unsigned char *pixel = line + ((int64_t)d->Left + i) * CHANNELS;
		pixel[0] = colour->Red;
		pixel[1] = colour->Green;
		pixel[2] = colour->Blue;
	}
	return 0;
}

/* Initializes a frame with the previous frame, the first frame with black. */
static void begin_frame(struct canvas *c)
{
	size_t size = (size_t)(c->shape.height * c->shape.width * CHANNELS);
	unsigned char *frame = c->pixels + (size_t)c->frame * size;

	if (c->frame)
		memcpy(frame, frame - size, size);
	else
		memset(frame, 0, size);
}

/* Returns 1, 0 if the file is truncated, or an error. */
static int read_frame(GifFileType *gif, struct canvas *c)
{
	static const int first[] = {0, 4, 2, 1}, step[] = {8, 8, 4, 2};
	const GifImageDesc *d = &gif->Image;
	MU_AUTO_FREE GifPixelType *row = NULL;
	int rc = 0;

	if (DGifGetImageDesc(gif) == GIF_ERROR || d->Width <= 0 || d->Height <= 0)
		return 0;
	row = MU_NEW_ARRAY(GifPixelType, (size_t)d->Width);
	if (c->pixels)
		begin_frame(c);
	for (int pass = 0; pass < (d->Interlace ? 4 : 1); pass++)
		for (int y = d->Interlace ? first[pass] : 0; y < d->Height;
		     y += d->Interlace ? step[pass] : 1) {
			if (DGifGetLine(gif, row, d->Width) == GIF_ERROR)
				return 0;
			if (c->pixels && (rc = put_row(gif, c, y, row)) < 0)
				return rc;
		}
	return 1;
}

/* Reads the transparent colour of the next frame; ignores other extensions. */
static bool read_extension(GifFileType *gif, struct canvas *c)
{
	GifByteType *block;
	GraphicsControlBlock control;
	int code;

	if (DGifGetExtension(gif, &code, &block) == GIF_ERROR)
		return false;
	if (code == GRAPHICS_EXT_FUNC_CODE && block &&
	    DGifExtensionToGCB(block[0], block + 1, &control) == GIF_OK)
		c->transparent = control.TransparentColor;
	while (block)
		if (DGifGetExtensionNext(gif, &block) == GIF_ERROR)
			return false;
	return true;
}

/* Reads at most `max_frames` frames; stops at the end or at an invalid record. */
static int read_frames(GifFileType *gif, struct canvas *c, int64_t max_frames)
{
	GifRecordType record;
	int rc = 1;

	c->transparent = NO_TRANSPARENT_COLOR;
	for (c->frame = 0; c->frame < max_frames && rc > 0;) {
		if (DGifGetRecordType(gif, &record) == GIF_ERROR || record == TERMINATE_RECORD_TYPE)
			return 0;
		if (record == EXTENSION_RECORD_TYPE) {
			rc = read_extension(gif, c);
		} else if (record == IMAGE_DESC_RECORD_TYPE && (rc = read_frame(gif, c)) > 0) {
			c->frame++;
			c->transparent = NO_TRANSPARENT_COLOR;
			if (!c->pixels && gif->Image.Width > c->shape.width)
				c->shape.width = gif->Image.Width;
			if (!c->pixels && gif->Image.Height > c->shape.height)
				c->shape.height = gif->Image.Height;
		}
	}
	return rc < 0 ? rc : 0;
}

static int decode(struct mu_span file, struct canvas *c, int64_t max_frames)
{
	int code = 0, rc;
	GifFileType *gif = DGifOpen(&file, read_bytes, &code);

	if (!gif)
		return mu_fail(c->err, MU_INVALID_ARGUMENT, "failed to open gif file: %s",
			       GifErrorString(code) ? GifErrorString(code) : "Unknown error");
	rc = read_frames(gif, c, max_frames);
	DGifCloseFile(gif, &code);
	return rc;
}

int gif_read(struct mu_span file, bool all_frames, gif_alloc_fn *alloc, void *arg,
	     struct mu_err *err)
{
	struct canvas c = {.err = err};

	MU_RETURN_IF_ERROR(decode(file, &c, MAX_FRAMES));
	if (!c.frame)
		return mu_fail(err, MU_INVALID_ARGUMENT, "gif file does not contain any image");
	c.shape.frames = all_frames ? c.frame : 1;
	c.pixels = alloc(arg, &c.shape, err);
	return c.pixels ? decode(file, &c, c.shape.frames) : (int)-err->code;
}
