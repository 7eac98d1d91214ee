/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of groups of few filters, such as depthwise ones, without matrix products, which
 * would have as few columns.
 *
 * The inner loop computes a vector of filters over all taps of a window.  The input is first
 * expanded, so that element f has the channels of the group of filter f: x'[pixel][c][f] is channel
 * c of that group.  With one filter a channel, x' is the input itself.  A few groups are expanded
 * at a time, so that the taps of a window stay in the cache.  docs/performance.md has the figures.
 */
#include "task/kernels/nn/conv_grouped.h"

#include <string.h>

#include "lib/base/ints.h"

enum {
	/* channels * filters of a group; products are faster for more */
	GROUP_MAX = 64,
	GROUP_MAX_GRADIENT = 32,
	PART_FILTERS = 64,         /* of the groups that are expanded together */
	EXPANDED_BYTES = 64 << 20, /* of an expanded image, for each thread */
};

static bool is_expanded(const struct conv *g)
{
	return g->groups != g->channels || g->groups != g->filters;
}

/* The number of groups that are computed together. */
static int64_t part_groups(const struct conv *g)
{
	return is_expanded(g) ? mu_min(g->groups, PART_FILTERS / conv_group_filters(g)) : g->groups;
}

/* Bytes of an expanded pixel. */
static size_t pixel_bytes(const struct conv *g)
{
	int64_t n = conv_group_channels(g) * conv_group_filters(g) * part_groups(g);

	return is_expanded(g) ? (size_t)n * mu_dtype_size(g->type) : 0;
}

size_t conv_grouped_scratch(const struct conv *g)
{
	return (size_t)(g->row.in * g->column.in) * pixel_bytes(g);
}

bool conv_grouped_supports(const struct conv *g, enum conv_direction direction)
{
	const int64_t channels = conv_group_channels(g), filters = conv_group_filters(g);
	const int64_t max_size = direction == CONV_OUTPUT ? GROUP_MAX : GROUP_MAX_GRADIENT;

	return g->groups > 1 && loops->depthwise[g->type][0] && channels * filters <= max_size &&
	       (g->column.dilation == 1 || channels == 1) &&
	       (double)(g->row.in * g->column.in) * (double)pixel_bytes(g) <= EXPANDED_BYTES;
}

/* expand: x' of g->groups groups; `channels`: elements of x from pixel to pixel.  collect: x from
 * the sums of x' over the filters of a channel. */
#define EXPAND(T)                                                                                  \
	static void expand_##T(const struct conv *g, int64_t channels, const T *x, T *to)          \
	{                                                                                          \
		const int64_t cg = conv_group_channels(g), fg = conv_group_filters(g);             \
		for (int64_t p = g->row.in * g->column.in; p > 0; p--, x += channels)              \
			for (int64_t c = 0; c < cg; c++)                                           \
				for (int64_t i = c; i < g->channels; i += cg)                      \
					for (int64_t f = 0; f < fg; f++)                           \
						*to++ = x[i];                                      \
	}                                                                                          \
	static void collect_##T(const struct conv *g, int64_t channels, const T *from, T *x)       \
	{                                                                                          \
		const int64_t cg = conv_group_channels(g), fg = conv_group_filters(g);             \
		for (int64_t p = g->row.in * g->column.in; p > 0; p--, x += channels)              \
			for (int64_t c = 0; c < cg; c++)                                           \
				for (int64_t i = c; i < g->channels; i += cg) {                    \
					T sum = 0;                                                 \
					for (int64_t f = 0; f < fg; f++)                           \
						sum += *from++;                                    \
					x[i] = sum;                                                \
				}                                                                  \
	}
EXPAND(float)
EXPAND(double)

static void grouped_window(const struct conv *g, enum conv_direction direction,
			   const struct conv_taps *t, void *x, void *w, void *y)
{
	struct conv_taps u = *t;

	u.columns *= conv_group_channels(g);
	loops->depthwise[g->type][direction](&u, x, w, y);
}

/* Computes some groups of one image; `part` has their counts. */
static void convolve_part(const struct conv *g, const struct conv *part,
			  enum conv_direction direction, char *x, char *w, char *y, char *scratch)
{
	const struct window_axis *q = &g->column;
	const int64_t cg = conv_group_channels(g), filters = part->filters, pixel = cg * filters;
	const struct conv_taps steps = {.channels = filters,
					.x_row = g->row.dilation * q->in * pixel,
					.x_column = q->dilation * filters,
					.w_row = q->size * cg * g->filters,
					.w_column = g->filters};
	char *from = is_expanded(g) ? scratch : x;

	if (direction == CONV_INPUT_GRAD)
		memset(from, 0, (size_t)(g->row.in * q->in * pixel) * mu_dtype_size(g->type));
	else if (from != x && g->type == MU_FLOAT)
		expand_float(part, g->channels, (float *)x, (float *)scratch);
	else if (from != x)
		expand_double(part, g->channels, (double *)x, (double *)scratch);
	conv_windows(g, direction, pixel, &steps, from, w, y, grouped_window);
	if (direction != CONV_INPUT_GRAD || from == x)
		return;
	if (g->type == MU_FLOAT)
		collect_float(part, g->channels, (float *)scratch, (float *)x);
	else
		collect_double(part, g->channels, (double *)scratch, (double *)x);
}

void conv_grouped(const struct conv *g, enum conv_direction direction, char *x, char *w, char *y,
		  char *scratch)
{
	const int64_t cg = conv_group_channels(g), fg = conv_group_filters(g);
	const int64_t groups = part_groups(g), taps = g->row.size * g->column.size;
	const size_t size = mu_dtype_size(g->type);
	struct conv image = *g, part;

	image.batch = 1;
	if (direction == CONV_FILTER_GRAD)
		memset(w, 0, (size_t)(taps * cg * g->filters) * size);
	for (int64_t i = 0; i < g->batch; i++) {
		for (int64_t k = 0; k < g->groups; k += groups) {
			part = image;
			part.groups = mu_min(groups, g->groups - k);
			part.channels = part.groups * cg;
			part.filters = part.groups * fg;
			convolve_part(&image, &part, direction, x + (size_t)(k * cg) * size,
				      w + (size_t)(k * fg) * size, y + (size_t)(k * fg) * size,
				      scratch);
		}
		x += (size_t)(g->row.in * g->column.in * g->channels) * size;
		y += (size_t)(g->row.out * g->column.out * g->filters) * size;
	}
}
