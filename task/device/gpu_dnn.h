/* SPDX-License-Identifier: Apache-2.0 */
/* cuDNN on a GPU: its handle, which serves one call at a time, on the compute stream.  The library
 * is large and starts slowly, so the handle is made for the first use. */
#ifndef MU_TASK_DEVICE_GPU_DNN_H
#define MU_TASK_DEVICE_GPU_DNN_H

#include "task/device/gpu_internal.h"
#include "task/device/gpu_plan.h"

/* cuDNN's numbers of a type: how elements are stored, and how sums are computed. */
struct gpu_dnn_numbers {
	int stored, compute, math;
};
extern const struct gpu_dnn_numbers gpu_dnn_numbers[MU_DT_COUNT];

/* The address of 1 or 0 in the type of cuDNN's scaling factors for `type`. */
const void *gpu_dnn_scale(enum mu_dtype type, int value);

/* The GPU's handle; NULL: cuDNN does not start.  Called with dnn_lock. */
void *gpu_dnn_library(struct gpu *g);

/* Whether cuDNN can compute `what`.  Nothing is launched. */
int gpu_dnn_plan_for(struct gpu *g, struct gpu_plan *plan, const void *what, bool *can,
		     struct mu_err *err);
/* Computes `what` by `run`, which returns cuDNN's result and is called with dnn_lock.  A plan whose
 * call fails once is not tried again.  *done false: nothing has been launched. */
typedef int gpu_dnn_run(const struct gpu_plan *plan, void *library, const void *at, cuda_ptr work);
int gpu_dnn_do(struct gpu *g, struct gpu_plan *plan, const void *what, gpu_dnn_run *run,
	       const void *at, const char *holder, bool *done, struct mu_err *err);

#endif
