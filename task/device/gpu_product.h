/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by cuBLAS, if it is installed: out[m, n] = a[m, k] * b[k, n], all dense and
 * row-major; or a batch of them.  Sums are in float for the 16-bit types; in TF32 for float only if
 * MUSTER_TF32=1 allows it. */
#ifndef MU_TASK_DEVICE_GPU_PRODUCT_H
#define MU_TASK_DEVICE_GPU_PRODUCT_H

#include "task/device/gpu.h"

struct gpu_product {
	enum mu_dtype type;
	bool trans_a, trans_b; /* the operand is stored transposed */
	int64_t m, n, k;
	cuda_ptr out, a, b;
	/* batch: number of products.  Strides: elements between matrices; 0: the same matrix. */
	int64_t batch, a_stride, b_stride;
};

/* *is_launched false: cuBLAS is not installed or cannot compute it, and nothing was launched. */
int gpu_product(struct gpu *g, const struct gpu_product *p, bool *is_launched, struct mu_err *err);

#endif
