/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as matrix products: at once for 1x1 filters, else by patches for what conv_direct.c
 * does not take.
 *
 * A patch is what one output position sees: the taps of its window, rows * columns * channels
 * elements, zeros where the window leaves the input.  With the patches of some positions as the
 * rows of a matrix the three ops are three products with the filter or the gradient.  Patches are
 * made a block at a time in scratch memory that stays in a core's cache; a piece of the work (one a
 * thread) has a block of its own.  Sums over positions are made piece by piece and then added in
 * the pieces' order, so that a result depends on the number of threads but never on their timing.
 *
 * Grouped convolutions run the plain loops, images spread over the pool. */
#include <limits.h>
#include <string.h>

#include "task/kernels/loops/loops.h"
#include "task/kernels/products/conv.h"
#include "task/kernels/products/conv_direct.h"
#include "task/kernels/products/product.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum {
	BLOCK_BYTES = 512 << 10,    /* patches of a block: half of a usual second-level cache */
	BLOCK_MOST_BYTES = 8 << 20, /* … when each patch is so large that few would fit */
	BLOCK_ROWS = 128,           /* fewer rows a product and packing the filter shows */
	PARTIALS_MOST = 64 << 20,   /* bytes of a filter's gradient summed piece by piece */
	PIECE_WORK = 1 << 20,       /* multiply-adds worth another thread */
};

struct work {
	const struct conv *g;
	size_t size; /* of an element */
	int64_t patch, positions, units, pieces, block;
	const char *x, *w, *y;
	char *out;
	char *scratch;
	size_t scratch_each;
};

static int64_t taps(const struct conv *g)
{
	return g->row.size * g->column.size * conv_group_channels(g);
}

static int64_t pixels(const struct conv *g)
{
	return g->batch * g->row.in * g->column.in;
}

/* 1x1, without strides or padding: one matrix product. */
static bool is_pointwise(const struct conv *g)
{
	return g->groups == 1 && pixels(g) <= INT_MAX && g->row.size == 1 && g->column.size == 1 &&
	       g->row.out == g->row.in && g->column.out == g->column.in && !g->row.pad &&
	       !g->column.pad && g->row.stride == 1 && g->column.stride == 1;
}

/* ---- patches ---- */

struct position {
	int64_t image, i, j;
};

static struct position position_of(const struct conv *g, int64_t at)
{
	int64_t per_image = g->row.out * g->column.out, in_image = at % per_image;

	return (struct position){at / per_image, in_image / g->column.out,
				 in_image % g->column.out};
}

static void position_next(const struct conv *g, struct position *p)
{
	if (++p->j < g->column.out)
		return;
	p->j = 0;
	if (++p->i < g->row.out)
		return;
	p->i = 0;
	p->image++;
}

/* The taps of a position that lie in the input, and the bytes of the input where they start. */
struct seen {
	int64_t k0, k1, l0, l1;
	size_t at;
};

static struct seen see(const struct work *w, struct position p)
{
	const struct conv *g = w->g;
	struct seen s;
	int64_t y = window_clip(&g->row, p.i, &s.k0, &s.k1);
	int64_t x = window_clip(&g->column, p.j, &s.l0, &s.l1);

	s.at = (size_t)(((p.image * g->row.in + y) * g->column.in + x) * g->channels) * w->size;
	return s;
}

static void patch_read(const struct work *w, const char *input, struct position p, char *to)
{
	const struct conv *g = w->g;
	const struct seen s = see(w, p);
	size_t pixel = (size_t)g->channels * w->size, line = (size_t)g->column.size * pixel;
	size_t step = (size_t)(g->row.dilation * g->column.in) * pixel;
	size_t before = (size_t)s.l0 * pixel, run = (size_t)(s.l1 - s.l0) * pixel;

	memset(to, 0, (size_t)s.k0 * line);
	to += (size_t)s.k0 * line;
	input += s.at;
	for (int64_t k = s.k0; k < s.k1; k++, to += line, input += step) {
		if (run < line) {
			memset(to, 0, before);
			memset(to + before + run, 0, line - before - run);
		}
		if (g->column.dilation == 1) {
			memcpy(to + before, input, run);
			continue;
		}
		for (int64_t l = 0; l < s.l1 - s.l0; l++)
			memcpy(to + before + (size_t)l * pixel,
			       input + (size_t)(l * g->column.dilation) * pixel, pixel);
	}
	memset(to, 0, (size_t)(g->row.size - s.k1) * line);
}

/* The other way: each tap is added to the input element it was read from. */
static void patch_add(const struct work *w, char *input, struct position p, const char *from)
{
	const struct conv *g = w->g;
	binary_loop *add = loops->binary[BIN_AddV2][g->type];
	const struct seen s = see(w, p);
	size_t pixel = (size_t)g->channels * w->size, line = (size_t)g->column.size * pixel;
	size_t step = (size_t)(g->row.dilation * g->column.in) * pixel;

	from += (size_t)s.k0 * line + (size_t)s.l0 * pixel;
	input += s.at;
	for (int64_t k = s.k0; k < s.k1; k++, from += line, input += step) {
		if (g->column.dilation == 1) {
			add(input, input, from, (s.l1 - s.l0) * g->channels, BOTH_RUN);
			continue;
		}
		for (int64_t l = 0; l < s.l1 - s.l0; l++) {
			char *to = input + (size_t)(l * g->column.dilation) * pixel;
			add(to, to, from + (size_t)l * pixel, g->channels, BOTH_RUN);
		}
	}
}

/* Patches of positions [at, at + rows), dense. */
static const char *block_read(const struct work *w, char *scratch, int64_t at, int64_t rows)
{
	struct position p = position_of(w->g, at);

	for (int64_t r = 0; r < rows; r++, position_next(w->g, &p))
		patch_read(w, w->x, p, scratch + (size_t)(r * w->patch) * w->size);
	return scratch;
}

/* ---- pieces ---- */

/* False when there is nothing to sum, and then products of sizes could overflow too. */
static bool work_init(struct work *w, const struct conv *g)
{
	*w = (struct work){.g = g, .size = mu_dtype_size(g->type)};
	if (!g->filters || !g->channels)
		return false;
	w->patch = taps(g);
	w->positions = g->batch * g->row.out * g->column.out;
	return w->patch && w->positions;
}

/* Splits `units` (positions or images) over the threads and says how many patches make a block. */
static void work_split(struct kernel_call *c, struct work *w, int64_t units)
{
	double madds = (double)w->positions * (double)w->patch * (double)w->g->filters;
	int64_t threads = c->runtime ? thread_pool_size(c->runtime->pool) : 1;
	int64_t patch = w->patch * (int64_t)w->size;

	w->units = units;
	w->pieces = madds / PIECE_WORK < (double)threads ? (int64_t)(madds / PIECE_WORK) : threads;
	w->pieces = w->pieces < 1 ? 1 : w->pieces > units ? units : w->pieces;
	w->block = BLOCK_BYTES / patch;
	if (w->block < BLOCK_ROWS)
		w->block =
		    BLOCK_ROWS * patch <= BLOCK_MOST_BYTES ? BLOCK_ROWS : BLOCK_MOST_BYTES / patch;
	w->block = w->block < 1 ? 1 : w->block > w->positions ? w->positions : w->block;
	if (w->g->groups == 1)
		w->scratch_each = (size_t)(w->block * patch + 63) & ~(size_t)63;
}

static int work_run(struct kernel_call *c, struct work *w, void (*body)(void *, int64_t, int64_t),
		    struct mu_tensor *scratch, struct mu_err *err)
{
	struct mu_shape bytes = mu_shape_vec((int64_t)w->scratch_each * w->pieces);
	int rc = mu_tensor_new(scratch, MU_UINT8, &bytes, err);

	if (rc)
		return rc;
	w->scratch = scratch->data;
	kernel_parallel(c, w->pieces, 1, body, w);
	return 0;
}

static int64_t piece_at(const struct work *w, int64_t piece)
{
	return (int64_t)((__int128)w->units * piece / w->pieces);
}

/* A grouped piece: the plain loops on a run of images. */
static struct conv images(const struct work *w, int64_t from, int64_t to, size_t *x, size_t *y)
{
	struct conv g = *w->g;

	g.batch = to - from;
	*x = (size_t)(from * g.row.in * g.column.in * g.channels) * w->size;
	*y = (size_t)(from * g.row.out * g.column.out * g.filters) * w->size;
	return g;
}

/* ---- the three ops ---- */

static void forward(void *arg, int64_t from, int64_t to)
{
	const struct work *w = arg;
	struct product p = {.n = w->g->filters, .k = w->patch};

	for (int64_t piece = from; piece < to; piece++) {
		char *scratch = w->scratch + (size_t)piece * w->scratch_each;
		int64_t at = piece_at(w, piece), end = piece_at(w, piece + 1);
		for (; at < end; at += p.m) {
			p.m = end - at < w->block ? end - at : w->block;
			product(w->g->type, &p, block_read(w, scratch, at, p.m), w->w,
				w->out + (size_t)(at * p.n) * w->size);
		}
	}
}

static void forward_grouped(void *arg, int64_t from, int64_t to)
{
	const struct work *w = arg;
	size_t x, y;
	struct conv g = images(w, piece_at(w, from), piece_at(w, to), &x, &y);

	conv_plain(&g, w->x + x, w->w, w->out + y);
}

int conv_run(struct kernel_call *c, const struct conv *g, const void *input, const void *filter,
	     void *output, struct mu_err *err)
{
	MU_AUTO_TENSOR scratch = {0};
	struct work w;

	if (is_pointwise(g)) {
		struct product p = {.m = pixels(g), .n = g->filters, .k = g->channels};

		product_spread(c, g->type, &p, input, filter, output);
		return 0;
	}
	if (conv_direct_fits(g))
		return conv_direct(c, g, input, filter, output, err);
	if (!work_init(&w, g)) {
		conv_plain(g, input, filter, output);
		return 0;
	}
	w.x = input;
	w.w = filter;
	w.out = output;
	work_split(c, &w, g->groups == 1 ? w.positions : g->batch);
	return work_run(c, &w, g->groups == 1 ? forward : forward_grouped, &scratch, err);
}

static void to_input(void *arg, int64_t from, int64_t to)
{
	const struct work *w = arg;
	const struct conv *g = w->g;
	struct product p = {.n = w->patch, .k = g->filters, .trans_b = true};
	int64_t per_image = g->row.out * g->column.out;
	size_t image = (size_t)(g->row.in * g->column.in * g->channels) * w->size;

	for (int64_t piece = from; piece < to; piece++) {
		char *scratch = w->scratch + (size_t)piece * w->scratch_each;
		int64_t first = piece_at(w, piece), last = piece_at(w, piece + 1);
		int64_t at = first * per_image, end = last * per_image;
		struct position pos = position_of(g, at);
		memset(w->out + (size_t)first * image, 0, (size_t)(last - first) * image);
		for (; at < end; at += p.m) {
			p.m = end - at < w->block ? end - at : w->block;
			product(g->type, &p, w->y + (size_t)(at * p.k) * w->size, w->w, scratch);
			for (int64_t r = 0; r < p.m; r++, position_next(g, &pos))
				patch_add(w, w->out, pos, scratch + (size_t)(r * p.n) * w->size);
		}
	}
}

static void to_input_grouped(void *arg, int64_t from, int64_t to)
{
	const struct work *w = arg;
	size_t x, y;
	struct conv g = images(w, piece_at(w, from), piece_at(w, to), &x, &y);

	conv_plain_input(&g, w->w, w->y + y, w->out + x);
}

int conv_run_input(struct kernel_call *c, const struct conv *g, const void *filter,
		   const void *grad, void *input, struct mu_err *err)
{
	MU_AUTO_TENSOR scratch = {0};
	struct work w;

	if (is_pointwise(g)) {
		struct product p = {
		    .m = pixels(g), .n = g->channels, .k = g->filters, .trans_b = true};

		product_spread(c, g->type, &p, grad, filter, input);
		return 0;
	}
	if (conv_direct_input_fits(g))
		return conv_direct_input(c, g, filter, grad, input, err);
	if (!work_init(&w, g)) {
		conv_plain_input(g, filter, grad, input);
		return 0;
	}
	w.w = filter;
	w.y = grad;
	w.out = input;
	work_split(c, &w, g->batch);
	return work_run(c, &w, g->groups == 1 ? to_input : to_input_grouped, &scratch, err);
}

/* Piece 0 sums into the result, each other one into a copy of its own after the patches. */
static char *filter_sum(const struct work *w, int64_t piece, size_t patches)
{
	return piece ? w->scratch + (size_t)piece * w->scratch_each + patches : w->out;
}

static void to_filter(void *arg, int64_t from, int64_t to)
{
	const struct work *w = arg;
	const struct conv *g = w->g;
	size_t filter = (size_t)(w->patch * g->filters) * w->size;
	size_t patches = w->scratch_each - filter;

	for (int64_t piece = from; piece < to; piece++) {
		struct product p = {.m = w->patch, .n = g->filters, .trans_a = true};
		int64_t at = piece_at(w, piece), end = piece_at(w, piece + 1);
		char *scratch = w->scratch + (size_t)piece * w->scratch_each;
		char *sum = filter_sum(w, piece, patches);
		if (g->groups != 1) {
			size_t x, y;
			struct conv part = images(w, at, end, &x, &y);
			conv_plain_filter(&part, w->x + x, w->y + y, sum);
			continue;
		}
		for (; at < end; at += p.k, p.add = true) {
			p.k = end - at < w->block ? end - at : w->block;
			product(g->type, &p, block_read(w, scratch, at, p.k),
				w->y + (size_t)(at * p.n) * w->size, sum);
		}
	}
	/* The caller adds the pieces up when all are there. */
}

int conv_run_filter(struct kernel_call *c, const struct conv *g, const void *input,
		    const void *grad, void *filter, struct mu_err *err)
{
	MU_AUTO_TENSOR scratch = {0};
	struct work w;
	int rc;

	if (is_pointwise(g)) {
		struct product p = {
		    .m = g->channels, .n = g->filters, .k = pixels(g), .trans_a = true};

		product_spread(c, g->type, &p, input, grad, filter);
		return 0;
	}
	if (conv_direct_fits(g))
		return conv_direct_filter(c, g, input, grad, filter, err);
	if (!work_init(&w, g)) {
		conv_plain_filter(g, input, grad, filter);
		return 0;
	}
	w.x = input;
	w.y = grad;
	w.out = filter;
	work_split(c, &w, g->groups == 1 ? w.positions : g->batch);
	int64_t elements = w.patch * g->filters, most = PARTIALS_MOST / elements / 8 + 1;
	size_t patches = w.scratch_each;
	w.pieces = w.pieces < most ? w.pieces : most;
	w.scratch_each += (size_t)elements * w.size;
	rc = work_run(c, &w, to_filter, &scratch, err);
	for (int64_t piece = 1; !rc && piece < w.pieces; piece++)
		loops->binary[BIN_AddV2][g->type](filter, filter, filter_sum(&w, piece, patches),
						  elements, BOTH_RUN);
	return rc;
}
