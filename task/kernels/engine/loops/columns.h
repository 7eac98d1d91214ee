/* SPDX-License-Identifier: Apache-2.0 */
/* Reduction of the rows of a matrix to one row. */
#ifndef MU_TASK_KERNELS_ENGINE_LOOPS_COLUMNS_H
#define MU_TASK_KERNELS_ENGINE_LOOPS_COLUMNS_H

#include "task/kernels/engine/loops/loops.h"

/* out[i] = out[i] op in[0, i] op in[1, i] …; elements of `size` bytes, n in a row. */
void columns_reduce(const struct reduce_loops *l, size_t size, void *out, const void *in,
		    int64_t rows, int64_t n);

#endif
