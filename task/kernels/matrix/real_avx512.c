/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with its own flags (tools/kernels.mk.d); on other processors there is nothing here. */
#if defined(__AVX512F__)
typedef double T;
#define CONJ(x)      (x)
#define RE(x)        (x)
#define IM(x)        0.0
#define MAGNITUDE(x) fabs(x)
#define MATRIX_OPS   matrix_real_avx512
#define PRODUCT_TYPE MU_DOUBLE
#include "task/kernels/matrix/body.h"
#else
typedef int matrix_none_here;
#endif
