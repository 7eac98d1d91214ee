/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of matrices for tiles, which read whole vectors. */
#ifndef MU_TASK_KERNELS_PRODUCTS_PACK_H
#define MU_TASK_KERNELS_PRODUCTS_PACK_H

#include <string.h>

#include "lib/base/mem.h"

/* Copies `deep` rows of n elements, from_line apart, to rows of `width` elements; zeros fill them.
 */
static inline void pack_right(size_t size, void *to, const void *from, int64_t deep, int64_t n,
			      int64_t width, int64_t from_line)
{
	if (n < width)
		memset(to, 0, (size_t)(deep * width) * size);
	for (int64_t l = 0; l < deep; l++)
		memcpy((char *)to + (size_t)(l * width) * size,
		       (const char *)from + (size_t)(l * from_line) * size, (size_t)n * size);
}

#endif
