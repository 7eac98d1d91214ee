/* SPDX-License-Identifier: Apache-2.0 */
/* Updates of rows on a GPU, sorted by row there: see engine/cuda/index.h.  Positions out of range
 * are skipped, as in TensorFlow's GPU kernels; the CPU kernels fail. */
#ifndef MU_TASK_KERNELS_ENGINE_GPU_RUNS_H
#define MU_TASK_KERNELS_ENGINE_GPU_RUNS_H

#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/gpu_table.h"

struct gpu_runs { /* memory of one call */
	struct mu_tensor keys, order;
};
/* Computes the keys of n positions of `depth` numbers each in a tensor of these dimensions, without
 * sorting them. */
int gpu_positions(struct kernel_call *c, const struct mu_tensor *indices, int64_t n,
		  const struct mu_shape *table, int depth, struct gpu_runs *out,
		  struct mu_err *err);
/* The same, sorted.  *by: the arguments of a kernel, for rows of `row` elements. */
int gpu_runs_make(struct kernel_call *c, const struct mu_tensor *indices, int64_t n,
		  const struct mu_shape *table, int depth, int64_t row, struct gpu_runs *out,
		  struct by_row *by, struct mu_err *err);
/* For keys of another kernel: gpu_runs_new allocates n keys, gpu_runs_sort sorts them. */
int gpu_runs_new(struct kernel_call *c, int64_t n, struct gpu_runs *out, struct mu_err *err);
int gpu_runs_sort(struct kernel_call *c, int64_t n, int64_t row, struct gpu_runs *r,
		  struct by_row *by, struct mu_err *err);
void gpu_runs_fini(struct gpu_runs *r);
#define GPU_RUNS_AUTO __attribute__((cleanup(gpu_runs_fini))) struct gpu_runs

#endif
