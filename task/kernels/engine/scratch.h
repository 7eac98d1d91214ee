/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_ENGINE_SCRATCH_H
#define MU_TASK_KERNELS_ENGINE_SCRATCH_H

#include <stddef.h>

/* Returns the working memory of this thread: at least `bytes`, aligned to 64, with undefined
 * content. It is freed when the thread ends, so kernels must bound its size.  The next call in this
 * thread invalidates it. */
void *scratch_get(size_t bytes);

#endif
