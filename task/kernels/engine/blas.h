/* SPDX-License-Identifier: Apache-2.0 */
/* The part of OpenBLAS that matrix products need, and its set-up.  blas.c is the only file that
 * includes <cblas.h>; tests/bare/blas.c stands in for it in programs without OpenBLAS. */
#ifndef MU_TASK_KERNELS_ENGINE_BLAS_H
#define MU_TASK_KERNELS_ENGINE_BLAS_H

#include "task/kernels/engine/product.h"

/* Makes OpenBLAS run in the calling thread only, with a core type of this CPU variant.  Replaces
 * a core type of another variant (from OPENBLAS_CORETYPE, or because the library does not know the
 * processor), and logs that. */
void blas_select(const char *variant);
/* The core type in use: "SkylakeX". */
const char *blas_core(void);

/* c (+)= a b of float, double, complex64 or complex128 in the calling thread; m, n and k are
 * positive and pass product_check; a_line, b_line and c_line are not 0. */
void blas_product(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c);

#endif
