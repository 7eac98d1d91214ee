/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution without patches.
 *
 * In an image with a border of zeros, the taps of a filter's row under an output position are one
 * run of columns * channels elements.  The run of the next position starts a stride further.  A
 * tile of neighbouring positions and some filters is therefore a sum over one run for each row of
 * the filter.
 *
 * The batch is cut into bands: some output rows of an image.  A thread copies the input rows under
 * a band, with their border, to its scratch memory; the copy stays in the cache.
 *
 * The gradient of the input, strides 1, is the same sum over the output's gradient, with the filter
 * rotated by 180 degrees.  The gradient of the filter is a tile of neighbouring taps and some
 * filters, summed over positions: a run is a row of the output.
 *
 * docs/performance.md has the figures. */
#include "task/kernels/nn/conv_direct.h"

#include <string.h>

#include "lib/base/ints.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/scratch.h"
#include "task/kernels/engine/transpose_2d.h"

enum {
	COLUMNS_MIN = 4,            /* columns of an output row; fewer make a tile too small */
	POSITIONS_MAX = 1024,       /* output positions of a band */
	BAND_BYTES = 512 << 10,     /* half of a usual second-level cache */
	BAND_BYTES_MAX = 1 << 20,   /* of a band of one output row */
	FILTER_BYTES_MAX = 1 << 20, /* larger gradients do not stay in the cache between bands */
	PIECE_WORK = 2 << 20,       /* multiply-adds worth another thread: 30 us */
};

/* Elements of the input under `out` neighbouring windows. */
static int64_t input_extent(const struct window_axis *x, int64_t out)
{
	return (out - 1) * x->stride + x->size;
}

static bool is_supported(const struct conv *g)
{
	const struct window_axis *row = &g->row, *column = &g->column;
	double line = (double)input_extent(column, column->out) * (double)g->channels *
		      (double)mu_dtype_size(g->type);

	return g->groups == 1 && row->in && column->in && row->out > 0 && row->dilation == 1 &&
	       column->dilation == 1 && row->pad >= 0 && column->pad >= 0 &&
	       row->size <= POSITIONS_MAX && column->out >= COLUMNS_MIN &&
	       column->out <= POSITIONS_MAX && line * (double)row->size <= BAND_BYTES_MAX;
}

/* The axis of the convolution that computes the input's gradient from the output's. */
static struct window_axis conv_direct_backward(const struct window_axis *x)
{
	return (struct window_axis){.in = x->out,
				    .size = x->size,
				    .stride = 1,
				    .dilation = x->dilation,
				    .out = x->in,
				    .pad = x->size - 1 - x->pad};
}

bool conv_direct_init(struct conv_direct *d, const struct conv *g, enum conv_direction direction)
{
	const struct window_axis *row = &d->g.row, *column = &d->g.column;

	*d = (struct conv_direct){.g = *g,
				  .rotated = direction == CONV_INPUT_GRAD,
				  .size = mu_dtype_size(g->type),
				  .tile = &loops->tile[g->type]};
	if (d->rotated) {
		if (g->row.stride != 1 || g->column.stride != 1 || g->channels < d->tile->lanes)
			return false;
		d->g.channels = g->filters;
		d->g.filters = g->channels;
		d->g.row = conv_direct_backward(&g->row);
		d->g.column = conv_direct_backward(&g->column);
	}
	if (!d->tile->lanes || !is_supported(&d->g))
		return false;
	d->width = (d->g.filters > d->tile->lanes ? TILE_VECTORS : 1) * d->tile->lanes;
	d->strips = (d->g.filters + d->width - 1) / d->width;
	d->run = column->size * d->g.channels;
	d->taps = row->size * d->run;
	d->pitch = input_extent(column, column->out) * d->g.channels;
	d->rows = BAND_BYTES / (row->stride * d->pitch * (int64_t)d->size);
	d->rows = mu_min(mu_min(d->rows < 1 ? 1 : d->rows, POSITIONS_MAX / column->out), row->out);
	d->image_bands = (row->out + d->rows - 1) / d->rows;
	d->bands = d->g.batch * d->image_bands;
	d->band_size =
	    ((size_t)(input_extent(row, d->rows) * d->pitch) * d->size + 63) & ~(size_t)63;
	return direction != CONV_FILTER_GRAD ||
	       d->taps * d->strips * d->width * (int64_t)d->size <= FILTER_BYTES_MAX;
}

/* Output rows [from, to) of an image. */
struct row_band {
	int64_t image, from, to;
};

static struct row_band band_at(const struct conv_direct *d, int64_t i)
{
	int64_t in_image = i % d->image_bands, rows = d->g.row.out;

	return (struct row_band){i / d->image_bands, rows * in_image / d->image_bands,
				 rows * (in_image + 1) / d->image_bands};
}

/* Copies the input rows under a band, with their border. */
static void band_read(const struct conv_direct *d, const struct row_band *b, const char *input,
		      char *to)
{
	const struct window_axis *row = &d->g.row, *column = &d->g.column;
	size_t pixel = (size_t)d->g.channels * d->size, line = (size_t)d->pitch * d->size;
	size_t before = mu_min((size_t)column->pad * pixel, line);
	size_t bytes = mu_min((size_t)column->in * pixel, line - before);
	int64_t at = b->from * row->stride - row->pad,
		end = at + input_extent(row, b->to - b->from);

	input += (size_t)(b->image * row->in * column->in) * pixel;
	for (; at < end; at++, to += line) {
		if (at < 0 || at >= row->in) {
			memset(to, 0, line);
			continue;
		}
		memset(to, 0, before);
		memcpy(to + before, input + (size_t)(at * column->in) * pixel, bytes);
		memset(to + before + bytes, 0, line - before - bytes);
	}
}

/* Filters of strip s. */
static int64_t strip_filters(const struct conv_direct *d, int64_t s)
{
	return mu_min(d->width, d->g.filters - s * d->width);
}

/* ---- sums over windows ---- */

struct windows {
	const struct conv_direct *d;
	const char *from, *filter;
	char *strips; /* the filter: [strips][taps][width], zeros behind the last column */
	char *to;
};

static void pack_strips(void *arg, int64_t from, int64_t to)
{
	const struct windows *w = arg;
	const struct conv_direct *d = w->d;
	const struct conv *g = &d->g;
	int64_t pixels = g->row.size * g->column.size;
	int64_t step = d->rotated ? g->channels : 1; /* elements from filter to filter */
	size_t row = (size_t)d->width * d->size;

	for (int64_t s = from; s < to; s++) {
		const char *filter = w->filter + (size_t)(s * d->width * step) * d->size;
		char *strip = w->strips + (size_t)(s * d->taps) * row;
		int64_t n = strip_filters(d, s);
		if (n < d->width)
			memset(strip, 0, (size_t)d->taps * row);
		for (int64_t k = 0; d->rotated && k < pixels; k++)
			transpose_2d(d->size, strip + (size_t)(k * g->channels) * row, d->width,
				     filter +
					 (size_t)((pixels - 1 - k) * g->channels * g->filters) *
					     d->size,
				     g->channels, g->channels, n);
		for (int64_t k = 0; !d->rotated && k < d->taps; k++)
			memcpy(strip + (size_t)k * row, filter + (size_t)(k * g->filters) * d->size,
			       (size_t)n * d->size);
	}
}

/* Computes one strip of a band. */
static void window_sums(const struct windows *w, const struct row_band *b, const char *band,
			const int64_t *runs, int64_t s)
{
	const struct conv_direct *d = w->d;
	const struct conv *g = &d->g;
	struct tile t = {.run = d->run,
			 .a_row = g->column.stride * g->channels,
			 .a_k = 1,
			 .b_k = d->width,
			 .c_row = g->filters,
			 .columns = strip_filters(d, s)};

	for (int64_t y = b->from; y < b->to; y++) {
		int64_t first, end, row = (b->image * g->row.out + y) * g->column.out;
		window_clip(&g->row, y, &first, &end); /* the other rows are zeros */
		t.runs = runs + first;
		t.n_runs = end - first;
		t.a = band + (size_t)((y - b->from) * g->row.stride * d->pitch) * d->size;
		t.b = w->strips + (size_t)((s * d->taps + first * d->run) * d->width) * d->size;
		t.c = w->to + (size_t)(row * g->filters + s * d->width) * d->size;
		tile_rows(d->tile, d->size, t, g->column.out);
	}
}

static void run_bands(void *arg, int64_t from, int64_t to)
{
	const struct windows *w = arg;
	const struct conv_direct *d = w->d;
	char *band = scratch_get(d->band_size);
	int64_t runs[POSITIONS_MAX];

	for (int64_t i = 0; i < d->g.row.size; i++)
		runs[i] = i * d->pitch;
	for (int64_t i = from; i < to; i++) {
		const struct row_band b = band_at(d, i);
		band_read(d, &b, w->from, band);
		for (int64_t s = 0; s < d->strips; s++)
			window_sums(w, &b, band, runs, s);
	}
}

int conv_direct_run(struct kernel_call *c, const struct conv_direct *d, const void *from,
		    const void *filter, void *to, struct mu_err *err)
{
	MU_AUTO_TENSOR strips = {0};
	struct mu_shape s = mu_shape_vec(d->strips * d->taps * d->width);
	int64_t work = d->rows * d->g.column.out * d->taps * d->g.filters;

	MU_RETURN_IF_ERROR(mu_tensor_new(&strips, d->g.type, &s, err));
	struct windows w = {d, from, filter, strips.data, to};
	kernel_parallel(c, d->strips, 1 + PIECE_WORK / (d->taps * d->width), pack_strips, &w);
	kernel_parallel(c, d->bands, 1 + PIECE_WORK / work, run_bands, &w);
	return 0;
}

/* ---- sums over positions ---- */

/* Returns the gradient of a band's positions in rows of whole vectors: `grad` itself, or a copy. */
static const char *grad_read(const struct conv_direct *d, const struct row_band *b,
			     const char *grad, char *to)
{
	int64_t n = (b->to - b->from) * d->g.column.out, width = d->strips * d->width;
	size_t row = (size_t)d->g.filters * d->size;
	char *at = to;

	grad += (size_t)((b->image * d->g.row.out + b->from) * d->g.column.out) * row;
	if (d->g.filters == width)
		return grad;
	memset(to, 0, (size_t)(n * width) * d->size);
	for (int64_t i = 0; i < n; i++, grad += row, at += (size_t)width * d->size)
		memcpy(at, grad, row);
	return to;
}

/* Sums the gradient of row k of the filter over the output rows for which this row is inside the
 * input. */
static void position_sums(const struct conv_direct *d, const struct row_band *b, int64_t k,
			  const char *band, const char *grad, const int64_t *runs, char *filter,
			  bool add)
{
	const struct window_axis *row = &d->g.row;
	int64_t y = b->from, end = b->to;
	struct tile t = {.run = d->g.column.out,
			 .a_row = 1,
			 .a_k = d->g.column.stride * d->g.channels,
			 .b_k = d->strips * d->width,
			 .c_row = d->g.filters,
			 .add = add};

	while (y < end && y * row->stride + k < row->pad)
		y++;
	while (end > y && (end - 1) * row->stride + k - row->pad >= row->in)
		end--;
	if (y == end && add)
		return;
	t.a = band + (size_t)(k * d->pitch) * d->size;
	t.runs = runs + (y - b->from);
	t.n_runs = end - y;
	grad += (size_t)((y - b->from) * t.run * t.b_k) * d->size;
	filter += (size_t)(k * d->run * d->g.filters) * d->size;
	for (int64_t s = 0; s < d->strips; s++) {
		t.columns = strip_filters(d, s);
		t.b = grad + (size_t)(s * d->width) * d->size;
		t.c = filter + (size_t)(s * d->width) * d->size;
		tile_rows(d->tile, d->size, t, d->run);
	}
}

void conv_direct_filter(const struct conv_direct *d, const char *input, const char *grad,
			int64_t from, int64_t to, char *filter)
{
	size_t grad_size = (size_t)(d->rows * d->g.column.out * d->strips * d->width) * d->size;
	char *band = scratch_get(d->band_size + grad_size);
	int64_t runs[POSITIONS_MAX];

	for (int64_t i = 0; i < d->rows; i++)
		runs[i] = i * d->g.row.stride * d->pitch;
	for (int64_t i = from; i < to; i++) {
		const struct row_band b = band_at(d, i);
		band_read(d, &b, input, band);
		const char *y = grad_read(d, &b, grad, band + d->band_size);
		for (int64_t k = 0; k < d->g.row.size; k++)
			position_sums(d, &b, k, band, y, runs, filter, i > from);
	}
}
