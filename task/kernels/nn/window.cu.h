/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions and pools over planes, rows and columns, NDHWC with DHWIO filters; in two dimensions
 * there is one plane.  A thread computes one element, in the CPU's order, so no two threads add to
 * the same element. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

/* An element: image, position along each axis, channel. */
struct window_place {
	int64_t image, at[3], channel;
};

/* The last digit of a mixed-radix number, which is removed from it. */
DEVICE int64_t last_digit(int64_t *rest, int64_t size)
{
	int64_t q = index_div(*rest, size), last = *rest - q * size;

	*rest = q;
	return last;
}

DEVICE struct window_place in_place(const struct window_args *a, int64_t i, int64_t channels)
{
	struct window_place p;

	p.channel = last_digit(&i, channels);
	for (int k = 2; k >= 0; k--)
		p.at[k] = last_digit(&i, a->axis[k].in);
	p.image = i;
	return p;
}

DEVICE struct window_place out_place(const struct window_args *a, int64_t i, int64_t channels)
{
	struct window_place p;

	p.channel = last_digit(&i, channels);
	for (int k = 2; k >= 0; k--)
		p.at[k] = last_digit(&i, a->axis[k].out);
	p.image = i;
	return p;
}

DEVICE int64_t in_pixel(const struct window_args *a, int64_t image, int64_t d, int64_t h, int64_t w)
{
	return ((image * a->axis[0].in + d) * a->axis[1].in + h) * a->axis[2].in + w;
}

DEVICE int64_t out_pixel(const struct window_args *a, int64_t image, int64_t d, int64_t h,
			 int64_t w)
{
	return ((image * a->axis[0].out + d) * a->axis[1].out + h) * a->axis[2].out + w;
}

/* ---- convolutions ---- */

/* The input position under tap k of output o; -1: padding. */
DEVICE int64_t tap_input(const struct window_axis_args *x, int64_t o, int64_t k)
{
	int64_t at = o * x->stride - x->pad + k * x->dilation;

	return at < x->in ? at : -1;
}

/* The output position whose tap k is at input i; -1: none. */
DEVICE int64_t tap_output(const struct window_axis_args *x, int64_t i, int64_t k)
{
	int64_t at = i + x->pad - k * x->dilation;

	if (at < 0 || at % x->stride)
		return -1;
	return at / x->stride < x->out ? at / x->stride : -1;
}

DEVICE int64_t input_of(const struct window_args *a, const struct window_place *p, int64_t k,
			int64_t l, int64_t m)
{
	const int64_t d = tap_input(&a->axis[0], p->at[0], k);
	const int64_t h = tap_input(&a->axis[1], p->at[1], l);
	const int64_t w = tap_input(&a->axis[2], p->at[2], m);

	return d < 0 || h < 0 || w < 0 ? -1 : in_pixel(a, p->image, d, h, w);
}

DEVICE int64_t output_of(const struct window_args *a, const struct window_place *p, int64_t k,
			 int64_t l, int64_t m)
{
	const int64_t d = tap_output(&a->axis[0], p->at[0], k);
	const int64_t h = tap_output(&a->axis[1], p->at[1], l);
	const int64_t w = tap_output(&a->axis[2], p->at[2], m);

	return d < 0 || h < 0 || w < 0 ? -1 : out_pixel(a, p->image, d, h, w);
}

#define EACH_TAP(k, l, m)                                                                          \
	for (int64_t k = 0; k < a.axis[0].size; k++)                                               \
		for (int64_t l = 0; l < a.axis[1].size; l++)                                       \
			for (int64_t m = 0; m < a.axis[2].size; m++)
#define TAP(k, l, m) (((k)*a.axis[1].size + (l)) * a.axis[2].size + (m))

/* some, each: input and output channels of a group. */
#define CONV_KERNELS(t)                                                                            \
	KERNEL(conv_##t, window_args)                                                              \
	{                                                                                          \
		const int64_t some = a.channels / a.groups, each = a.filters / a.groups;           \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct window_place p = out_place(&a, i, a.filters);                 \
			const int64_t first = p.channel / each * some;                             \
			C(t) sum = 0;                                                              \
			EACH_TAP(k, l, m)                                                          \
			{                                                                          \
				const int64_t from = input_of(&a, &p, k, l, m);                    \
				const int64_t in = from * a.channels + first;                      \
				const int64_t filter =                                             \
				    TAP(k, l, m) * some * a.filters + p.channel;                   \
				for (int64_t ch = 0; from >= 0 && ch < some; ch++)                 \
					sum += GET(t, a.in, in + ch) *                             \
					       GET(t, a.filter, filter + ch * a.filters);          \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}                                                                                          \
	KERNEL(conv_input_##t, window_args)                                                        \
	{                                                                                          \
		const int64_t some = a.channels / a.groups, each = a.filters / a.groups;           \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct window_place p = in_place(&a, i, a.channels);                 \
			const int64_t first = p.channel / some * each;                             \
			C(t) sum = 0;                                                              \
			EACH_TAP(k, l, m)                                                          \
			{                                                                          \
				const int64_t from = output_of(&a, &p, k, l, m);                   \
				const int64_t grad = from * a.filters + first;                     \
				const int64_t filter =                                             \
				    (TAP(k, l, m) * some + p.channel % some) * a.filters + first;  \
				for (int64_t f = 0; from >= 0 && f < each; f++)                    \
					sum += GET(t, a.grad, grad + f) *                          \
					       GET(t, a.filter, filter + f);                       \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}                                                                                          \
	KERNEL(conv_filter_##t, window_args)                                                       \
	{                                                                                          \
		const int64_t some = a.channels / a.groups, each = a.filters / a.groups;           \
		const int64_t outputs = a.batch * a.axis[0].out * a.axis[1].out * a.axis[2].out;   \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t rest = i, f = last_digit(&rest, a.filters);                        \
			const int64_t ch = f / each * some + last_digit(&rest, some);              \
			const int64_t m = last_digit(&rest, a.axis[2].size);                       \
			const int64_t l = last_digit(&rest, a.axis[1].size);                       \
			C(t) sum = 0;                                                              \
			for (int64_t o = 0; o < outputs; o++) {                                    \
				const struct window_place p = out_place(&a, o, 1);                 \
				const int64_t from = input_of(&a, &p, rest, l, m);                 \
				if (from >= 0)                                                     \
					sum += GET(t, a.in, from * a.channels + ch) *              \
					       GET(t, a.grad, o * a.filters + f);                  \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
EACH_FLT(CONV_KERNELS)

/* ---- pools ---- */

/* Positions [from, to). */
struct covered_range {
	int64_t from, to;
};

/* The part of window o inside the input. */
DEVICE struct covered_range in_window(const struct window_axis_args *x, int64_t o)
{
	int64_t at = o * x->stride - x->pad, end = at + x->size;
	struct covered_range c = {at < 0 ? 0 : at, end < x->in ? end : x->in};

	return c;
}

/* The windows that cover position i. */
DEVICE struct covered_range windows_of(const struct window_axis_args *x, int64_t i)
{
	int64_t last = (i + x->pad) / x->stride, before = i + x->pad - x->size;
	struct covered_range c = {before < 0 ? 0 : before / x->stride + 1,
				  last < x->out ? last + 1 : x->out};

	return c;
}

/* The number of elements in window (d, h, w). */
DEVICE int64_t window_count(const struct window_args *a, int64_t d, int64_t h, int64_t w)
{
	const int64_t at[3] = {d, h, w};
	int64_t n = 1;

	for (int k = 0; k < 3; k++) {
		const struct covered_range c = in_window(&a->axis[k], at[k]);
		n *= c.to > c.from ? c.to - c.from : 0;
	}
	return n;
}

#define EACH_COVERED(i, c) for (int64_t i = (c).from; i < (c).to; i++)
#define EACH_BETWEEN(range, p)                                                                     \
	const struct covered_range deep = range(&a.axis[0], (p).at[0]);                            \
	const struct covered_range down = range(&a.axis[1], (p).at[1]);                            \
	const struct covered_range across = range(&a.axis[2], (p).at[2]);                          \
	EACH_COVERED(d, deep) EACH_COVERED(h, down) EACH_COVERED(w, across)
#define AT_IN(p, d, h, w)  (in_pixel(&a, (p).image, d, h, w) * a.channels + (p).channel)
#define AT_OUT(p, d, h, w) (out_pixel(&a, (p).image, d, h, w) * a.channels + (p).channel)

/* The value of a window without elements: the lowest number, or 0. */
#define MOST_f32  3.402823466e38f
#define MOST_f64  1.7976931348623157e308
#define MOST_f16  MOST_f32
#define MOST_bf16 MOST_f32

#define POOL_KERNEL(t, how, start, expr, last)                                                     \
	KERNEL(pool_##how##_##t, window_args)                                                      \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct window_place p = out_place(&a, i, a.channels);                \
			int64_t n = 0;                                                             \
			C(t) x = start;                                                            \
			EACH_BETWEEN(in_window, p)                                                 \
			{                                                                          \
				const C(t) y = GET(t, a.in, AT_IN(p, d, h, w));                    \
				x = n++ ? (expr) : y;                                              \
			}                                                                          \
			PUT(t, a.out, i, last);                                                    \
		}                                                                                  \
	}
/* part: the gradient that an element gets from window (d, h, w). */
#define POOL_BACK_KERNEL(t, how, part)                                                             \
	KERNEL(pool_##how##_back_##t, window_args)                                                 \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct window_place p = in_place(&a, i, a.channels);                 \
			C(t) sum = 0;                                                              \
			EACH_BETWEEN(windows_of, p)                                                \
			{                                                                          \
				const int64_t at = AT_OUT(p, d, h, w);                             \
				sum += part;                                                       \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
#define POOL_KERNELS(t)                                                                            \
	POOL_KERNEL(t, max, -MOST_##t, larger(x, y), x)                                            \
	POOL_KERNEL(t, average, 0, x + y, n ? x / (C(t))n : 0)                                     \
	/* The first of the largest elements of output o's window; -1: the window is empty. */     \
	DEVICE int64_t largest_##t(const struct window_args *g, const struct window_place *o)      \
	{                                                                                          \
		const struct window_args a = *g;                                                   \
		int64_t at = -1;                                                                   \
		C(t) best = 0;                                                                     \
		EACH_BETWEEN(in_window, *o)                                                        \
		{                                                                                  \
			const C(t) v = GET(t, a.in, AT_IN(*o, d, h, w));                           \
			if (at < 0 || best < v) {                                                  \
				best = v;                                                          \
				at = AT_IN(*o, d, h, w);                                           \
			}                                                                          \
		}                                                                                  \
		return at;                                                                         \
	}                                                                                          \
	DEVICE int64_t largest_at_##t(const struct window_args *a, int64_t out)                    \
	{                                                                                          \
		const struct window_place o = out_place(a, out, a->channels);                      \
		return largest_##t(a, &o);                                                         \
	}                                                                                          \
	/* The largest elements and their positions; or the gradient at these positions. */        \
	KERNEL(pool_places_##t, window_args)                                                       \
	{                                                                                          \
		const int64_t image = a.axis[0].in * a.axis[1].in * a.axis[2].in * a.channels;     \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct window_place p = out_place(&a, i, a.channels);                \
			const int64_t from = largest_##t(&a, &p);                                  \
			const int64_t at = from - (a.whole ? 0 : p.image * image);                 \
			PUT(t, a.out, i, from < 0 ? 0 : GET(t, a.grad ? a.grad : a.in, from));     \
			if (a.at)                                                                  \
				index_put(a.at, i, from < 0 ? 0 : at, a.wide);                     \
		}                                                                                  \
	}                                                                                          \
	POOL_BACK_KERNEL(t, max, largest_at_##t(&a, at) == i ? GET(t, a.grad, at) : 0)             \
	POOL_BACK_KERNEL(t, average, GET(t, a.grad, at) / (C(t))window_count(&a, d, h, w))         \
	/* MaxPool3DGrad gives the gradient to all elements that equal the largest. */             \
	POOL_BACK_KERNEL(t, equal, GET(t, a.top, at) == GET(t, a.in, i) ? GET(t, a.grad, at) : 0)
EACH_FLT(POOL_KERNELS)

/* Positions -> numbers of elements; a position outside its image: -1. */
KERNEL(pool_keys, pool_keys_args)
{
	EACH(i, a.n)
	{
		const int64_t own = index_div(i, a.each) * a.image;
		const int64_t at = index_at(a.at, i, a.wide) - (a.whole ? own : 0);
		PTR(int64_t, a.keys)[i] = at < 0 || at >= a.image ? -1 : own + at;
		PTR(int64_t, a.order)[i] = i;
	}
}
#undef AT_IN
#undef AT_OUT
#undef EACH_TAP
#undef TAP
