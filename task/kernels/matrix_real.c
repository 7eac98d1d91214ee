/* SPDX-License-Identifier: Apache-2.0 */
typedef double T;
#define CONJ(x)      (x)
#define RE(x)        (x)
#define MAGNITUDE(x) fabs(x)
#define MATRIX_OPS   matrix_real
#include "task/kernels/matrix_body.h"
