/* SPDX-License-Identifier: Apache-2.0 */
/* Pools and their gradients, NHWC.  A thread makes one element; of a gradient, by going through the
 * windows that its element lies in, in the CPU's order, so nothing is added to by two threads. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

/* The part of window o that lies in the image: elements [from, to). */
struct covered {
	int64_t from, to;
};
DEVICE struct covered in_window(const struct window_axis_args *x, int64_t o)
{
	int64_t at = o * x->stride - x->pad, end = at + x->size;
	struct covered c = {at < 0 ? 0 : at, end < x->in ? end : x->in};

	return c;
}

/* The windows that element i lies in. */
DEVICE struct covered windows_of(const struct window_axis_args *x, int64_t i)
{
	int64_t last = (i + x->pad) / x->stride, before = i + x->pad - x->size;
	struct covered c = {before < 0 ? 0 : before / x->stride + 1,
			    last < x->out ? last + 1 : x->out};

	return c;
}

/* Element number -> batch, row, column, channel. */
struct place {
	int64_t image, row, column, channel;
};
DEVICE struct place place_of(int64_t i, int64_t rows, int64_t columns, int64_t channels)
{
	int64_t pixel = divided(i, channels), line = divided(pixel, columns);
	struct place p = {divided(line, rows), 0, pixel - line * columns, i - pixel * channels};

	p.row = line - p.image * rows;
	return p;
}

#define AT_IN(p, y, x)                                                                             \
	((((p).image * a.row.in + (y)) * a.column.in + (x)) * a.channels + (p).channel)
#define AT_OUT(p, i, j)                                                                            \
	((((p).image * a.row.out + (i)) * a.column.out + (j)) * a.channels + (p).channel)
#define EACH_COVERED(i, c) for (int64_t i = (c).from; i < (c).to; i++)

/* The value of windows outside the image: the smallest number, or 0. */
#define MOST_f32  3.402823466e38f
#define MOST_f64  1.7976931348623157e308
#define MOST_f16  MOST_f32
#define MOST_bf16 MOST_f32

/* `part` is what an element gets from window (k, l), which lies over `down` and `across`. */
#define POOL_BACK_KERNEL(t, how, part)                                                             \
	KERNEL(pool_##how##_back_##t, pool_args)                                                   \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct place p = place_of(i, a.row.in, a.column.in, a.channels);     \
			const struct covered rows = windows_of(&a.row, p.row),                     \
					     columns = windows_of(&a.column, p.column);            \
			C(t) sum = 0;                                                              \
			EACH_COVERED(k, rows)                                                      \
			EACH_COVERED(l, columns)                                                   \
			{                                                                          \
				const struct covered down = in_window(&a.row, k),                  \
						     across = in_window(&a.column, l);             \
				sum += part;                                                       \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
#define POOL_KERNELS(t)                                                                            \
	KERNEL(pool_max_##t, pool_args)                                                            \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct place p = place_of(i, a.row.out, a.column.out, a.channels);   \
			const struct covered down = in_window(&a.row, p.row),                      \
					     across = in_window(&a.column, p.column);              \
			C(t) x = -MOST_##t;                                                        \
			if (down.from < down.to && across.from < across.to)                        \
				x = GET(t, a.in, AT_IN(p, down.from, across.from));                \
			EACH_COVERED(r, down)                                                      \
			EACH_COVERED(q, across)                                                    \
			{                                                                          \
				const C(t) y = GET(t, a.in, AT_IN(p, r, q));                       \
				x = larger(x, y);                                                  \
			}                                                                          \
			PUT(t, a.out, i, x);                                                       \
		}                                                                                  \
	}                                                                                          \
	KERNEL(pool_average_##t, pool_args)                                                        \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct place p = place_of(i, a.row.out, a.column.out, a.channels);   \
			const struct covered down = in_window(&a.row, p.row),                      \
					     across = in_window(&a.column, p.column);              \
			const int64_t height = down.to - down.from,                                \
				      width = across.to - across.from;                             \
			C(t) sum = 0;                                                              \
			EACH_COVERED(r, down)                                                      \
			EACH_COVERED(q, across)                                                    \
			sum += GET(t, a.in, AT_IN(p, r, q));                                       \
			PUT(t, a.out, i,                                                           \
			    height > 0 && width > 0 ? sum / (C(t))(height * width) : 0);           \
		}                                                                                  \
	}                                                                                          \
	/* the first of a window's largest: its pixel, counted in its image */                     \
	DEVICE int64_t largest_##t(const struct pool_args *g, const struct place *p,               \
				   const struct covered *down, const struct covered *across)       \
	{                                                                                          \
		const struct pool_args a = *g;                                                     \
		int64_t at = down->from * a.column.in + across->from;                              \
		C(t) best = GET(t, a.in, AT_IN(*p, down->from, across->from));                     \
		EACH_COVERED(r, *down)                                                             \
		EACH_COVERED(q, *across)                                                           \
		{                                                                                  \
			const C(t) v = GET(t, a.in, AT_IN(*p, r, q));                              \
			if (best < v) {                                                            \
				best = v;                                                          \
				at = r * a.column.in + q;                                          \
			}                                                                          \
		}                                                                                  \
		return at;                                                                         \
	}                                                                                          \
	/* the largest with their places; or, with a gradient, what of it is there */              \
	KERNEL(pool_places_##t, pool_args)                                                         \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct place p = place_of(i, a.row.out, a.column.out, a.channels);   \
			const struct covered down = in_window(&a.row, p.row),                      \
					     across = in_window(&a.column, p.column);              \
			const int any = down.from < down.to && across.from < across.to;            \
			const int64_t image = p.image * a.row.in * a.column.in;                    \
			const int64_t pixel = any ? largest_##t(&a, &p, &down, &across) : 0;       \
			const int64_t from = (image + pixel) * a.channels + p.channel;             \
			PUT(t, a.out, i, any ? GET(t, a.grad ? a.grad : a.in, from) : 0);          \
			const int64_t at = any ? from - (a.whole ? 0 : image * a.channels) : 0;    \
			if (a.at && a.wide)                                                        \
				PTR(int64_t, a.at)[i] = at;                                        \
			else if (a.at)                                                             \
				PTR(int32_t, a.at)[i] = (int32_t)at;                               \
		}                                                                                  \
	}                                                                                          \
	POOL_BACK_KERNEL(t, max,                                                                   \
			 largest_##t(&a, &p, &down, &across) == p.row * a.column.in + p.column     \
			     ? GET(t, a.grad, AT_OUT(p, k, l))                                     \
			     : 0)                                                                  \
	POOL_BACK_KERNEL(t, average,                                                               \
			 GET(t, a.grad, AT_OUT(p, k, l)) /                                         \
			     (C(t))((down.to - down.from) * (across.to - across.from)))
EACH_FLT(POOL_KERNELS)

/* Places -> numbers of elements; one outside its image: -1. */
KERNEL(pool_keys, pool_keys_args)
{
	EACH(i, a.n)
	{
		const int64_t own = divided(i, a.each) * a.image;
		const int64_t at = index_at(a.at, i, a.wide) - (a.whole ? own : 0);
		PTR(int64_t, a.keys)[i] = at < 0 || at >= a.image ? -1 : own + at;
		PTR(int64_t, a.order)[i] = i;
	}
}
#undef AT_IN
#undef AT_OUT
