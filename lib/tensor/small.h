/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for small tensor buffers: each thread keeps a few blocks that it gave back. */
#ifndef MU_TENSOR_SMALL_H
#define MU_TENSOR_SMALL_H

#include <stddef.h>

/* Aligned to 64; NULL when there is no memory.  A block is given back with the size it was asked
 * with, from any thread. */
void *small_alloc(size_t size);
void small_free(void *p, size_t size);

#endif
