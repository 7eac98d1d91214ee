/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution over the pool.  A 1x1 convolution is one matrix product.  conv_direct.c and
 * conv_grouped.c compute the shapes for which they are faster.  All others are products with
 * matrices of patches, in this file.
 *
 * A patch is the input under the window of one output position: rows * columns * channels elements,
 * zeros where the window leaves the input.  The patches of some positions are the rows of a matrix.
 * A block of patches is built at a time, in scratch memory that stays in the cache of a core.
 *
 * The work is cut into pieces, one a thread.  A filter's gradient is summed piece by piece, and the
 * sums are added in the order of the pieces.  A result therefore depends on the number of threads
 * but never on their timing.
 *
 * Each group has separate patches, of its channels. */
#include <string.h>

#include "lib/base/ints.h"
#include "task/kernels/engine/loops/loops.h"
#include "task/kernels/engine/product.h"
#include "task/kernels/nn/conv_direct.h"
#include "task/kernels/nn/conv_grouped.h"
#include "task/runtime/runtime.h"
#include "task/runtime/thread_pool.h"

enum {
	BLOCK_BYTES = 512 << 10,       /* patches of a block: half of a usual second-level cache */
	BLOCK_BYTES_MAX = 8 << 20,     /* … for patches of which few would fit */
	BLOCK_ROWS = 128,              /* with fewer rows, packing the filter takes too long */
	PARTIALS_BYTES_MAX = 64 << 20, /* bytes of a filter's gradient summed piece by piece */
	PIECE_WORK = 1 << 20,          /* multiply-adds worth another thread */
};

struct work {
	const struct conv *g;
	enum conv_direction direction;
	const struct conv_direct *direct; /* NULL: patches, unless grouped */
	bool grouped;                     /* by conv_grouped.c */
	size_t size;                      /* bytes of an element */
	int64_t patch, positions;         /* elements of a group's patch; their number */
	int64_t units, pieces;            /* bands, images or positions, and their pieces */
	int64_t block;                    /* patches of a block */
	char *x, *w, *y;
	char *scratch; /* of each piece: a block, then a filter's gradient */
	size_t scratch_size, block_size;
};

/* ---- patches ---- */

/* Reads the patches of n positions or, if the input's gradient is computed, adds them to it.
 * x_first is the first channel of a group. */
static void move_patches(const struct work *w, char *x_first, int64_t position, int64_t n,
			 char *patch)
{
	const struct conv *g = w->g;
	const struct window_axis *r = &g->row, *q = &g->column;
	binary_loop *add =
	    w->direction == CONV_INPUT_GRAD ? loops->binary[BIN_AddV2][g->type] : NULL;
	const int64_t channels = conv_group_channels(g);
	size_t pixel = (size_t)g->channels * w->size, bytes = (size_t)w->patch * w->size;
	size_t tap = (size_t)channels * w->size;

	for (int64_t p = position; p < position + n; p++, patch += bytes) {
		int64_t k0, k1, l0, l1, image = p / q->out / r->out * r->in;
		int64_t y = window_clip(r, p / q->out % r->out, &k0, &k1);
		int64_t x = window_clip(q, p % q->out, &l0, &l1);
		/* adjacent taps */
		int64_t run = q->dilation == 1 && g->groups == 1 ? l1 - l0 : 1;
		if (!add && (k1 - k0) * (l1 - l0) < r->size * q->size)
			memset(patch, 0, bytes);
		for (int64_t k = k0; k < k1; k++)
			for (int64_t l = l0; l < l1; l += run) {
				int64_t row = image + y + (k - k0) * r->dilation;
				int64_t column = x + (l - l0) * q->dilation;
				char *at = x_first + (size_t)(row * q->in + column) * pixel;
				char *taps = patch + (size_t)(k * q->size + l) * tap;
				if (add)
					add(at, at, taps, run * channels, BOTH_RUN);
				else
					memcpy(taps, at, (size_t)run * tap);
			}
	}
}

/* Computes positions [at, end).  All groups of a block are computed while it is in the cache. */
static void patch_products(const struct work *w, int64_t at, int64_t end, char *patches,
			   char *filter)
{
	const struct conv *g = w->g;
	const int64_t k = w->patch, f = conv_group_filters(g), line = g->filters;
	bool add = false;

	for (int64_t n; at < end; at += n, add = true) {
		n = mu_min(w->block, end - at);
		const struct product products[] = {
		    [CONV_OUTPUT] = {.m = n, .n = f, .k = k, .b_line = line, .c_line = line},
		    [CONV_INPUT_GRAD] =
			{.m = n, .n = k, .k = f, .trans_b = true, .a_line = line, .b_line = line},
		    [CONV_FILTER_GRAD] = {.m = k,
					  .n = f,
					  .k = n,
					  .trans_a = true,
					  .add = add,
					  .b_line = line,
					  .c_line = line},
		};
		const struct product *p = &products[w->direction];
		for (int64_t i = 0; i < g->groups; i++) {
			char *x = w->x + (size_t)(i * conv_group_channels(g)) * w->size;
			char *y = w->y + (size_t)(at * line + i * f) * w->size;
			char *part = filter + (size_t)(i * f) * w->size;
			if (w->direction != CONV_INPUT_GRAD)
				move_patches(w, x, at, n, patches);
			if (w->direction == CONV_OUTPUT) {
				product(g->type, p, patches, part, y);
			} else if (w->direction == CONV_INPUT_GRAD) {
				product(g->type, p, y, part, patches);
				move_patches(w, x, at, n, patches);
			} else {
				product(g->type, p, patches, y, part);
			}
		}
	}
}

/* ---- pieces ---- */

/* Piece 0 sums a filter's gradient into the result, the other pieces into their scratch memory. */
static char *filter_of(const struct work *w, int64_t piece)
{
	return w->direction == CONV_FILTER_GRAD && piece
		   ? w->scratch + (size_t)piece * w->scratch_size + w->block_size
		   : w->w;
}

static void run_pieces(void *arg, int64_t from, int64_t to)
{
	const struct work *w = arg;
	const struct conv *g = w->g;
	int64_t positions = g->row.out * g->column.out; /* of an image */
	size_t image = (size_t)(g->row.in * g->column.in * g->channels) * w->size;

	for (int64_t piece = from; piece < to; piece++) {
		int64_t at = (int64_t)((__int128)w->units * piece / w->pieces);
		int64_t end = (int64_t)((__int128)w->units * (piece + 1) / w->pieces);
		char *patches = w->scratch + (size_t)piece * w->scratch_size;
		char *filter = filter_of(w, piece);
		if (w->direct) {
			conv_direct_filter(w->direct, w->x, w->y, at, end, filter);
		} else if (w->grouped) {
			struct conv images = *g;
			images.batch = end - at;
			conv_grouped(&images, w->direction, w->x + (size_t)at * image, filter,
				     w->y + (size_t)(at * positions * g->filters) * w->size,
				     patches);
		} else if (w->direction == CONV_INPUT_GRAD) {
			memset(w->x + (size_t)at * image, 0, (size_t)(end - at) * image);
			patch_products(w, at * positions, end * positions, patches, filter);
		} else {
			patch_products(w, at, end, patches, filter);
		}
	}
}

/* Cuts the work over the threads and sets the number of patches of a block. */
static void conv_fast_split(struct kernel_call *c, struct work *w)
{
	const struct conv *g = w->g;
	double pieces = (double)w->positions * (double)w->patch * (double)g->filters / PIECE_WORK;
	int64_t threads = c->runtime ? thread_pool_size(c->runtime->pool) : 1;
	int64_t patch = w->patch * (int64_t)w->size, filter = patch * g->filters;

	w->units = w->direct                                        ? w->direct->bands
		   : !w->grouped && w->direction != CONV_INPUT_GRAD ? w->positions
								    : g->batch;
	w->pieces = mu_min(pieces < 1                 ? 1
			   : pieces < (double)threads ? (int64_t)pieces
						      : threads,
			   w->units);
	if (w->grouped) {
		w->block_size = (conv_grouped_scratch(g) + 63) & ~(size_t)63;
	} else if (!w->direct) {
		w->block = BLOCK_BYTES / patch;
		if (w->block < BLOCK_ROWS)
			w->block = mu_min(BLOCK_ROWS, BLOCK_BYTES_MAX / patch);
		w->block = w->block < 1 ? 1 : mu_min(w->block, w->positions);
		w->block_size = (size_t)(w->block * patch + 63) & ~(size_t)63;
	}
	w->scratch_size = w->block_size;
	if (w->direction == CONV_FILTER_GRAD) {
		w->pieces = mu_min(w->pieces, PARTIALS_BYTES_MAX / filter + 1);
		w->scratch_size += (size_t)filter;
	}
}

static int run_work(struct kernel_call *c, struct work *w, struct mu_err *err)
{
	MU_AUTO_TENSOR scratch = {0};
	struct mu_shape bytes = mu_shape_vec((int64_t)w->scratch_size * w->pieces);

	MU_RETURN_IF_ERROR(mu_tensor_new(&scratch, MU_UINT8, &bytes, err));
	w->scratch = scratch.data;
	kernel_parallel(c, w->pieces, 1, run_pieces, w);
	for (int64_t i = 1; w->direction == CONV_FILTER_GRAD && i < w->pieces; i++)
		loops->binary[BIN_AddV2][w->g->type](w->w, w->w, filter_of(w, i),
						     w->patch * w->g->filters, BOTH_RUN);
	return 0;
}

/* ---- 1x1, without strides or padding: the input's pixels are its patches ---- */

static bool is_pointwise(const struct conv *g)
{
	const struct window_axis *r = &g->row, *q = &g->column;

	return g->groups == 1 && r->size == 1 && q->size == 1 && r->out == r->in &&
	       q->out == q->in && !r->pad && !q->pad && r->stride == 1 && q->stride == 1;
}

static int run_pointwise(struct kernel_call *c, const struct work *w, struct mu_err *err)
{
	int64_t n = w->positions, channels = w->g->channels, filters = w->g->filters;
	const struct product products[] = {
	    [CONV_OUTPUT] = {.m = n, .n = filters, .k = channels},
	    [CONV_INPUT_GRAD] = {.m = n, .n = channels, .k = filters, .trans_b = true},
	    [CONV_FILTER_GRAD] = {.m = channels, .n = filters, .k = n, .trans_a = true},
	};
	const struct product *p = &products[w->direction];

	MU_RETURN_IF_ERROR(product_check("1x1 convolution", w->g->type, p, err));
	if (w->direction == CONV_OUTPUT)
		product_in_parallel(c, w->g->type, p, w->x, w->w, w->y);
	else if (w->direction == CONV_INPUT_GRAD)
		product_in_parallel(c, w->g->type, p, w->y, w->w, w->x);
	else
		product_in_parallel(c, w->g->type, p, w->x, w->y, w->w);
	return 0;
}

int conv_run(struct kernel_call *c, const struct conv *g, enum conv_direction direction, void *x,
	     void *filter, void *y, struct mu_err *err)
{
	struct conv_direct direct;
	struct work w = {.g = g,
			 .direction = direction,
			 .size = mu_dtype_size(g->type),
			 .x = x,
			 .w = filter,
			 .y = y};

	if (g->filters && g->channels) { /* otherwise the other sizes have no bound */
		w.patch = g->row.size * g->column.size * conv_group_channels(g);
		w.positions = g->batch * g->row.out * g->column.out;
	}
	if (!w.patch || !w.positions) {
		conv_plain(g, direction, x, filter, y);
		return 0;
	}
	if (is_pointwise(g))
		return run_pointwise(c, &w, err);
	if (conv_direct_init(&direct, g, direction)) {
		if (direction == CONV_OUTPUT)
			return conv_direct_run(c, &direct, x, filter, y, err);
		if (direction == CONV_INPUT_GRAD)
			return conv_direct_run(c, &direct, y, filter, x, err);
		w.direct = &direct;
	}
	w.grouped = conv_grouped_supports(g, direction);
	conv_fast_split(c, &w);
	return run_work(c, &w, err);
}
