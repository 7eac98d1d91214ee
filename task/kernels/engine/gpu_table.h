/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of GPU devices, as host code that launches the device code of *.cu.h. */
#ifndef MU_TASK_KERNELS_ENGINE_GPU_TABLE_H
#define MU_TASK_KERNELS_ENGINE_GPU_TABLE_H

#include "task/device/gpu.h"
#include "task/kernels/engine/cuda/args.h"
#include "task/kernels/engine/kernel_table.h"
#include "task/runtime/device_kernel.h"

#define GPU_TYPE(t) DEVICE_TYPE(t)
#define GPU_FLT                                                                                    \
	(GPU_TYPE(MU_FLOAT) | GPU_TYPE(MU_DOUBLE) | GPU_TYPE(MU_HALF) | GPU_TYPE(MU_BFLOAT16))
#define GPU_REAL  (GPU_TYPE(MU_FLOAT) | GPU_TYPE(MU_DOUBLE))
#define GPU_INT   GPU_TYPE(MU_INT64)
#define GPU_NUM   (GPU_FLT | GPU_INT)
#define GPU_EQ    (GPU_NUM | GPU_TYPE(MU_BOOL))
#define GPU_PLAIN DEVICE_PLAIN /* all types that may be in GPU memory */
/* Types of ops that forward tensors unchanged: also handles and variants, which are in host memory.
 */
#define GPU_PASSED (GPU_PLAIN | GPU_TYPE(MU_RESOURCE) | GPU_TYPE(MU_VARIANT))

/* A row for ops with a GPU kernel, and one for ops whose CPU kernel runs on GPU memory, too.  set:
 * the types of attribute attr. */
#define GPU_ROW(ops, fn, attr, set, ...)                                                           \
	{                                                                                          \
		.k = {ops, .run = fn}, .type_attr = attr, .types = set, ##__VA_ARGS__              \
	}
#define GPU_SAME(ops, attr, set, ...)                                                              \
	{                                                                                          \
		.k = {.op = ops}, .type_attr = attr, .types = set, .uses_cpu_functions = true,     \
		##__VA_ARGS__                                                                      \
	}

/* The row that runs this node on a GPU; NULL: the CPU kernel runs it, in host memory. */
const struct device_kernel *gpu_kernel_find(const struct mu_node *n);
/* The row of an op, whose types may not include the node's; NULL: none. */
const struct device_kernel *gpu_kernel_row(const char *op);

/* ---- for GPU kernels ---- */

static inline struct gpu *kernel_gpu(const struct kernel_call *c)
{
	return (struct gpu *)device_of_node(c->node, c->runtime);
}
/* "f32" for MU_FLOAT, …; NULL: no kernel is compiled for the type. */
const char *gpu_type_name(enum mu_dtype t);

/* Launches the device function `name` with a grid for n elements; n 0: launches nothing. */
int gpu_run_sized(struct gpu *g, const char *name, int64_t n, const void *args, size_t size,
		  struct mu_err *err);
/* The same for <name>_<type>, <name>_<bits of the type>, and <name>_<type> with a block per row. */
int gpu_run_type_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t n,
		       const void *args, size_t size, struct mu_err *err);
int gpu_run_width_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t n,
			const void *args, size_t size, struct mu_err *err);
int gpu_run_rows_sized(struct gpu *g, const char *name, enum mu_dtype type, int64_t rows,
		       const void *args, size_t size, struct mu_err *err);
#define gpu_run(g, name, n, args, err) gpu_run_sized(g, name, n, args, sizeof *(args), err)
#define gpu_run_type(g, name, type, n, args, err)                                                  \
	gpu_run_type_sized(g, name, type, n, args, sizeof *(args), err)
#define gpu_run_width(g, name, type, n, args, err)                                                 \
	gpu_run_width_sized(g, name, type, n, args, sizeof *(args), err)
#define gpu_run_rows(g, name, type, rows, args, err)                                               \
	gpu_run_rows_sized(g, name, type, rows, args, sizeof *(args), err)
/* Sets the strides of the operands of a result of this shape.  Merges dimensions if the strides of
 * all operands allow that. */
struct view; /* engine/elems.h */
void gpu_broadcast(struct broadcast_args *b, const struct mu_shape *to,
		   const struct view *const *from, int operands);
/* out = x op y with broadcasting; out has the broadcast shape.  op: a BINARY of loops.def. */
int gpu_binary(struct gpu *g, const char *op, const struct mu_tensor *out,
	       const struct mu_tensor *x, const struct mu_tensor *y, struct mu_err *err);

/* Output i in new GPU memory, or in the memory of input `from` if this is its last use and it fits.
 * at: its address. */
int gpu_out(struct kernel_call *c, unsigned i, enum mu_dtype dtype, const struct mu_shape *shape,
	    uint64_t *at, struct mu_err *err);
int gpu_out_reuse(struct kernel_call *c, unsigned i, unsigned from, enum mu_dtype dtype,
		  const struct mu_shape *shape, uint64_t *at, struct mu_err *err);
/* Memory of one call. */
int gpu_scratch(struct kernel_call *c, enum mu_dtype dtype, int64_t count, struct mu_tensor *out,
		struct mu_err *err);

#endif
