/* SPDX-License-Identifier: Apache-2.0 */
/* Reductions as a part of other GPU kernels.  They run in passes, so that there is work for every
 * thread, and in an order that depends only on the shape. */
#ifndef MU_TASK_KERNELS_MATH_REDUCE_GPU_H
#define MU_TASK_KERNELS_MATH_REDUCE_GPU_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

/* in [outer, reduced, inner] -> out [outer, inner], times scale.  first, rest: the device functions
 * of the pass over the elements and of the pass over its results. */
int gpu_reduce(struct kernel_call *c, const char *first, const char *rest, enum mu_dtype t,
	       double scale, const struct reduce_args *a, struct mu_err *err);

#endif
