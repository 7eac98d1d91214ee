/* SPDX-License-Identifier: Apache-2.0 */
/* Broadcasting: two operands of different shapes as runs for an inner loop. */
#ifndef MU_TASK_KERNELS_ENGINE_BROADCAST_H
#define MU_TASK_KERNELS_ENGINE_BROADCAST_H

#include "task/kernels/engine/elems.h"
#include "task/kernels/engine/loops/loops.h"

/* The shape of `a op b`.  INVALID_ARGUMENT "Incompatible shapes: [2] vs. [3]". */
int broadcast_shape(const struct mu_shape *a, const struct mu_shape *b, struct mu_shape *out,
		    struct mu_err *err);
/* The view of a tensor of shape `from` that broadcasts it to shape `to`. */
void broadcast_view(struct view *v, const struct mu_shape *from, const struct mu_shape *to);
/* The index in memory of element k of the view. */
int64_t broadcast_offset(const struct view *v, int64_t k);
/* Computes out = a op b, one call of loop for each run.  in_size, out_size: bytes of an element. */
void broadcast_run(binary_loop *loop, void *out, const struct mu_shape *shape, size_t out_size,
		   const void *a, const struct mu_shape *a_shape, const void *b,
		   const struct mu_shape *b_shape, size_t in_size);

#endif
