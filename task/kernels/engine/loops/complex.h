/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of complex numbers that have no vector loops. They are rare, so both types use plain
 * loops in double. */
#ifndef MU_TASK_KERNELS_ENGINE_LOOPS_COMPLEX_H
#define MU_TASK_KERNELS_ENGINE_LOOPS_COMPLEX_H

#include "task/kernels/engine/loops/loops.h"

/* Returns NULL if t is not complex, or if there is no such function. */
unary_loop *complex_unary(enum unary_op op, enum mu_dtype t);
binary_loop *complex_binary(enum binary_op op, enum mu_dtype t);

#endif
