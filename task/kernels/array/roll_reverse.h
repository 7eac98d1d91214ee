/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of Roll and ReverseSequence.  The tensors are in host memory or on a GPU,
 * as in engine/move.h.  The caller has checked the arguments, and `out` has elements. */
#ifndef MU_TASK_KERNELS_ARRAY_ROLL_REVERSE_H
#define MU_TASK_KERNELS_ARRAY_ROLL_REVERSE_H

#include "task/runtime/kernel.h"

/* Shifts along each dimension d by shifts[d], in [0, dim[d]), with wrap-around. */
int roll_copy(const struct mu_tensor *out, const struct mu_tensor *in, const int64_t *shifts,
	      struct mu_err *err);
/* Reverses the first lengths[b] elements along dimension `seq`, for each index b of dimension
 * `batch`.  `lengths` is in host memory. */
int reverse_sequence_copy(struct kernel_call *c, const struct mu_tensor *out,
			  const struct mu_tensor *in, const struct mu_tensor *lengths, int seq,
			  int batch, struct mu_err *err);

#endif
