/* SPDX-License-Identifier: Apache-2.0 */
/* Windows over three dimensions: pools and their gradients, what each output position of a
 * convolution sees, and its gradient of the input.  A thread makes one element, of the taps in the
 * CPU's order.  Along one axis it is as in two dimensions: kernels.cu has conv.cu.h and pool.cu.h
 * before.
 */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

/* Where an element is: image, place along each axis, channel. */
struct volume_place {
	int64_t image, at[3], channel;
};

DEVICE struct volume_place volume_place_of(int64_t i, int64_t channels, int64_t d, int64_t h,
					   int64_t w)
{
	struct volume_place p;
	int64_t rest = divided(i, channels);

	p.channel = i - rest * channels;
	p.at[2] = rest % w;
	rest = divided(rest, w);
	p.at[1] = rest % h;
	rest = divided(rest, h);
	p.at[0] = rest % d;
	p.image = divided(rest, d);
	return p;
}
#define OUT_PLACE(a, i, channels)                                                                  \
	volume_place_of(i, channels, (a)->axis[0].out, (a)->axis[1].out, (a)->axis[2].out)
#define IN_PLACE(a, i, channels)                                                                   \
	volume_place_of(i, channels, (a)->axis[0].in, (a)->axis[1].in, (a)->axis[2].in)

DEVICE int64_t in_index(const struct volume_args *a, int64_t image, int64_t d, int64_t h, int64_t w)
{
	return ((image * a->axis[0].in + d) * a->axis[1].in + h) * a->axis[2].in + w;
}

DEVICE int64_t out_index(const struct volume_args *a, int64_t image, int64_t d, int64_t h,
			 int64_t w)
{
	return ((image * a->axis[0].out + d) * a->axis[1].out + h) * a->axis[2].out + w;
}

#define EACH_BETWEEN(range, a, place)                                                              \
	const struct covered deep = range(&(a)->axis[0], (place).at[0]);                           \
	const struct covered down = range(&(a)->axis[1], (place).at[1]);                           \
	const struct covered across = range(&(a)->axis[2], (place).at[2]);                         \
	EACH_COVERED(d, deep) EACH_COVERED(h, down) EACH_COVERED(w, across)

/* Elements under the window at an output position. */
DEVICE int64_t width_under(const struct window_axis_args *x, int64_t o)
{
	const struct covered c = in_window(x, o);

	return c.to > c.from ? c.to - c.from : 0;
}

DEVICE int64_t elements_under(const struct volume_args *a, int64_t d, int64_t h, int64_t w)
{
	return width_under(&a->axis[0], d) * width_under(&a->axis[1], h) *
	       width_under(&a->axis[2], w);
}

#define POOL_3D_KERNEL(t, how, expr, last)                                                         \
	KERNEL(how##_pool3d_##t, volume_args)                                                      \
	{                                                                                          \
		typedef C(t) T;                                                                    \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct volume_place p = OUT_PLACE(&a, i, a.channels);                \
			int64_t n = 0;                                                             \
			T x = 0;                                                                   \
			EACH_BETWEEN(in_window, &a, p)                                             \
			{                                                                          \
				const T y =                                                        \
				    GET(t, a.in,                                                   \
					in_index(&a, p.image, d, h, w) * a.channels + p.channel);  \
				x = n++ ? (expr) : y;                                              \
			}                                                                          \
			PUT(t, a.out, i, last);                                                    \
		}                                                                                  \
	}
/* `part` is what an element gets from the window whose gradient is at `at`. */
#define POOL_3D_BACK_KERNEL(t, how, part)                                                          \
	KERNEL(how##_pool3d_back_##t, volume_args)                                                 \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct volume_place p = IN_PLACE(&a, i, a.channels);                 \
			C(t) sum = 0;                                                              \
			EACH_BETWEEN(windows_of, &a, p)                                            \
			{                                                                          \
				const int64_t at =                                                 \
				    out_index(&a, p.image, d, h, w) * a.channels + p.channel;      \
				sum += part;                                                       \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
#define VOLUME_KERNELS(t)                                                                          \
	POOL_3D_KERNEL(t, max, larger(x, y), x)                                                    \
	POOL_3D_KERNEL(t, avg, x + y, n ? x / (T)n : x)                                            \
	POOL_3D_BACK_KERNEL(t, max, GET(t, a.top, at) == GET(t, a.in, i) ? GET(t, a.grad, at) : 0) \
	POOL_3D_BACK_KERNEL(t, avg, GET(t, a.grad, at) / (C(t))elements_under(&a, d, h, w))        \
	KERNEL(patches3d_##t, volume_args)                                                         \
	{                                                                                          \
		const int64_t inner = a.axis[0].size * a.axis[1].size * a.axis[2].size;            \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t rest = divided(i, a.channels), channel = i - rest * a.channels;    \
			int64_t position = divided(rest, inner), tap = rest - position * inner;    \
			const struct volume_place p = OUT_PLACE(&a, a.first + position, 1);        \
			int64_t at[3], in = 1;                                                     \
			for (int k = 2; k >= 0; k--) {                                             \
				at[k] = tap_input(&a.axis[k], p.at[k], cut(&tap, a.axis[k].size)); \
				in = in && at[k] >= 0;                                             \
			}                                                                          \
			PTR(S(t), a.out)                                                           \
			[i] = in ? PTR(const S(t),                                                 \
				       a.in)[in_index(&a, p.image, at[0], at[1], at[2]) *          \
						 a.channels +                                      \
					     channel]                                              \
				 : (S(t))0;                                                        \
		}                                                                                  \
	}                                                                                          \
	KERNEL(conv3d_back_##t, volume_args)                                                       \
	{                                                                                          \
		const int64_t taps = a.axis[0].size * a.axis[1].size * a.axis[2].size;             \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			const struct volume_place p = IN_PLACE(&a, i, a.channels);                 \
			C(t) sum = 0;                                                              \
			for (int64_t tap = 0; tap < taps; tap++) {                                 \
				int64_t rest = tap, at[3], in = 1;                                 \
				for (int k = 2; k >= 0; k--) {                                     \
					at[k] = tap_output(&a.axis[k], p.at[k],                    \
							   cut(&rest, a.axis[k].size));            \
					in = in && at[k] >= 0;                                     \
				}                                                                  \
				if (!in)                                                           \
					continue;                                                  \
				const int64_t g =                                                  \
				    out_index(&a, p.image, at[0], at[1], at[2]) * a.filters;       \
				const int64_t filter = (tap * a.channels + p.channel) * a.filters; \
				for (int64_t f = 0; f < a.filters; f++)                            \
					sum += GET(t, a.grad, g + f) * GET(t, a.top, filter + f);  \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
VOLUME_KERNELS(f32)
VOLUME_KERNELS(f64)
