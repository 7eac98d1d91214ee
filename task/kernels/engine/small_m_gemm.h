/* SPDX-License-Identifier: Apache-2.0 */
/* Products of few rows with a large matrix, such as a step of a recurrent cell or a small batch
 * through a dense layer.  gemm copies the right side in the order of its tiles, which pays off for
 * many rows only; these loops read it in place.  docs/performance.md has the figures. */
#ifndef MU_TASK_KERNELS_ENGINE_SMALL_M_GEMM_H
#define MU_TASK_KERNELS_ENGINE_SMALL_M_GEMM_H

#include "task/kernels/engine/product.h"

bool small_m_gemm_supports(enum mu_dtype t, const struct product *p);
/* Like blas_product, where small_m_gemm_supports. */
void small_m_gemm(enum mu_dtype t, const struct product *p, const void *a, const void *b, void *c);

#endif
