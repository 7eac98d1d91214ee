/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution without patches.
 *
 * Put a border of zeros around an image, and the taps of a filter's row under an output position
 * are one run of columns * channels elements; the position to its right sees the same run a stride
 * further.  So a tile of neighbouring positions and some filters is a sum over a few runs (one a
 * row of the filter) that reads the input where it lies: nothing is copied but the border.
 *
 * The gradient of the input, strides 1, is the same sum over the output's gradient with the filter
 * turned over.  The gradient of the filter is a tile of neighbouring taps and some filters, summed
 * over positions: a run is a row of the output.
 *
 * With a dilation a tap is a run of its own.  Each element is summed in one order, whatever the
 * threads; only for the filter, when there are too few strips of filters to share out, images are
 * shared out instead and the threads' sums added in order. */
#include "task/kernels/products/conv_direct.h"

#include <string.h>

#include "task/kernels/loops/loops.h"
#include "task/kernels/products/pack.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum {
	COLUMNS_LEAST = 4,        /* in an output row; below, patches make larger tiles */
	BORDER_MOST = 64 << 10,   /* elements that an image may grow by, besides its own size */
	FILTER_BLOCK = 192 << 10, /* bytes of a strip's runs taken at a time: part of the L2 */
	GROUPS_MOST = 64,         /* … and runs */
	ROWS_BLOCK = 192 << 10,   /* bytes of input rows taken at a time */
	POSITIONS_LEAST = 64,     /* … unless that is fewer positions than pay for the filter */
	POSITIONS = 1024,         /* positions that a filter's gradient sums up at a time */
	IMAGE_ALONE = 150, /* … an image of as many by itself: rows on the border can be left out */
	IMAGES_BYTES = 512 << 10, /* … unless their images are larger than this */
	PIECE_WORK = 2 << 20,     /* multiply-adds worth another thread: 30 us */
	PARTIALS_MOST = 64 << 20, /* bytes of a filter's gradient summed by images */
};

struct direct {
	struct conv g;
	size_t size; /* of an element */
	const struct tile_loops *tile;
	int64_t width, strips;        /* of filters */
	int64_t rows, columns, pitch; /* of an image with its border; elements from row to row */
	bool bordered;                /* images must be copied */
	int64_t groups, taps;         /* runs of taps, and elements of one */
	int64_t pieces, images;       /* images whose copies a piece holds at a time */
	const char *x, *w;            /* w: strips of all taps, for forward sums */
	const char *y;                /* gradient */
	char *out;
	char *scratch;
	size_t scratch_each, image_bytes;
	bool by_strips;
};

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* ---- geometry ---- */

static int64_t reach(const struct window_axis *x)
{
	return (x->size - 1) * x->dilation + 1;
}

static bool fits(const struct conv *g)
{
	int64_t rows = (g->row.out - 1) * g->row.stride + reach(&g->row);
	int64_t columns = (g->column.out - 1) * g->column.stride + reach(&g->column);

	return g->groups == 1 && g->batch && g->channels && g->filters && g->row.in &&
	       g->column.in && g->row.size && g->column.size && g->row.out > 0 &&
	       g->column.out >= COLUMNS_LEAST && g->row.pad >= 0 && g->column.pad >= 0 &&
	       (double)rows * (double)columns * (double)g->channels <=
		   2.0 * (double)g->row.in * (double)g->column.in * (double)g->channels +
		       BORDER_MOST;
}

static void init(struct direct *d, const struct conv *g)
{
	const bool dense = g->column.dilation == 1;
	const struct window_axis *row = &g->row, *column = &g->column;

	*d =
	    (struct direct){.g = *g, .size = mu_dtype_size(g->type), .tile = &loops->tile[g->type]};
	if (row->size == 1 && column->size == 1 && !row->pad && !column->pad && row->stride == 1 &&
	    column->stride == 1 && row->in == row->out && column->in == column->out &&
	    row->in * column->in <= POSITIONS) {
		d->g.column.in = d->g.column.out = row->in * column->in; /* one row */
		d->g.row.in = d->g.row.out = 1;
	}
	row = &d->g.row, column = &d->g.column;
	d->width = TILE_VECTORS * d->tile->lanes;
	d->strips = (g->filters + d->width - 1) / d->width;
	d->rows = (row->out - 1) * row->stride + reach(row);
	d->columns = (column->out - 1) * column->stride + reach(column);
	d->bordered = row->pad || column->pad || d->rows > row->in || d->columns > column->in;
	d->pitch = (d->bordered ? d->columns : column->in) * g->channels;
	d->groups = dense ? row->size : row->size * column->size;
	d->taps = dense ? column->size * g->channels : g->channels;
	d->images = 1;
	d->image_bytes =
	    d->bordered ? ((size_t)(d->rows * d->pitch) * d->size + 63) & ~(size_t)63 : 0;
}

/* Where group i's taps start in an image, from where a window does. */
static int64_t group_at(const struct direct *d, int64_t i)
{
	const struct conv *g = &d->g;
	int64_t in_row = d->groups / g->row.size;

	return i / in_row * g->row.dilation * d->pitch +
	       i % in_row * g->column.dilation * g->channels;
}

/* The image with its border, in `to` where it needs one. */
static const char *image_read(const struct direct *d, int64_t image, char *to)
{
	const struct conv *g = &d->g;
	size_t pixel = (size_t)g->channels * d->size, line = (size_t)d->columns * pixel;
	const char *from = d->x + (size_t)(image * g->row.in * g->column.in) * pixel;

	if (!d->bordered)
		return from;
	int64_t n = least(g->column.in, d->columns - g->column.pad);
	size_t before = (size_t)g->column.pad * pixel, some = n > 0 ? (size_t)n * pixel : 0;
	if (!some)
		before = line;
	for (int64_t y = 0; y < d->rows; y++) {
		int64_t at = y - g->row.pad;
		char *row = to + (size_t)y * line;
		if (at < 0 || at >= g->row.in) {
			memset(row, 0, line);
			continue;
		}
		memset(row, 0, before);
		memcpy(row + before, from + (size_t)(at * g->column.in) * pixel, some);
		memset(row + before + some, 0, line - before - some);
	}
	return to;
}

static int64_t strip_width(const struct direct *d, int64_t strip)
{
	int64_t n = d->g.filters - strip * d->width;

	return n <= d->tile->lanes ? d->tile->lanes : d->width;
}

/* How many threads the work is worth. */
static int64_t pieces_of(const struct kernel_call *c, const struct conv *g, int64_t units)
{
	double work = (double)g->batch * (double)(g->row.out * g->column.out) *
		      (double)(g->row.size * g->column.size) * (double)g->channels *
		      (double)g->filters / PIECE_WORK;
	int64_t threads = c->runtime ? thread_pool_size(c->runtime->pool) : 1;

	return least(units, work < 2 ? 1 : work < (double)threads ? (int64_t)work : threads);
}

static int scratch_new(struct direct *d, struct mu_tensor *scratch, struct mu_err *err)
{
	struct mu_shape s;
	int64_t dims[2] = {d->pieces, (int64_t)d->scratch_each};
	int rc = mu_shape_set(&s, 2, dims, err);

	if (!rc && !(rc = mu_tensor_new(scratch, MU_UINT8, &s, err)))
		d->scratch = scratch->data;
	return rc;
}

/* ---- sums over windows ---- */

/* One output row of one strip. */
static void row_sum(const struct direct *d, struct tile *t, const char *image, int64_t y)
{
	const struct conv *g = &d->g;
	const int64_t out = g->column.out, tiles = (out + d->tile->rows - 1) / d->tile->rows;
	tile_loop *const *run = d->tile->run[t->columns > d->tile->lanes];
	char *c = t->c;

	for (int64_t i = 0; i < tiles; i++) {
		int64_t at = out * i / tiles, rows = out * (i + 1) / tiles - at;
		t->a = image + (size_t)(y * g->row.stride * d->pitch +
					at * g->column.stride * g->channels) *
				   d->size;
		t->c = c + (size_t)(at * g->filters) * d->size;
		run[rows - 1](t);
	}
}

/* Of groups [from, to), those whose row of taps lies in the input at output row y: the others see
 * the border only. */
static void groups_seen(const struct direct *d, int64_t y, int64_t *from, int64_t *to)
{
	int64_t in_row = d->groups / d->g.row.size, k0, k1;

	window_clip(&d->g.row, y, &k0, &k1);
	*from = *from > k0 * in_row ? *from : k0 * in_row;
	*to = least(*to, k1 * in_row);
	*to = *to > *from ? *to : *from;
}

/* Rows [y0, y1) of an image's output, groups [from, to), strip after strip. */
static void block_sum(const struct direct *d, int64_t image, const char *x, int64_t y0, int64_t y1,
		      int64_t from, int64_t to)
{
	const struct conv *g = &d->g;
	int64_t at[GROUPS_MOST], all = d->groups * d->taps * d->width;
	struct tile t = {.run = d->taps,
			 .a_row = g->column.stride * g->channels,
			 .a_k = 1,
			 .c_row = g->filters,
			 .add = from > 0};

	for (int64_t i = from; i < to; i++)
		at[i - from] = group_at(d, i);
	for (int64_t s = 0; s < d->strips; s++) {
		t.b_k = strip_width(d, s);
		t.columns = least(d->width, g->filters - s * d->width);
		for (int64_t y = y0; y < y1; y++) {
			int64_t first = from, last = to;
			groups_seen(d, y, &first, &last);
			if (first == last && t.add)
				continue;
			t.runs = at + (first - from);
			t.n_runs = last - first;
			t.b = d->w + (size_t)(s * all + first * d->taps * t.b_k) * d->size;
			t.c = d->out +
			      (size_t)(((image * g->row.out + y) * g->column.out) * g->filters +
				       s * d->width) *
				  d->size;
			row_sum(d, &t, x, y);
		}
	}
}

/* Rows [y0, y1) of an image's output: as many at a time as stay in the cache while strips pass, as
 * many taps at a time as a strip of them does while rows pass. */
static void image_sum(const struct direct *d, int64_t image, const char *x, int64_t y0, int64_t y1)
{
	const struct conv *g = &d->g;
	int64_t groups = FILTER_BLOCK / (d->taps * d->width * (int64_t)d->size);
	int64_t rows = ROWS_BLOCK / (g->row.stride * d->pitch * (int64_t)d->size);
	int64_t least_rows = POSITIONS_LEAST / g->column.out + 1;

	groups = groups < 1 ? 1 : least(groups, GROUPS_MOST);
	rows = rows < least_rows ? least_rows : rows;
	for (int64_t y = y0; y < y1; y += rows)
		for (int64_t k = 0; k < d->groups; k += groups)
			block_sum(d, image, x, y, least(y + rows, y1), k,
				  least(k + groups, d->groups));
}

static void window_sums(void *arg, int64_t from, int64_t to)
{
	const struct direct *d = arg;
	const int64_t rows = d->g.row.out, all = d->g.batch * rows;

	for (int64_t piece = from; piece < to; piece++) {
		int64_t at = all * piece / d->pieces, end = all * (piece + 1) / d->pieces, next;
		char *to_image = d->scratch + (size_t)piece * d->scratch_each;
		for (; at < end; at = next) {
			int64_t image = at / rows;
			next = least(end, (image + 1) * rows);
			image_sum(d, image, image_read(d, image, to_image), at - image * rows,
				  next - image * rows);
		}
	}
}

/* Filters as strips: `steps` matrices of `deep` rows each, whose elements are `k` and `column`
 * apart; step i starts at from + i * step. */
struct strips {
	const struct direct *d;
	const char *from;
	char *to;
	int64_t steps, step, deep, k, column;
};

static void make_strips(void *arg, int64_t from, int64_t to)
{
	const struct strips *p = arg;
	const struct direct *d = p->d;
	size_t all = (size_t)(p->steps * p->deep * d->width) * d->size;

	for (int64_t s = from; s < to; s++) {
		int64_t n = least(d->width, d->g.filters - s * d->width), width = strip_width(d, s);
		char *at = p->to + (size_t)s * all;
		for (int64_t i = 0; i < p->steps; i++)
			pack_right(d->size, at + (size_t)(i * p->deep * width) * d->size,
				   p->from + (ptrdiff_t)(i * p->step + s * d->width * p->column) *
						 (ptrdiff_t)d->size,
				   p->deep, n, width, p->k, p->column);
	}
}

static int window_run(struct kernel_call *c, struct direct *d, struct strips *p, struct mu_err *err)
{
	MU_AUTO_TENSOR filter = {0}, scratch = {0};
	struct mu_shape s;
	int64_t dims[4] = {d->strips, d->width, d->groups, d->taps};
	int rc;

	d->pieces = pieces_of(c, &d->g, d->g.batch * d->g.row.out);
	d->scratch_each = d->image_bytes;
	if ((rc = mu_shape_set(&s, 4, dims, err)) ||
	    (rc = mu_tensor_new(&filter, d->g.type, &s, err)) ||
	    (rc = scratch_new(d, &scratch, err)))
		return rc;
	p->d = d;
	p->to = filter.data;
	d->w = filter.data;
	kernel_parallel(c, d->strips, 1 + PIECE_WORK / (d->width * d->groups * d->taps),
			make_strips, p);
	kernel_parallel(c, d->pieces, 1, window_sums, d);
	return 0;
}

bool conv_direct(struct kernel_call *c, const struct conv *g, const void *input, const void *filter,
		 void *output, int *rc, struct mu_err *err)
{
	struct direct d;

	if (!fits(g))
		return false;
	init(&d, g);
	d.x = input;
	d.out = output;
	struct strips p = {
	    .from = filter, .steps = 1, .deep = d.groups * d.taps, .k = g->filters, .column = 1};
	*rc = window_run(c, &d, &p, err);
	return true;
}

/* The same window the other way: from the output's gradient to the input. */
static struct window_axis back(const struct window_axis *x)
{
	return (struct window_axis){.in = x->out,
				    .size = x->size,
				    .stride = 1,
				    .dilation = x->dilation,
				    .out = x->in,
				    .pad = reach(x) - 1 - x->pad};
}

bool conv_direct_input(struct kernel_call *c, const struct conv *g, const void *filter,
		       const void *grad, void *input, int *rc, struct mu_err *err)
{
	struct conv b = {.type = g->type,
			 .batch = g->batch,
			 .channels = g->filters,
			 .filters = g->channels,
			 .groups = g->groups,
			 .row = back(&g->row),
			 .column = back(&g->column)};
	struct direct d;

	if (g->row.stride != 1 || g->column.stride != 1 || !fits(&b))
		return false;
	init(&d, &b);
	d.x = grad;
	d.out = input;
	int64_t taps = g->row.size * g->column.size, each = g->channels * g->filters;
	struct strips p = {.from = (const char *)filter + (size_t)((taps - 1) * each) * d.size,
			   .steps = taps,
			   .step = -each,
			   .deep = g->filters,
			   .k = 1,
			   .column = g->filters};
	*rc = window_run(c, &d, &p, err);
	return true;
}

/* ---- sums over positions ---- */

/* Rows [y0, y1) of each of `n` images, and one strip of the filter's gradient to which they add. */
struct slab {
	const char *x; /* the first image */
	int64_t image, n, y0, y1, strip;
	const int64_t *runs; /* where their rows start */
	const char *y;       /* their gradients, packed */
	char *out;
	bool add;
};

/* Of output rows [y0, y1), those whose windows have this group's row of taps in the input. */
static void rows_seen(const struct direct *d, int64_t group, int64_t *y0, int64_t *y1)
{
	const struct window_axis *row = &d->g.row;
	int64_t tap = group / (d->groups / row->size) * row->dilation - row->pad;
	int64_t first = tap < 0 ? (-tap + row->stride - 1) / row->stride : 0;
	int64_t end = tap < row->in ? (row->in - tap + row->stride - 1) / row->stride : 0;

	*y0 = *y0 > first ? *y0 : first;
	*y1 = least(*y1, end);
	*y1 = *y1 > *y0 ? *y1 : *y0;
}

static void slab_sum(const struct direct *d, const struct slab *b)
{
	const struct conv *g = &d->g;
	int64_t tiles = (d->taps + d->tile->rows - 1) / d->tile->rows;
	struct tile t = {.run = g->column.out,
			 .a_row = 1,
			 .a_k = g->column.stride * g->channels,
			 .b_k = strip_width(d, b->strip),
			 .c_row = g->filters,
			 .columns = least(d->width, g->filters - b->strip * d->width),
			 .add = b->add};

	for (int64_t group = 0; group < d->groups; group++) {
		int64_t y0 = b->y0, y1 = b->y1;
		if (b->n == 1)
			rows_seen(d, group, &y0, &y1);
		if (y0 == y1 && t.add)
			continue;
		t.runs = b->runs + (y0 - b->y0);
		t.n_runs = b->n * (y1 - y0);
		t.b = b->y + (size_t)((y0 - b->y0) * g->column.out * t.b_k) * d->size;
		for (int64_t i = 0; i < tiles; i++) {
			int64_t at = d->taps * i / tiles, rows = d->taps * (i + 1) / tiles - at;
			t.a = b->x + (size_t)(group_at(d, group) + at) * d->size;
			t.c = b->out +
			      (size_t)((group * d->taps + at) * g->filters + b->strip * d->width) *
				  d->size;
			d->tile->run[t.columns > d->tile->lanes][rows - 1](&t);
		}
	}
}

/* How a piece's scratch memory is shared: images, gradients of a strip, where rows start, sums. */
struct room {
	size_t grads, runs, sum, all;
};

static struct room room_of(const struct direct *d, int64_t rows)
{
	const struct conv *g = &d->g;
	struct room r;
	int64_t positions = d->images * rows * g->column.out;

	r.grads = (size_t)d->images * d->image_bytes;
	r.runs = r.grads + (size_t)(positions * d->width) * d->size;
	r.sum = (r.runs + (size_t)(d->images * rows) * sizeof(int64_t) + 63) & ~(size_t)63;
	r.all = r.sum;
	if (!d->by_strips)
		r.all += (size_t)(d->groups * d->taps * g->filters) * d->size;
	r.all = (r.all + 63) & ~(size_t)63;
	return r;
}

/* Output rows that are summed at a time. */
static int64_t slab_rows(const struct direct *d)
{
	int64_t rows = POSITIONS / d->g.column.out;

	return d->images > 1 ? d->g.row.out : least(rows < 1 ? 1 : rows, d->g.row.out);
}

static void slab_run(const struct direct *d, struct slab *b, char *scratch, int64_t s0, int64_t s1)
{
	const struct conv *g = &d->g;
	struct room room = room_of(d, slab_rows(d));
	int64_t *runs = (int64_t *)(scratch + room.runs), *at = runs;
	int64_t from_image = d->bordered ? (int64_t)(d->image_bytes / d->size)
					 : g->row.in * g->column.in * g->channels;

	for (int64_t i = 0; i < b->n; i++)
		for (int64_t y = b->y0; y < b->y1; y++)
			*at++ = i * from_image + y * g->row.stride * d->pitch;
	b->runs = runs;
	b->y = scratch + room.grads;
	for (b->strip = s0; b->strip < s1; b->strip++) {
		int64_t first = (b->image * g->row.out + b->y0) * g->column.out;
		int64_t n = least(d->width, g->filters - b->strip * d->width);
		pack_right(d->size, scratch + room.grads,
			   d->y + (size_t)(first * g->filters + b->strip * d->width) * d->size,
			   b->n * (b->y1 - b->y0) * g->column.out, n, strip_width(d, b->strip),
			   g->filters, 1);
		slab_sum(d, b);
	}
}

static void position_sums(void *arg, int64_t from, int64_t to)
{
	const struct direct *d = arg;
	const struct conv *g = &d->g;

	for (int64_t piece = from; piece < to; piece++) {
		int64_t all = d->by_strips ? d->strips : g->batch;
		int64_t first = all * piece / d->pieces, last = all * (piece + 1) / d->pieces;
		int64_t image = d->by_strips ? 0 : first, end = d->by_strips ? g->batch : last;
		char *scratch = d->scratch + (size_t)piece * d->scratch_each;
		struct slab b = {.out = d->by_strips || !piece
					    ? d->out
					    : scratch + room_of(d, slab_rows(d)).sum};
		for (; image < end; image += b.n) {
			b.n = least(d->images, end - image);
			b.image = image;
			b.x = image_read(d, image, scratch);
			for (int64_t i = 1; i < b.n && d->bordered; i++)
				image_read(d, image + i, scratch + (size_t)i * d->image_bytes);
			for (int64_t y = 0; y < g->row.out; y = b.y1, b.add = true) {
				b.y0 = y;
				b.y1 = least(y + slab_rows(d), g->row.out);
				slab_run(d, &b, scratch, d->by_strips ? first : 0,
					 d->by_strips ? last : d->strips);
			}
		}
	}
}

/* Strips when they share out well: then nothing need be added up. */
static void share_out(struct kernel_call *c, struct direct *d)
{
	const struct conv *g = &d->g;
	size_t filter = (size_t)(d->groups * d->taps * g->filters) * d->size;
	int64_t threads = pieces_of(c, g, INT64_MAX);

	d->by_strips = d->strips % threads == 0 || d->strips >= 4 * threads;
	if (!d->by_strips) {
		int64_t most = (int64_t)(PARTIALS_MOST / filter) + 1;
		threads = least(threads, least(most, g->batch));
	}
	d->pieces = threads;
	d->images = IMAGE_ALONE / (g->row.out * g->column.out)
			? POSITIONS / (g->row.out * g->column.out)
			: 1;
	if (d->image_bytes)
		d->images = least(d->images, (int64_t)(IMAGES_BYTES / d->image_bytes));
	d->images = d->images < 1 ? 1 : least(d->images, g->batch);
	d->scratch_each = room_of(d, slab_rows(d)).all;
}

bool conv_direct_filter(struct kernel_call *c, const struct conv *g, const void *input,
			const void *grad, void *filter, int *rc, struct mu_err *err)
{
	MU_AUTO_TENSOR scratch = {0};
	struct direct d;

	if (!fits(g))
		return false;
	init(&d, g);
	d.x = input;
	d.y = grad;
	d.out = filter;
	share_out(c, &d);
	if ((*rc = scratch_new(&d, &scratch, err)))
		return true;
	kernel_parallel(c, d.pieces, 1, position_sums, &d);
	for (int64_t piece = 1; !d.by_strips && piece < d.pieces; piece++)
		loops->binary[BIN_AddV2][g->type](filter, filter,
						  d.scratch + (size_t)piece * d.scratch_each +
						      room_of(&d, slab_rows(&d)).sum,
						  d.groups * d.taps * g->filters, BOTH_RUN);
	return true;
}
