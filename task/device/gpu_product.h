/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by NVIDIA's library, where it is installed: out[m, n] = a[m, k] * b[k, n] +
 * bias[n], all dense, rows first; or many of them, each so far from the one before.  Sums are made
 * in float for the 16-bit types; in TF32 for float only where MUSTER_TF32=1 allows it. */
#ifndef MU_TASK_DEVICE_GPU_PRODUCT_H
#define MU_TASK_DEVICE_GPU_PRODUCT_H

#include "task/device/gpu.h"
#include "task/device/gpu_plan.h"

struct gpu_product {
	enum mu_dtype type;
	bool trans_a, trans_b; /* stored the other way round */
	int64_t m, n, k;
	cuda_ptr out, a, b, bias; /* bias 0: none */
	/* So many products, or one when it is 0; elements from one's matrix to the next one's, 0:
	 * all have the same. */
	int64_t batch, a_stride, b_stride;
};

/* The caller keeps the plan from one run to the next. */
struct gpu_plan *gpu_product_plan_new(void);

/* Launches it.  *done false: the library is not there or cannot, nothing has been launched.  Its
 * workspace is taken in the name of `holder`. */
int gpu_product(struct gpu *g, struct gpu_plan *plan, const struct gpu_product *p,
		const char *holder, bool *done, struct mu_err *err);

#endif
