/* SPDX-License-Identifier: Apache-2.0 */
/* Batches several elements into one. */
#ifndef MU_TASK_KERNELS_DATA_STACK_H
#define MU_TASK_KERNELS_DATA_STACK_H

#include "lib/tensor/tensor.h"

/* Component k of n elements as one tensor. */
int stack_elements(struct mu_tensor *const *element, int64_t n, unsigned k, struct mu_tensor *out,
		   struct mu_err *err);

#endif
