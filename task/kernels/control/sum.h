/* SPDX-License-Identifier: Apache-2.0 */
/* A running sum of tensors of one shape. */
#ifndef MU_TASK_KERNELS_CONTROL_SUM_H
#define MU_TASK_KERNELS_CONTROL_SUM_H

#include "lib/tensor/tensor.h"

/* *sum += t, in place if no other tensor shares the buffer; an unset sum becomes t. */
int sum_add(struct mu_tensor *sum, const struct mu_tensor *t, struct mu_err *err);

#endif
