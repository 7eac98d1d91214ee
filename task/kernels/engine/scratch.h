/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_ENGINE_SCRATCH_H
#define MU_TASK_KERNELS_ENGINE_SCRATCH_H

#include <stddef.h>

/* This thread's working memory, at least `bytes`, aligned to 64; what was in it is undefined.  It
 * stays until the thread ends, so ask only for what the kernel itself bounds, and not again before
 * you are done with it. */
void *scratch_get(size_t bytes);

#endif
