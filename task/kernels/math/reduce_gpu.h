/* SPDX-License-Identifier: Apache-2.0 */
/* Sums and the like as a part of GPU kernels: in passes, so that there is work for every thread; in
 * an order that depends on the shape alone. */
#ifndef MU_TASK_KERNELS_MATH_REDUCE_GPU_H
#define MU_TASK_KERNELS_MATH_REDUCE_GPU_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

struct gpu_reduction {
	struct gpu *gpu;
	enum mu_dtype type;
	void *first, *rest; /* of the first pass over the elements; of those over what it made */
};
/* in [outer, reduced, inner] -> out [outer, inner], times scale. */
int gpu_reduce(struct kernel_call *c, const struct gpu_reduction *r, double scale,
	       const struct reduce_args *a, struct mu_err *err);

#endif
