/* SPDX-License-Identifier: Apache-2.0 */
/* A running sum of tensors of one shape. */
#ifndef MU_TASK_KERNELS_CONTROL_SUM_H
#define MU_TASK_KERNELS_CONTROL_SUM_H

#include "lib/tensor/tensor.h"
#include "task/kernels/engine/loops/loops.h"

/* *sum += t, in place if no other tensor shares the buffer; an unset sum becomes t. */
int sum_add(struct mu_tensor *sum, const struct mu_tensor *t, struct mu_err *err);

/* Runs the loop of `op`, for half and bfloat16 in float.  form is BOTH_RUN or RIGHT_SCALAR. */
void sum_binary(enum binary_op op, enum mu_dtype t, void *out, const void *a, const void *b,
		int64_t n, enum binary_form form);

#endif
