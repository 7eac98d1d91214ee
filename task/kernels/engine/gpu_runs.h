/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of rows on a GPU, sorted by row there: see engine/cuda/index.h.  Positions out of range
 * name no row and are passed over, as TensorFlow's GPU kernels have it; the CPU kernels fail. */
#ifndef MU_TASK_KERNELS_ENGINE_GPU_RUNS_H
#define MU_TASK_KERNELS_ENGINE_GPU_RUNS_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

struct gpu_runs { /* memory for the call alone */
	struct mu_tensor keys, order;
};
/* n positions of `depth` numbers each, in a tensor of these dimensions; not sorted. */
int gpu_positions(struct kernel_call *c, const struct mu_tensor *indices, int64_t n,
		  const struct mu_shape *table, int depth, struct gpu_runs *out,
		  struct mu_err *err);
/* The same, sorted: what a kernel gets for rows of `row` elements. */
int gpu_runs_make(struct kernel_call *c, const struct mu_tensor *indices, int64_t n,
		  const struct mu_shape *table, int depth, int64_t row, struct gpu_runs *out,
		  struct by_row *by, struct mu_err *err);
/* The same by keys that a kernel has yet to make, or has made: room for n, and sorted. */
int gpu_runs_new(struct kernel_call *c, int64_t n, struct gpu_runs *out, struct mu_err *err);
int gpu_runs_sort(struct kernel_call *c, int64_t n, int64_t row, struct gpu_runs *r,
		  struct by_row *by, struct mu_err *err);
void gpu_runs_fini(struct gpu_runs *r);
#define GPU_RUNS_AUTO __attribute__((cleanup(gpu_runs_fini))) struct gpu_runs

#endif
