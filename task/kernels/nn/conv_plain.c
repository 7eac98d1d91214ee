/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution by its definition: a loop over output elements and the taps inside the input. */
#include <string.h>

#include "task/kernels/nn/conv.h"

/* The direction selects the tensor to which the products are added. */
#define PLAIN(T)                                                                                   \
	static void tap_##T(const struct conv *g, enum conv_direction dir, T *x, T *w, T *y)       \
	{                                                                                          \
		const int64_t cg = conv_group_channels(g), fg = conv_group_filters(g);             \
		for (int64_t i = 0; i < g->groups; i++, x += cg, w += fg, y += fg)                 \
			for (int64_t c = 0; c < cg; c++) {                                         \
				T *a = &x[c], *b = &w[c * g->filters];                             \
				for (int64_t f = 0; f < fg; f++)                                   \
					if (dir == CONV_OUTPUT)                                    \
						y[f] += *a * b[f];                                 \
					else if (dir == CONV_INPUT_GRAD)                           \
						*a += y[f] * b[f];                                 \
					else                                                       \
						b[f] += y[f] * *a;                                 \
			}                                                                          \
	}                                                                                          \
	static void window_##T(const struct conv *g, enum conv_direction dir,                      \
			       const struct conv_taps *t, T *x, T *w, T *y)                        \
	{                                                                                          \
		for (int64_t k = 0; k < t->rows; k++)                                              \
			for (int64_t l = 0; l < t->columns; l++)                                   \
				tap_##T(g, dir, x + k * t->x_row + l * t->x_column,                \
					w + k * t->w_row + l * t->w_column, y);                    \
	}
PLAIN(float)
PLAIN(double)
PLAIN(uint32_t)

static void conv_plain_window(const struct conv *g, enum conv_direction dir,
			      const struct conv_taps *t, void *x, void *w, void *y)
{
	if (g->type == MU_FLOAT)
		window_float(g, dir, t, x, w, y);
	else if (g->type == MU_DOUBLE)
		window_double(g, dir, t, x, w, y);
	else
		window_uint32_t(g, dir, t, x, w, y);
}

/* Bytes of the tensor that is computed. */
static size_t conv_plain_size_of(const struct conv *g, enum conv_direction dir)
{
	const struct window_axis *r = &g->row, *q = &g->column;
	int64_t dims[3][4] = {
	    [CONV_OUTPUT] = {g->batch, r->out, q->out, g->filters},
	    [CONV_INPUT_GRAD] = {g->batch, r->in, q->in, g->channels},
	    [CONV_FILTER_GRAD] = {r->size, q->size, conv_group_channels(g), g->filters},
	};
	size_t bytes = mu_dtype_size(g->type);

	for (int i = 0; i < 4; i++)
		bytes *= (size_t)dims[dir][i];
	return bytes;
}

void conv_windows(const struct conv *g, enum conv_direction dir, int64_t pixel,
		  const struct conv_taps *steps, void *x, void *w, void *y, conv_window *window)
{
	const struct window_axis *r = &g->row, *q = &g->column;
	const size_t size = mu_dtype_size(g->type);
	struct conv_taps t = *steps;

	for (int64_t at = 0; at < g->batch * r->out * q->out; at++) {
		int64_t k0, k1, l0, l1, row = at / q->out;
		int64_t top = row / r->out * r->in + window_clip(r, row % r->out, &k0, &k1);
		int64_t left = window_clip(q, at % q->out, &l0, &l1);
		int64_t tap = (k0 * q->size + l0) * conv_group_channels(g) * g->filters;
		t.rows = k1 - k0;
		t.columns = l1 - l0;
		window(g, dir, &t, (char *)x + (size_t)((top * q->in + left) * pixel) * size,
		       (char *)w + (size_t)tap * size,
		       (char *)y + (size_t)(at * g->filters) * size);
	}
}

void conv_plain(const struct conv *g, enum conv_direction dir, void *x, void *w, void *y)
{
	const int64_t tap = conv_group_channels(g) * g->filters;
	const struct conv_taps steps = {.x_row = g->row.dilation * g->column.in * g->channels,
					.x_column = g->column.dilation * g->channels,
					.w_row = g->column.size * tap,
					.w_column = tap};
	size_t bytes = conv_plain_size_of(g, dir);

	if (bytes)
		memset(dir == CONV_OUTPUT ? y : dir == CONV_INPUT_GRAD ? x : w, 0, bytes);
	if (g->channels && g->filters)
		conv_windows(g, dir, g->channels, &steps, x, w, y, conv_plain_window);
}
