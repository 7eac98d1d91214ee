/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_CONTROL_OPTIONAL_H
#define MU_TASK_KERNELS_CONTROL_OPTIONAL_H

#include "task/runtime/kernel.h"

/* Output 0 becomes an optional of n tensors, shared; t NULL: one that has nothing. */
int optional_out(struct kernel_call *c, const struct mu_tensor *t, unsigned n, struct mu_err *err);

#endif
