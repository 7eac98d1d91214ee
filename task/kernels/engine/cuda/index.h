/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of rows, as they were given and sorted.
 *
 * A thread that changes a row must be the only one that does, and go through what changes it in the
 * order in which that was given: the same bits each time, and the CPU's.  So updates are sorted by
 * row (array/scatter.cu.h), and the thread at the first of a row's goes on to the last of them. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_INDEX_H
#define MU_TASK_KERNELS_ENGINE_CUDA_INDEX_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/types.h"

DEVICE int64_t operand_at(const struct broadcast_args *b, int64_t i, int operand)
{
	int64_t rest = i, at = 0;

	for (int d = b->rank - 1; d > 0; d--) {
		const int64_t q = divided(rest, b->dim[d]);
		at += (rest - q * b->dim[d]) * b->stride[operand][d];
		rest = q;
	}
	return at + rest * b->stride[operand][0];
}

DEVICE int64_t index_at(uint64_t indices, int64_t i, int32_t wide)
{
	return wide ? PTR(const int64_t, indices)[i] : PTR(const int32_t, indices)[i];
}

DEVICE void index_put(uint64_t indices, int64_t i, int64_t value, int32_t wide)
{
	if (wide)
		PTR(int64_t, indices)[i] = value;
	else
		PTR(int32_t, indices)[i] = (int32_t)value;
}

/* The row of update s, if that is the first to it; -1 if it is not, or goes nowhere. */
DEVICE int64_t row_to_do(const struct by_row *by, int64_t s)
{
	const int64_t *keys = PTR(const int64_t, by->keys);

	return s > 0 && keys[s - 1] == keys[s] ? -1 : keys[s];
}

DEVICE int row_goes_on(const struct by_row *by, int64_t s, int64_t key)
{
	return s < by->n && PTR(const int64_t, by->keys)[s] == key;
}

/* Which of the updates, as they were given, stands at s. */
DEVICE int64_t row_from(const struct by_row *by, int64_t s)
{
	return PTR(const int64_t, by->order)[s];
}

#endif
