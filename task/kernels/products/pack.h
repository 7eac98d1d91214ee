/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of matrices in the order in which tiles read them.  Strides count elements of `size`
 * bytes: 4 or 8. */
#ifndef MU_TASK_KERNELS_PRODUCTS_PACK_H
#define MU_TASK_KERNELS_PRODUCTS_PACK_H

#include <stddef.h>
#include <stdint.h>

/* Element (l, j) of n columns, at from + l * k + j * column, to to[l * width + j]; zeros from
 * column n on. */
void pack_right(size_t size, void *to, const void *from, int64_t deep, int64_t n, int64_t width,
		int64_t k, int64_t column);

#endif
