/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of elements, which depend only on the size of an element. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/index.h"
#include "task/kernels/engine/cuda/math.h"

DEVICE int64_t view_at(const struct view_args *a, int64_t i)
{
	int64_t at = a->offset, rest = i;

	for (int d = a->rank - 1; d >= 0; d--) {
		int64_t q = index_div(rest, a->dim[d]);
		at += (rest - q * a->dim[d]) * a->stride[d];
		rest = q;
	}
	return at;
}

#define MOVE_KERNELS(bits)                                                                         \
	KERNEL(view_read_##bits, view_args)                                                        \
	{                                                                                          \
		EACH(i, a.n) MOVE(bits, a.out, i, a.in, view_at(&a, i));                           \
	}                                                                                          \
	KERNEL(view_write_##bits, view_args)                                                       \
	{                                                                                          \
		EACH(i, a.n) MOVE(bits, a.out, view_at(&a, i), a.in, i);                           \
	}                                                                                          \
	KERNEL(part_##bits, part_args)                                                             \
	{                                                                                          \
		EACH(i, a.rows *a.run)                                                             \
		{                                                                                  \
			int64_t row = i / a.run, at = i % a.run;                                   \
			MOVE(bits, a.out, row *a.out_row + at, a.in, row * a.in_row + at);         \
		}                                                                                  \
	}                                                                                          \
	KERNEL(parts_##bits, parts_args)                                                           \
	{                                                                                          \
		EACH(i, a.n)                                                                       \
		{                                                                                  \
			int64_t k = index_div(i, a.each), at = i - k * a.each;                     \
			if (a.cut)                                                                 \
				MOVE(bits, a.part[k], at, a.whole, i);                             \
			else if (a.part[k])                                                        \
				MOVE(bits, a.whole, i, a.part[k], at);                             \
			else                                                                       \
				ZERO(bits, a.whole, i);                                            \
		}                                                                                  \
	}                                                                                          \
	/* An index out of range gives zeros, as in TensorFlow's GPU kernels. */                   \
	KERNEL(gather_##bits, gather_args)                                                         \
	{                                                                                          \
		EACH(i, a.outer *a.count *a.inner)                                                 \
		{                                                                                  \
			int64_t in = i % a.inner, k = i / a.inner % a.count;                       \
			int64_t outer = i / a.inner / a.count;                                     \
			int64_t at = index_at(a.indices, k, a.wide);                               \
			if (at < 0 || at >= a.limit)                                               \
				ZERO(bits, a.out, i);                                              \
			else                                                                       \
				MOVE(bits, a.out, i, a.in, (outer * a.limit + at) * a.inner + in); \
		}                                                                                  \
	}                                                                                          \
	KERNEL(one_hot_##bits, one_hot_args)                                                       \
	{                                                                                          \
		EACH(i, a.prefix *a.depth *a.suffix)                                               \
		{                                                                                  \
			int64_t at = i / a.suffix % a.depth;                                       \
			int64_t from = i / a.suffix / a.depth * a.suffix + i % a.suffix;           \
			const bool is_on = index_at(a.indices, from, a.wide) == at;                \
			PTR(S(w##bits), a.out)[i] = (S(w##bits))(is_on ? a.on : a.off);            \
		}                                                                                  \
	}
EACH_WIDTH(MOVE_KERNELS)
