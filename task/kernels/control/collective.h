/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_KERNELS_CONTROL_COLLECTIVE_H
#define MU_TASK_KERNELS_CONTROL_COLLECTIVE_H

#include "task/runtime/collective.h"

/* Combines the tensors of all members, on the leader: a function of struct collective_hooks. */
int collective_combine(const struct collective_part *const *parts, unsigned n,
		       struct mu_tensor *out, struct mu_err *err);

#endif
