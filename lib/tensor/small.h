/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for small tensor buffers, with a cache of free blocks per thread. */
#ifndef MU_LIB_TENSOR_SMALL_H
#define MU_LIB_TENSOR_SMALL_H

#include <stddef.h>

/* small_alloc returns a block aligned to 64 bytes, or NULL.  small_free needs the size of the
 * allocation; any thread may call it. */
void *small_alloc(size_t size);
void small_free(void *p, size_t size);

#endif
