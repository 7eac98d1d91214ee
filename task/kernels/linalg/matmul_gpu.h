/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products in GPU kernels: by cuBLAS if it is installed, else by matmul.cu.h. */
#ifndef MU_TASK_KERNELS_LINALG_MATMUL_GPU_H
#define MU_TASK_KERNELS_LINALG_MATMUL_GPU_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/product.h"

/* out[batch][m, n] = a * b.  by: the offsets of the matrices of the batch, in matrices; NULL: one
 * product. */
int gpu_matmul(struct gpu *g, enum mu_dtype t, const struct product *p, uint64_t out, uint64_t a,
	       uint64_t b, const struct broadcast_args *by, struct mu_err *err);

#endif
