/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of complex numbers that have no vector loops. They are rare, so plain loops in double
 * serve both types. */
#ifndef MU_TASK_KERNELS_ENGINE_LOOPS_COMPLEX_H
#define MU_TASK_KERNELS_ENGINE_LOOPS_COMPLEX_H

#include "task/kernels/engine/loops/loops.h"

/* NULL when t is not complex, or when there is no such function. */
unary_loop *complex_unary(enum unary_op op, enum mu_dtype t);
binary_loop *complex_binary(enum binary_op op, enum mu_dtype t);

#endif
