/* SPDX-License-Identifier: Apache-2.0 */
#include <complex.h>

typedef double _Complex T;
#define CONJ(x)      conj(x)
#define RE(x)        creal(x)
#define IM(x)        cimag(x)
#define MAGNITUDE(x) cabs(x)
#define MATRIX_OPS   matrix_complex_generic
#define MATRIX_SCHUR
#include "task/kernels/matrix/body.h"
