/* SPDX-License-Identifier: Apache-2.0 */
/* NVIDIA's library for networks on a GPU: its handle, which serves one call at a time, on one
 * stream.  The library is large and comes up slowly, so the handle is made for the first use. */
#ifndef MU_TASK_DEVICE_GPU_DNN_H
#define MU_TASK_DEVICE_GPU_DNN_H

#include "task/device/gpu_internal.h"

/* How the library numbers our types: what is stored, what sums are made in. */
struct gpu_dnn_numbers {
	int stored, compute, math;
};
extern const struct gpu_dnn_numbers gpu_dnn_numbers[MU_DT_COUNT];

/* The GPU's own handle; NULL: there is none to be had.  With dnn_lock. */
void *gpu_dnn_library(struct gpu *g);
/* Calls `call` with the handle, for what goes on this stream; the library's result.  The handle has
 * the compute stream but while a graph is recorded, whose stream may be gone before the handle is.
 */
int gpu_dnn_call(struct gpu *g, void *stream, int (*call)(void *library, const void *args),
		 const void *args);

struct gpu_plan;
struct gpu_way;
/* Whether the library can do `what`, as the plan's kind has it. */
int gpu_dnn_plan_for(struct gpu *g, struct gpu_plan *plan, const void *what, bool *can,
		     struct mu_err *err);
/* Has it done by the plan's way: `put` hands it to the library.  A way that the library refuses
 * once is not tried again; *done false: it is left to others. */
typedef int gpu_dnn_put(struct gpu *g, const struct gpu_way *way, const void *at, int *refused,
			struct mu_err *err);
int gpu_dnn_do(struct gpu *g, struct gpu_plan *plan, const void *what, gpu_dnn_put *put,
	       const void *at, bool *done, struct mu_err *err);

#endif
