/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_CONTROL_OPTIONAL_H
#define MU_TASK_KERNELS_CONTROL_OPTIONAL_H

#include "task/runtime/kernel.h"

/* Sets output 0 to an optional of n tensors, by reference; t NULL: an optional without a value. */
int optional_out(struct kernel_call *c, const struct mu_tensor *t, unsigned n, struct mu_err *err);

#endif
