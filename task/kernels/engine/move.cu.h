/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of elements that depend only on their size. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

DEVICE int64_t view_at(const struct view_args *a, int64_t i)
{
	int64_t at = a->offset, rest = i;

	for (int d = a->rank - 1; d >= 0; d--) {
		int64_t q = divided(rest, a->dim[d]);
		at += (rest - q * a->dim[d]) * a->stride[d];
		rest = q;
	}
	return at;
}

#define MOVE_KERNELS(bits)                                                                         \
	KERNEL(view_read_##bits, view_args)                                                        \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		PTR(uint##bits##_t, a.out)                                                         \
		[i] = PTR(const uint##bits##_t, a.in)[view_at(&a, i)];                             \
	}                                                                                          \
	KERNEL(view_write_##bits, view_args)                                                       \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		PTR(uint##bits##_t, a.out)                                                         \
		[view_at(&a, i)] = PTR(const uint##bits##_t, a.in)[i];                             \
	}                                                                                          \
	KERNEL(part_##bits, part_args)                                                             \
	{                                                                                          \
		EACH(i, a.rows *a.run)                                                             \
		{                                                                                  \
			int64_t row = i / a.run, at = i % a.run;                                   \
			PTR(uint##bits##_t, a.out)                                                 \
			[row * a.out_row + at] =                                                   \
			    PTR(const uint##bits##_t, a.in)[row * a.in_row + at];                  \
		}                                                                                  \
	}                                                                                          \
	KERNEL(parts_##bits, parts_args)                                                           \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t k = divided(i, a.each), at = i - k * a.each;                       \
			uint##bits##_t *whole = PTR(uint##bits##_t, a.whole);                      \
			if (a.cut)                                                                 \
				PTR(uint##bits##_t, a.part[k])[at] = whole[i];                     \
			else                                                                       \
				whole[i] = a.part[k] ? PTR(const uint##bits##_t, a.part[k])[at]    \
						     : (uint##bits##_t)0;                          \
		}                                                                                  \
	}                                                                                          \
	/* out of range: zero, as TensorFlow's GPU kernels have it */                              \
	KERNEL(gather_##bits, gather_args)                                                         \
	{                                                                                          \
		EACH(i, a.outer *a.count *a.inner)                                                 \
		{                                                                                  \
			int64_t in = i % a.inner, k = i / a.inner % a.count;                       \
			int64_t outer = i / a.inner / a.count;                                     \
			int64_t at = index_at(a.indices, k, a.wide);                               \
			PTR(uint##bits##_t, a.out)                                                 \
			[i] = at < 0 || at >= a.limit                                              \
				  ? (uint##bits##_t)0                                              \
				  : PTR(const uint##bits##_t,                                      \
					a.in)[(outer * a.limit + at) * a.inner + in];              \
		}                                                                                  \
	}                                                                                          \
	KERNEL(one_hot_##bits, one_hot_args)                                                       \
	{                                                                                          \
		EACH(i, a.prefix *a.depth *a.suffix)                                               \
		{                                                                                  \
			int64_t at = i / a.suffix % a.depth;                                       \
			int64_t from = i / a.suffix / a.depth * a.suffix + i % a.suffix;           \
			PTR(uint##bits##_t, a.out)                                                 \
			[i] = (uint##bits##_t)(index_at(a.indices, from, a.wide) == at ? a.on      \
										       : a.off);   \
		}                                                                                  \
	}
EACH_WIDTH(MOVE_KERNELS)
