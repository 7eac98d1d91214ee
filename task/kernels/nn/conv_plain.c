/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution by its definition: a loop over output elements and the taps inside the input. */
#include <string.h>

#include "task/kernels/nn/conv.h"

/* One walk serves all three: they differ in which of the three tensors is summed into. */
#define PLAIN(T)                                                                                   \
	static void taps_##T(const struct conv *g, enum conv_direction dir, T *x, T *w, T *y)      \
	{                                                                                          \
		const int64_t cg = conv_group_channels(g), fg = conv_group_filters(g);             \
		for (int64_t c = 0; c < cg; c++)                                                   \
			for (int64_t f = 0; f < g->filters; f++) {                                 \
				T *a = &x[f / fg * cg + c], *b = &w[c * g->filters + f];           \
				if (dir == CONV_OUTPUT)                                            \
					y[f] += *a * *b;                                           \
				else if (dir == CONV_INPUT_GRAD)                                   \
					*a += y[f] * *b;                                           \
				else                                                               \
					*b += y[f] * *a;                                           \
			}                                                                          \
	}                                                                                          \
	static void walk_##T(const struct conv *g, enum conv_direction dir, T *x, T *w, T *y)      \
	{                                                                                          \
		const struct window_axis *r = &g->row, *q = &g->column;                            \
		const int64_t tap = conv_group_channels(g) * g->filters;                           \
		for (int64_t n = 0; n < g->batch; n++)                                             \
			for (int64_t i = 0; i < r->out; i++)                                       \
				for (int64_t j = 0; j < q->out; j++, y += g->filters) {            \
					int64_t k0, k1, l0, l1;                                    \
					int64_t top = window_clip(r, i, &k0, &k1);                 \
					int64_t left = window_clip(q, j, &l0, &l1);                \
					for (int64_t k = k0; k < k1; k++)                          \
						for (int64_t l = l0; l < l1; l++) {                \
							int64_t iy = top + (k - k0) * r->dilation; \
							int64_t ix =                               \
							    left + (l - l0) * q->dilation;         \
							int64_t at =                               \
							    ((n * r->in + iy) * q->in + ix) *      \
							    g->channels;                           \
							taps_##T(g, dir, x + at,                   \
								 w + (k * q->size + l) * tap, y);  \
						}                                                  \
				}                                                                  \
	}
PLAIN(float)
PLAIN(double)

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

void conv_plain(const struct conv *g, enum conv_direction dir, void *x, void *w, void *y)
{
	size_t bytes = conv_plain_size_of(g, dir);

	if (bytes)
		memset(dir == CONV_OUTPUT ? y : dir == CONV_INPUT_GRAD ? x : w, 0, bytes);
	if (!g->channels || !g->filters)
		return;
	if (g->type == MU_FLOAT)
		walk_float(g, dir, x, w, y);
	else
		walk_double(g, dir, x, w, y);
}
