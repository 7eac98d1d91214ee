/* SPDX-License-Identifier: Apache-2.0 */
/* Roll and ReverseSequence: each output element is a copy of one input element. */
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/math.h"

DEVICE int64_t rolled_from(const struct roll_args *a, int64_t i)
{
	int64_t rest = i, stride = 1, from = 0;

	for (int d = a->rank - 1; d >= 0; stride *= a->dim[d--]) {
		int64_t q = index_div(rest, a->dim[d]), at = rest - q * a->dim[d] - a->by[d];
		from += (at < 0 ? at + a->dim[d] : at) * stride;
		rest = q;
	}
	return from;
}

DEVICE int64_t reversed_from(const struct reverse_args *a, int64_t i)
{
	int64_t length = PTR(const int64_t, a->lengths)[i / a->batch_stride % a->batch];
	int64_t at = i / a->seq_stride % a->seq;

	return at < length ? i + (length - 1 - 2 * at) * a->seq_stride : i;
}

#define ROLL_REVERSE_KERNELS(bits)                                                                 \
	KERNEL(roll_##bits, roll_args)                                                             \
	{                                                                                          \
		EACH(i, a.n) MOVE(bits, a.out, i, a.in, rolled_from(&a, i));                       \
	}                                                                                          \
	KERNEL(reverse_##bits, reverse_args)                                                       \
	{                                                                                          \
		EACH(i, a.n) MOVE(bits, a.out, i, a.in, reversed_from(&a, i));                     \
	}
EACH_WIDTH(ROLL_REVERSE_KERNELS)
