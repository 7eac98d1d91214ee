/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products as a part of GPU kernels: by cublasLt where it is installed and can, else by our
 * own kernel. */
#ifndef MU_TASK_KERNELS_ENGINE_GPU_MATMUL_H
#define MU_TASK_KERNELS_ENGINE_GPU_MATMUL_H

#include "task/device/gpu_product.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"
#include "task/kernels/engine/product.h"

struct gpu_matmul { /* for one shape after another; a few are kept */
	struct gpu *gpu;
	enum mu_dtype type;
	struct gpu_plan *plan;
	void *kernel;
};
int gpu_matmul_init(struct gpu_matmul *m, struct gpu *g, enum mu_dtype t, struct mu_err *err);
void gpu_matmul_fini(struct gpu_matmul *m);
/* Addresses, bias, activation and batch are in *a; sizes and strides are filled in.  *activate: the
 * activation is still to be done. */
int gpu_matmul_run(const struct gpu_matmul *m, const struct product *p, struct matmul_args *a,
		   const char *holder, bool *activate, struct mu_err *err);

#endif
