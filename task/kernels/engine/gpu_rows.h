/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels with a block for each row (engine/cuda/block.h). */
#ifndef MU_TASK_KERNELS_ENGINE_GPU_ROWS_H
#define MU_TASK_KERNELS_ENGINE_GPU_ROWS_H

#include <string.h>

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

enum { GPU_ROW_THREADS = 64, GPU_MOST_BLOCKS = 65535 }; /* ROW_THREADS of engine/cuda/block.h */

static inline struct gpu_grid gpu_grid_of_rows(int64_t rows)
{
	return (struct gpu_grid){rows < GPU_MOST_BLOCKS ? (unsigned)rows : GPU_MOST_BLOCKS,
				 GPU_ROW_THREADS};
}

#endif
