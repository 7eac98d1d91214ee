/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products. */
#ifndef MU_TASK_KERNELS_PRODUCTS_PRODUCT_H
#define MU_TASK_KERNELS_PRODUCTS_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/tensor/dtype.h"

struct kernel_call;

/* c[m, n] = a[m, k] * b[k, n]; a and b are stored the other way round where trans says so.
 * add: c[m, n] += the product instead; minus: -= it.  Parts of larger matrices say how many
 * elements their lines are apart; 0: they follow one another. */
struct product {
	int64_t m, n, k;
	bool trans_a, trans_b, add, minus;
	int64_t a_line, b_line, c_line;
};
bool product_known(enum mu_dtype t); /* float, double, int32, int64 */
void product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c);
/* The same, spread over the pool when it is worth it; the sums are the same to the bit. */
void product_spread(struct kernel_call *call, enum mu_dtype t, const struct product *p,
		    const void *a, const void *b, void *c);

#endif
