/* SPDX-License-Identifier: Apache-2.0 */
/* Running sums and products as a part of GPU kernels. */
#ifndef MU_TASK_KERNELS_MATH_SCAN_GPU_H
#define MU_TASK_KERNELS_MATH_SCAN_GPU_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

/* op: "Cumsum" or "Cumprod".  in and out may be the same memory. */
int gpu_scan(struct kernel_call *c, const char *op, enum mu_dtype t, const struct scan_args *a,
	     struct mu_err *err);

#endif
