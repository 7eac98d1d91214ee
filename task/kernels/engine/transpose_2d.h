/* SPDX-License-Identifier: Apache-2.0 */
/* Out-of-place 2-D transpose for element sizes 1, 2, 4 and 8. */
#ifndef MU_TASK_KERNELS_ENGINE_TRANSPOSE_2D_H
#define MU_TASK_KERNELS_ENGINE_TRANSPOSE_2D_H

#include <stddef.h>
#include <stdint.h>

/* to[i * to_step + j] = from[j * from_step + i], i < m, j < n.  Steps count elements. */
void transpose_2d(size_t size, void *to, int64_t to_step, const void *from, int64_t from_step,
		  int64_t m, int64_t n);

#endif
