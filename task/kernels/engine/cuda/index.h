/* SPDX-License-Identifier: Apache-2.0 */
/* Indices: of broadcast operands, of int32 and int64 tensors, and of row updates sorted by row.
 *
 * One thread applies all updates of a row, in the order of the input, so results are deterministic
 * and equal to the CPU's.  Updates are therefore sorted by row (array/scatter.cu.h), and the thread
 * at the first update of a row applies the updates up to the last one of that row. */
#ifndef MU_TASK_KERNELS_ENGINE_CUDA_INDEX_H
#define MU_TASK_KERNELS_ENGINE_CUDA_INDEX_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/cuda/types.h"

DEVICE int64_t operand_offset(const struct broadcast_args *b, int64_t i, int operand)
{
	int64_t rest = i, at = 0;

	for (int d = b->rank - 1; d > 0; d--) {
		const int64_t q = index_div(rest, b->dim[d]);
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

/* The row of sorted update s if s is the first update of that row; -1 otherwise, or if the row is
 * out of range. */
DEVICE int64_t first_update_of_row(const struct by_row *by, int64_t s)
{
	const int64_t *keys = PTR(const int64_t, by->keys);

	return s > 0 && keys[s - 1] == keys[s] ? -1 : keys[s];
}

DEVICE int updates_row(const struct by_row *by, int64_t s, int64_t key)
{
	return s < by->n && PTR(const int64_t, by->keys)[s] == key;
}

/* The position in the input of sorted update s. */
DEVICE int64_t update_position(const struct by_row *by, int64_t s)
{
	return PTR(const int64_t, by->order)[s];
}

#endif
