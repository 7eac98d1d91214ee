/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution as it is defined: for each output element and each tap that lies inside the input. */
#include <string.h>

#include "task/kernels/products/conv.h"

enum direction { FORWARD, TO_INPUT, TO_FILTER };

/* One walk serves all three: they differ in which of the three tensors is summed into. */
#define PLAIN(T)                                                                                   \
	static void taps_##T(const struct conv *g, enum direction dir, T *x, T *w, T *y)           \
	{                                                                                          \
		const int64_t cg = conv_group_channels(g), fg = conv_group_filters(g);             \
		for (int64_t c = 0; c < cg; c++)                                                   \
			for (int64_t f = 0; f < g->filters; f++) {                                 \
				T *a = &x[f / fg * cg + c], *b = &w[c * g->filters + f];           \
				if (dir == FORWARD)                                                \
					y[f] += *a * *b;                                           \
				else if (dir == TO_INPUT)                                          \
					*a += y[f] * *b;                                           \
				else                                                               \
					*b += y[f] * *a;                                           \
			}                                                                          \
	}                                                                                          \
	static void walk_##T(const struct conv *g, enum direction dir, T *x, T *w, T *y)           \
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

static void walk(const struct conv *g, enum direction dir, const void *x, const void *w,
		 const void *y)
{
	if (!g->channels || !g->filters)
		return;
	if (g->type == MU_FLOAT)
		walk_float(g, dir, (float *)x, (float *)w, (float *)y);
	else
		walk_double(g, dir, (double *)x, (double *)w, (double *)y);
}

static void zero(const struct conv *g, void *p, int64_t a, int64_t b, int64_t c, int64_t d)
{
	if (a && b && c && d)
		memset(p, 0, (size_t)(a * b * c * d) * mu_dtype_size(g->type));
}

void conv_plain(const struct conv *g, const void *input, const void *filter, void *output)
{
	zero(g, output, g->batch, g->row.out, g->column.out, g->filters);
	walk(g, FORWARD, input, filter, output);
}

void conv_plain_input(const struct conv *g, const void *filter, const void *grad, void *input)
{
	zero(g, input, g->batch, g->row.in, g->column.in, g->channels);
	walk(g, TO_INPUT, input, filter, grad);
}

void conv_plain_filter(const struct conv *g, const void *input, const void *grad, void *filter)
{
	zero(g, filter, g->row.size, g->column.size, conv_group_channels(g), g->filters);
	walk(g, TO_FILTER, input, filter, grad);
}
