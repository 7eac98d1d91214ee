/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled with its own flags (tools/kernels.mk.d); on other processors there is nothing here. */
#if defined(__AVX512F__)
#include <complex.h>

typedef double _Complex T;
#define CONJ(x)      conj(x)
#define RE(x)        creal(x)
#define IM(x)        cimag(x)
#define MAGNITUDE(x) cabs(x)
#define MATRIX_OPS   matrix_complex_avx512
#define MATRIX_SCHUR
#include "task/kernels/matrix/body.h"
#else
typedef int matrix_none_here;
#endif
