/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of GPU devices, as host code that launches the device code of *.cu.h. */
#ifndef MU_TASK_KERNELS_ENGINE_GPU_TABLE_H
#define MU_TASK_KERNELS_ENGINE_GPU_TABLE_H

#include "task/runtime/gpu_kernel.h"

struct gpu_kernel_table {
	const struct gpu_kernel *rows;
	unsigned count;
};
#define GPU_KERNEL_TABLE_DECLARE(name) extern const struct gpu_kernel_table gpu_kernel_table_##name;
#define GPU_KERNEL_TABLE(name, rows)                                                               \
	GPU_KERNEL_TABLE_DECLARE(name)                                                             \
	const struct gpu_kernel_table gpu_kernel_table_##name = {rows, MU_COUNT(rows)};

/* The row that runs this node on a GPU; NULL: the CPU's kernel does, in host memory. */
const struct gpu_kernel *gpu_kernel_find(const struct mu_node *n);
/* True if the op has a row for any type. */
bool gpu_kernel_known(const char *op);
/* All rows, in the tables' order; NULL past the end. */
const struct gpu_kernel *gpu_kernel_at(unsigned i);

/* ---- for GPU kernels ---- */

static inline struct gpu *gpu_here(const struct kernel_call *c)
{
	return gpu_of_node(c->node, c->runtime);
}
/* "f32" for MU_FLOAT, …; NULL: no kernel is made for it. */
const char *gpu_type_name(enum mu_dtype t);

/* A kernel as a state for nodes with one: <name>_<type>. */
struct gpu_one {
	struct gpu *gpu;
	void *kernel;
	enum mu_dtype type;
};
int gpu_one_prepare(const struct mu_node *n, struct runtime *rt, const char *name,
		    const char *type_attr, void **state, struct mu_err *err);
/* Finds <name>_<type>, or <name>_<bits> for what goes by size. */
int gpu_find(struct gpu *g, const char *name, enum mu_dtype type, void **out, struct mu_err *err);
int gpu_find_width(struct gpu *g, const char *name, enum mu_dtype type, void **out,
		   struct mu_err *err);
/* Launches with a grid for n elements; n 0: nothing. */
int gpu_run_sized(struct gpu *g, void *kernel, int64_t n, const void *args, size_t size,
		  struct mu_err *err);
/* The kernel for elements of this size, found and launched. */
int gpu_run_width_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t n,
			const void *args, size_t size, struct mu_err *err);
#define gpu_run_width(g, name, type, n, args, err)                                                 \
	gpu_run_width_sized(g, name, type, n, args, sizeof *(args), err)
#define gpu_run(g, kernel, n, args, err) gpu_run_sized(g, kernel, n, args, sizeof *(args), err)

/* Output i as new memory of the GPU, or in the memory of input `from` when that is its last use and
 * it fits. */
int gpu_out(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const struct mu_shape *shape,
	    struct mu_tensor **out, struct mu_err *err);
int gpu_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		  const struct mu_shape *shape, struct mu_tensor **out, struct mu_err *err);
/* Memory for the call alone. */
int gpu_scratch(struct kernel_call *c, enum mu_dtype dtype, int64_t count, struct mu_tensor *out,
		struct mu_err *err);

#endif
