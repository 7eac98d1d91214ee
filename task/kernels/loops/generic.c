/* SPDX-License-Identifier: Apache-2.0 */
#define LOOPS_NAME         loops_generic
#define LOOPS_VARIANT      "cpu-generic"
#define LOOPS_MATRIX(kind) matrix_##kind##_generic
#include "task/kernels/loops/body.h"
