/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions, NHWC with HWIO filters: the patches of images, a line for each output pixel, that
 * matrix products take; what such lines add up to in the image; and, where channels fall into
 * groups, the sums themselves.  A thread makes one element, so nothing is added to by two. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

/* The input element under tap k of output o; -1: padding. */
DEVICE int64_t tap_input(const struct window_axis_args *x, int64_t o, int64_t k)
{
	int64_t at = o * x->stride - x->pad + k * x->dilation;

	return at < x->in ? at : -1;
}

/* The output whose tap k lies on input element i; -1: there is none. */
DEVICE int64_t tap_output(const struct window_axis_args *x, int64_t i, int64_t k)
{
	int64_t at = i + x->pad - k * x->dilation;

	if (at < 0 || at % x->stride)
		return -1;
	return at / x->stride < x->out ? at / x->stride : -1;
}

#define CUT(rest, size) cut(&(rest), size)
/* The last digit of a mixed-radix number, which it loses. */
DEVICE int64_t cut(int64_t *rest, int64_t size)
{
	int64_t q = divided(*rest, size), last = *rest - q * size;

	*rest = q;
	return last;
}

#define PIXEL(image, axis, y, x) (((image)*a.row.axis + (y)) * a.column.axis + (x))
#define EACH_TAP(k, l)                                                                             \
	for (int64_t k = 0; k < a.row.size; k++)                                                   \
		for (int64_t l = 0; l < a.column.size; l++)

#define PATCH_KERNEL(bits)                                                                         \
	KERNEL(patches_##bits, conv_args)                                                          \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t rest = i, ch = CUT(rest, a.channels),                              \
				l = CUT(rest, a.column.size);                                      \
			int64_t k = CUT(rest, a.row.size), q = CUT(rest, a.column.out);            \
			int64_t o = CUT(rest, a.row.out);                                          \
			int64_t y = tap_input(&a.row, o, k), x = tap_input(&a.column, q, l);       \
			PTR(uint##bits##_t, a.out)                                                 \
			[i] = y < 0 || x < 0 ? (uint##bits##_t)0                                   \
					     : PTR(const uint##bits##_t,                           \
						   a.in)[PIXEL(rest, in, y, x) * a.channels + ch]; \
		}                                                                                  \
	}
PATCH_KERNEL(16)
PATCH_KERNEL(32)
PATCH_KERNEL(64)

#define CONV_KERNELS(t)                                                                            \
	/* out: the image; in: lines as patches_ makes them */                                     \
	KERNEL(unpatch_##t, conv_args)                                                             \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t rest = i, ch = CUT(rest, a.channels), x = CUT(rest, a.column.in);  \
			int64_t y = CUT(rest, a.row.in);                                           \
			C(t) sum = 0;                                                              \
			EACH_TAP(k, l)                                                             \
			{                                                                          \
				int64_t o = tap_output(&a.row, y, k);                              \
				int64_t q = tap_output(&a.column, x, l);                           \
				int64_t tap =                                                      \
				    (PIXEL(rest, out, o, q) * a.row.size + k) * a.column.size + l; \
				if (o >= 0 && q >= 0)                                              \
					sum += GET(t, a.in, tap * a.channels + ch);                \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}                                                                                          \
	KERNEL(conv_groups_##t, conv_args)                                                         \
	{                                                                                          \
		const int64_t some = a.channels / a.groups, each = a.filters / a.groups;           \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t rest = i, f = CUT(rest, a.filters), q = CUT(rest, a.column.out);   \
			int64_t o = CUT(rest, a.row.out), first = f / each * some;                 \
			C(t) sum = 0;                                                              \
			EACH_TAP(k, l)                                                             \
			{                                                                          \
				int64_t y = tap_input(&a.row, o, k),                               \
					x = tap_input(&a.column, q, l);                            \
				int64_t at = PIXEL(rest, in, y, x) * a.channels + first;           \
				int64_t tap = (k * a.column.size + l) * some;                      \
				for (int64_t ch = 0; y >= 0 && x >= 0 && ch < some; ch++)          \
					sum += GET(t, a.in, at + ch) *                             \
					       GET(t, a.filter, (tap + ch) * a.filters + f);       \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}                                                                                          \
	/* in: the gradient of the output */                                                       \
	KERNEL(conv_groups_input_##t, conv_args)                                                   \
	{                                                                                          \
		const int64_t some = a.channels / a.groups, each = a.filters / a.groups;           \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t rest = i, ch = CUT(rest, a.channels), x = CUT(rest, a.column.in);  \
			int64_t y = CUT(rest, a.row.in), first = ch / some * each;                 \
			C(t) sum = 0;                                                              \
			EACH_TAP(k, l)                                                             \
			{                                                                          \
				int64_t o = tap_output(&a.row, y, k);                              \
				int64_t q = tap_output(&a.column, x, l);                           \
				int64_t at = PIXEL(rest, out, o, q) * a.filters + first;           \
				int64_t tap =                                                      \
				    ((k * a.column.size + l) * some + ch % some) * a.filters +     \
				    first;                                                         \
				for (int64_t f = 0; o >= 0 && q >= 0 && f < each; f++)             \
					sum += GET(t, a.in, at + f) * GET(t, a.filter, tap + f);   \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}                                                                                          \
	/* out [pieces][filter]: piece p takes lines p, p + pieces, … of output pixels */        \
	KERNEL(conv_groups_filter_##t, conv_args)                                                  \
	{                                                                                          \
		const int64_t some = a.channels / a.groups, each = a.filters / a.groups;           \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t rest = i, f = CUT(rest, a.filters), c = CUT(rest, some);           \
			int64_t l = CUT(rest, a.column.size), k = CUT(rest, a.row.size);           \
			int64_t ch = f / each * some + c;                                          \
			C(t) sum = 0;                                                              \
			for (int64_t line = rest; line < a.batch * a.row.out; line += a.pieces) {  \
				int64_t image = line / a.row.out, o = line % a.row.out;            \
				int64_t y = tap_input(&a.row, o, k);                               \
				for (int64_t q = 0; y >= 0 && q < a.column.out; q++) {             \
					int64_t x = tap_input(&a.column, q, l);                    \
					int64_t at = PIXEL(image, in, y, x) * a.channels + ch;     \
					int64_t g = PIXEL(image, out, o, q) * a.filters + f;       \
					if (x >= 0)                                                \
						sum += GET(t, a.in, at) * GET(t, a.grad, g);       \
				}                                                                  \
			}                                                                          \
			PUT(t, a.out, i, sum);                                                     \
		}                                                                                  \
	}
EACH_FLT(CONV_KERNELS)
#undef CUT
#undef PIXEL
#undef EACH_TAP
