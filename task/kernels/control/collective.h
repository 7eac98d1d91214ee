/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_CONTROL_COLLECTIVE_H
#define MU_TASK_KERNELS_CONTROL_COLLECTIVE_H

#include "task/runtime/collective.h"

/* The leader's part of a collective op: struct collective_hooks. */
int collective_combine(const struct collective_part *const *parts, unsigned n,
		       struct mu_tensor *out, struct mu_err *err);

#endif
