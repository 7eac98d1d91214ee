/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products. */
#ifndef MU_TASK_KERNELS_ENGINE_PRODUCT_H
#define MU_TASK_KERNELS_ENGINE_PRODUCT_H

#include <stdbool.h>
#include <stdint.h>

#include "lib/base/err.h"
#include "lib/tensor/dtype.h"

struct kernel_call;

/* c[m, n] = a[m, k] * b[k, n]; trans_a, trans_b: that side is stored transposed.
 * conjugate: a transposed side of complex numbers is the adjoint.
 * add: c[m, n] += the product instead.
 * a_line, b_line, c_line: elements from row to row as stored, for parts of larger matrices; 0:
 * rows follow one another. */
struct product {
	int64_t m, n, k;
	bool trans_a, trans_b, conjugate, add;
	int64_t a_line, b_line, c_line;
};

/* UNIMPLEMENTED for other types than float, double, complex64, complex128, int16, int32 and int64;
 * INVALID_ARGUMENT for sizes above the int of BLAS. */
int product_check(const char *op, enum mu_dtype t, const struct product *p, struct mu_err *err);
/* Computes the product in the calling thread. */
void product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c);
/* Computes the product with as many threads of the pool as its size justifies.  The last bits of
 * the result depend on their number, never on timing. */
void product_in_parallel(struct kernel_call *call, enum mu_dtype t, const struct product *p,
			 const void *a, const void *b, void *c);
/* n products of one shape: product i multiplies matrices i of the views of a and b; NULL:
 * consecutive matrices.  Threads of the pool divide the products if these are small. */
struct view;
void product_batch_in_parallel(struct kernel_call *call, enum mu_dtype t, const struct product *p,
			       int64_t n, const struct view *a_view, const struct view *b_view,
			       const void *a, const void *b, void *c);

#endif
