/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution without patches.
 *
 * Patches of an image are as many times as large as the filter has taps.  Without them an image of
 * one to three channels takes 2.7 to 4.4 times less, one of 32 and more 1.1 to 1.4 times
 * (docs/performance.md).
 *
 * An image is copied with its border of zeros.  Then the taps of a filter's row under an output
 * position are one run of columns * channels elements, and the next position sees the same run a
 * stride further.  A tile of neighbouring positions and one strip of filters is a sum over such
 * runs, one for each row of the filter.  The gradient of the filter is a tile of neighbouring taps
 * and one strip of filters, summed over positions; there a run is a row of the output.  The
 * gradient of the input is the first sum over the gradient of the output, with the filter reversed.
 *
 * Each element is summed in one order.  The gradient is summed image by image in as many parts as
 * there are threads, and the parts are added in order. */
#include "task/kernels/products/conv_direct.h"

#include <string.h>

#include "task/kernels/loops/loops.h"
#include "task/kernels/products/pack.h"
#include "task/kernels/turn.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum {
	MIN_COLUMNS = 4,        /* of an output row; patches make larger tiles below it */
	MAX_RUNS = 256,         /* rows of a filter, rows of a block of positions */
	MAX_BORDER = 64 << 10,  /* elements that an image may grow by, besides its own size */
	BLOCK_POSITIONS = 1024, /* that the gradient of a filter sums at a time */
	PIECE_WORK = 2 << 20,   /* multiply-adds worth another thread: 30 us */
};

struct direct {
	const struct conv *g;
	const struct tile_loops *tile;
	size_t size;                  /* of an element */
	int64_t width, strips;        /* filters of a strip; strips */
	int64_t rows, columns, pitch; /* of an image with its border; elements from row to row */
	int64_t taps;                 /* elements of a run */
	int64_t pieces;
	size_t image_bytes, filter_bytes, scratch_each;
	const char *x, *w, *y; /* input; filters, strip by strip; gradient of the output */
	char *out, *scratch, *strips_to;
};

static int64_t min(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
	return a > 0 ? (a + b - 1) / b : 0;
}

static int64_t padded(const struct window_axis *x)
{
	return (x->out - 1) * x->stride + x->size;
}

bool conv_direct_fits(const struct conv *g)
{
	const struct window_axis *row = &g->row, *column = &g->column;
	double image = (double)row->in * (double)column->in * (double)g->channels;

	return g->groups == 1 && g->batch > 0 && g->channels > 0 && g->filters > 0 && image > 0 &&
	       row->size > 0 && row->size <= MAX_RUNS && column->size > 0 && row->out > 0 &&
	       column->out >= MIN_COLUMNS && row->pad >= 0 && column->pad >= 0 &&
	       row->dilation == 1 && column->dilation == 1 &&
	       (double)padded(row) * (double)padded(column) * (double)g->channels <=
		   2 * image + MAX_BORDER;
}

static void init(struct direct *d, struct kernel_call *c, const struct conv *g, int64_t units)
{
	int64_t threads = c->runtime ? thread_pool_size(c->runtime->pool) : 1;
	double work;

	*d = (struct direct){.g = g, .tile = &loops->tile[g->type], .size = mu_dtype_size(g->type)};
	d->width = TILE_VECTORS * d->tile->lanes;
	d->strips = (g->filters + d->width - 1) / d->width;
	d->rows = padded(&g->row);
	d->columns = padded(&g->column);
	d->pitch = d->columns * g->channels;
	d->taps = g->column.size * g->channels;
	d->image_bytes = ((size_t)(d->rows * d->pitch) * d->size + 63) & ~(size_t)63;
	d->filter_bytes =
	    ((size_t)(g->row.size * d->taps * g->filters) * d->size + 63) & ~(size_t)63;
	work = (double)g->batch * (double)(g->row.out * g->column.out) *
	       (double)(g->row.size * d->taps) * (double)g->filters / PIECE_WORK;
	d->pieces = min(units, work < 2 ? 1 : work < (double)threads ? (int64_t)work : threads);
}

static int scratch_new(struct direct *d, size_t each, struct mu_tensor *scratch, struct mu_err *err)
{
	struct mu_shape bytes;
	int rc;

	d->scratch_each = (each + 63) & ~(size_t)63;
	bytes = mu_shape_vec((int64_t)d->scratch_each * d->pieces);
	rc = mu_tensor_new(scratch, MU_UINT8, &bytes, err);
	if (!rc)
		d->scratch = scratch->data;
	return rc;
}

/* Copies an image with its border. */
static void image_read(const struct direct *d, int64_t image, char *to)
{
	const struct conv *g = d->g;
	size_t pixel = (size_t)g->channels * d->size, line = (size_t)d->columns * pixel;
	const char *from = d->x + (size_t)(image * g->row.in * g->column.in) * pixel;
	int64_t n = min(g->column.in, d->columns - g->column.pad);
	size_t inside = n > 0 ? (size_t)n * pixel : 0;
	size_t before = n > 0 ? (size_t)g->column.pad * pixel : line;

	for (int64_t y = 0; y < d->rows; y++, to += line) {
		int64_t at = y - g->row.pad;

		if (at < 0 || at >= g->row.in) {
			memset(to, 0, line);
			continue;
		}
		memset(to, 0, before);
		memcpy(to + before, from + (size_t)(at * g->column.in) * pixel, inside);
		memset(to + before + inside, 0, line - before - inside);
	}
}

/* The filters of a strip, and how wide its tiles are. */
static int64_t strip_filters(const struct direct *d, int64_t strip)
{
	return min(d->width, d->g->filters - strip * d->width);
}

static int64_t strip_width(const struct direct *d, int64_t strip)
{
	return strip_filters(d, strip) <= d->tile->lanes ? d->tile->lanes : d->width;
}

/* Runs t over n neighbouring elements: a and c move by a_step and c_step bytes for each. */
static void run_tiles(const struct direct *d, struct tile t, int64_t n, size_t a_step,
		      size_t c_step)
{
	tile_loop *const *run = d->tile->run[t.columns > d->tile->lanes];
	int64_t tiles = (n + d->tile->rows - 1) / d->tile->rows;
	const char *a = t.a;
	char *c = t.c;

	for (int64_t i = 0; i < tiles; i++) {
		int64_t at = n * i / tiles, rows = n * (i + 1) / tiles - at;

		t.a = a + (size_t)at * a_step;
		t.c = c + (size_t)at * c_step;
		run[rows - 1](&t);
	}
}

/* ---- the output ---- */

/* Rows [y0, y1) of the output of one image. */
static void rows_sum(const struct direct *d, int64_t image, const char *x, int64_t y0, int64_t y1)
{
	const struct conv *g = d->g;
	int64_t runs[MAX_RUNS], filter = g->row.size * d->taps;
	struct tile t = {
	    .run = d->taps, .a_row = g->column.stride * g->channels, .a_k = 1, .c_row = g->filters};

	for (int64_t i = 0; i < g->row.size; i++)
		runs[i] = i * d->pitch;
	for (int64_t s = 0; s < d->strips; s++) {
		t.b_k = strip_width(d, s);
		t.columns = strip_filters(d, s);
		for (int64_t y = y0; y < y1; y++) {
			int64_t to = (image * g->row.out + y) * g->column.out * g->filters;
			int64_t k0, k1; /* rows of the filter that see the image, not its border */

			window_clip(&g->row, y, &k0, &k1);
			t.runs = runs + k0;
			t.n_runs = max(0, k1 - k0);
			t.b =
			    d->w + (size_t)(s * filter * d->width + k0 * d->taps * t.b_k) * d->size;
			t.a = x + (size_t)(y * g->row.stride * d->pitch) * d->size;
			t.c = d->out + (size_t)(to + s * d->width) * d->size;
			run_tiles(d, t, g->column.out, (size_t)t.a_row * d->size,
				  (size_t)g->filters * d->size);
		}
	}
}

static void output_pieces(void *arg, int64_t from, int64_t to)
{
	const struct direct *d = arg;
	int64_t rows = d->g->row.out, all = d->g->batch * rows;

	for (int64_t piece = from; piece < to; piece++) {
		int64_t at = all * piece / d->pieces, end = all * (piece + 1) / d->pieces, next;
		char *copy = d->scratch + (size_t)piece * d->scratch_each;

		for (; at < end; at = next) {
			int64_t image = at / rows;

			next = min(end, (image + 1) * rows);
			image_read(d, image, copy);
			rows_sum(d, image, copy, at - image * rows, next - image * rows);
		}
	}
}

/* Copies the filter, strip by strip. */
static void pack_strips(void *arg, int64_t from, int64_t to)
{
	const struct direct *d = arg;
	int64_t taps = d->g->row.size * d->taps;

	for (int64_t s = from; s < to; s++)
		pack_right(d->size, d->strips_to + (size_t)(s * taps * d->width) * d->size,
			   d->w + (size_t)(s * d->width) * d->size, taps, strip_filters(d, s),
			   strip_width(d, s), d->g->filters);
}

int conv_direct(struct kernel_call *c, const struct conv *g, const void *input, const void *filter,
		void *output, struct mu_err *err)
{
	MU_AUTO_TENSOR strips = {0}, scratch = {0};
	struct mu_shape shape;
	struct direct d;
	int rc;

	init(&d, c, g, g->batch * g->row.out);
	d.x = input;
	d.w = filter;
	d.out = output;
	shape = mu_shape_vec(d.strips * d.width * g->row.size * d.taps);
	if ((rc = mu_tensor_new(&strips, g->type, &shape, err)) ||
	    (rc = scratch_new(&d, d.image_bytes, &scratch, err)))
		return rc;
	d.strips_to = strips.data;
	kernel_parallel(c, d.strips, 1, pack_strips, &d);
	d.w = strips.data;
	kernel_parallel(c, d.pieces, 1, output_pieces, &d);
	return 0;
}

/* ---- the gradient of the input: the same sum over the gradient of the output ---- */

static struct window_axis reversed(const struct window_axis *x)
{
	return (struct window_axis){.in = x->out,
				    .size = x->size,
				    .stride = 1,
				    .dilation = x->dilation,
				    .out = x->in,
				    .pad = x->size - 1 - x->pad};
}

static struct conv reversed_conv(const struct conv *g)
{
	return (struct conv){g->type,   g->batch,          g->filters,          g->channels,
			     g->groups, reversed(&g->row), reversed(&g->column)};
}

bool conv_direct_input_fits(const struct conv *g)
{
	struct conv back = reversed_conv(g);

	return g->row.stride == 1 && g->column.stride == 1 && conv_direct_fits(&back);
}

int conv_direct_input(struct kernel_call *c, const struct conv *g, const void *filter,
		      const void *grad, void *input, struct mu_err *err)
{
	struct conv back = reversed_conv(g);
	int64_t taps = g->row.size * g->column.size, channels = g->channels, filters = g->filters;
	size_t size = mu_dtype_size(g->type);
	struct mu_shape shape = mu_shape_vec(taps * channels * filters);
	MU_AUTO_TENSOR turned = {0}; /* the last tap first, filters and channels exchanged */
	int rc = mu_tensor_new(&turned, g->type, &shape, err);

	if (rc)
		return rc;
	for (int64_t i = 0; i < taps; i++)
		turn(size, (char *)turned.data + (size_t)(i * channels * filters) * size, channels,
		     (const char *)filter + (size_t)((taps - 1 - i) * channels * filters) * size,
		     filters, filters, channels);
	return conv_direct(c, &back, grad, turned.data, input, err);
}

/* ---- the gradient of the filter ---- */

/* Adds what output rows [y0, y1) of an image contribute; grads has room for their gradients of one
 * strip. */
static void block_sum(const struct direct *d, int64_t image, const char *x, int64_t y0, int64_t y1,
		      char *grads, char *sum, bool add)
{
	const struct conv *g = d->g;
	int64_t runs[MAX_RUNS], first = (image * g->row.out + y0) * g->column.out;
	struct tile t = {.run = g->column.out,
			 .a_row = 1,
			 .a_k = g->column.stride * g->channels,
			 .c_row = g->filters,
			 .add = add};

	for (int64_t y = y0; y < y1; y++)
		runs[y - y0] = y * g->row.stride * d->pitch;
	for (int64_t s = 0; s < d->strips; s++) {
		t.b_k = strip_width(d, s);
		t.columns = strip_filters(d, s);
		pack_right(d->size, grads,
			   d->y + (size_t)(first * g->filters + s * d->width) * d->size,
			   (y1 - y0) * g->column.out, t.columns, t.b_k, g->filters);
		for (int64_t i = 0; i < g->row.size; i++) {
			int64_t from = min(y1, max(y0, ceil_div(g->row.pad - i, g->row.stride)));
			int64_t to = min(y1, ceil_div(g->row.in + g->row.pad - i, g->row.stride));

			t.n_runs = max(0, to - from); /* the other rows see the border */
			t.runs = runs + (from - y0);
			t.b = grads + (size_t)((from - y0) * g->column.out * t.b_k) * d->size;
			t.a = x + (size_t)(i * d->pitch) * d->size;
			t.c = sum + (size_t)(i * d->taps * g->filters + s * d->width) * d->size;
			run_tiles(d, t, d->taps, d->size, (size_t)g->filters * d->size);
		}
	}
}

static int64_t block_rows(const struct conv *g)
{
	int64_t rows = BLOCK_POSITIONS / g->column.out;

	return min(rows < 1 ? 1 : rows, g->row.out);
}

/* The scratch memory of a piece: an image, gradients of a block, the sum. */
static char *piece_sum(const struct direct *d, int64_t piece)
{
	return piece ? d->scratch + (size_t)(piece + 1) * d->scratch_each - d->filter_bytes
		     : d->out;
}

static void filter_pieces(void *arg, int64_t from, int64_t to)
{
	const struct direct *d = arg;
	const struct conv *g = d->g;

	for (int64_t piece = from; piece < to; piece++) {
		int64_t first = g->batch * piece / d->pieces;
		int64_t end = g->batch * (piece + 1) / d->pieces;
		char *copy = d->scratch + (size_t)piece * d->scratch_each;

		for (int64_t image = first; image < end; image++) {
			image_read(d, image, copy);
			for (int64_t y = 0; y < g->row.out; y += block_rows(g))
				block_sum(d, image, copy, y, min(y + block_rows(g), g->row.out),
					  copy + d->image_bytes, piece_sum(d, piece),
					  y > 0 || image > first);
		}
	}
}

int conv_direct_filter(struct kernel_call *c, const struct conv *g, const void *input,
		       const void *grad, void *filter, struct mu_err *err)
{
	MU_AUTO_TENSOR scratch = {0};
	struct direct d;
	int rc;

	init(&d, c, g, g->batch);
	d.x = input;
	d.y = grad;
	d.out = filter;
	rc =
	    scratch_new(&d,
			d.image_bytes + (size_t)(block_rows(g) * g->column.out * d.width) * d.size +
			    d.filter_bytes,
			&scratch, err);
	if (rc)
		return rc;
	kernel_parallel(c, d.pieces, 1, filter_pieces, &d);
	for (int64_t piece = 1; piece < d.pieces; piece++)
		loops->binary[BIN_AddV2][g->type](filter, filter, piece_sum(&d, piece),
						  g->row.size * d.taps * g->filters, BOTH_RUN);
	return 0;
}
