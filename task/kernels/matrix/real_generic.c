/* SPDX-License-Identifier: Apache-2.0 */
typedef double T;
#define CONJ(x)      (x)
#define RE(x)        (x)
#define IM(x)        0.0
#define MAGNITUDE(x) fabs(x)
#define MATRIX_OPS   matrix_real_generic
#define PRODUCT_TYPE MU_DOUBLE
#include "task/kernels/matrix/body.h"
