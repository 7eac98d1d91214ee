/* SPDX-License-Identifier: Apache-2.0 */
/* A GPU kernel and the memory spaces of its tensors.
 *
 * The kernel supports the types in `types`.  A node of another type on a GPU runs the CPU kernel in
 * host memory, as TensorFlow does with int32.  The memory space of a port depends on the type
 * unless the row overrides it: int32, strings and handles are in host memory, all other types in
 * GPU memory. task/runtime/memory_copies.c inserts the copies between the two.
 */
#ifndef MU_TASK_RUNTIME_GPU_KERNEL_H
#define MU_TASK_RUNTIME_GPU_KERNEL_H

#include "task/device/gpu.h"
#include "task/runtime/kernel.h"

struct gpu_kernel {
	struct kernel k;
	const char *type_attr;          /* its value must be in `types`; NULL: any node */
	uint32_t types;                 /* by enum mu_dtype */
	uint32_t host_in, host_out;     /* ports in host memory for all types */
	uint32_t device_in, device_out; /* ports in GPU memory for all types */
	uint32_t host_types;            /* types of inputs in host memory for all ports */
	/* The CPU kernel's functions are used: they do not access elements themselves. */
	bool same;
};

#define GPU_TYPE(t) ((uint32_t)1 << (t))
#define GPU_FLT                                                                                    \
	(GPU_TYPE(MU_FLOAT) | GPU_TYPE(MU_DOUBLE) | GPU_TYPE(MU_HALF) | GPU_TYPE(MU_BFLOAT16))
#define GPU_REAL (GPU_TYPE(MU_FLOAT) | GPU_TYPE(MU_DOUBLE))
#define GPU_INT  GPU_TYPE(MU_INT64)
#define GPU_NUM  (GPU_FLT | GPU_INT)
#define GPU_EQ   (GPU_NUM | GPU_TYPE(MU_BOOL))
/* Types in GPU memory by default. */
#define GPU_PLAIN                                                                                  \
	(GPU_EQ | GPU_TYPE(MU_UINT8) | GPU_TYPE(MU_INT8) | GPU_TYPE(MU_INT16) |                    \
	 GPU_TYPE(MU_UINT16) | GPU_TYPE(MU_COMPLEX64) | GPU_TYPE(MU_UINT32) | GPU_TYPE(MU_UINT64))
/* Types that are passed on unchanged, also handles and lists, which are in host memory themselves.
 */
#define GPU_PASSED (GPU_PLAIN | GPU_TYPE(MU_RESOURCE) | GPU_TYPE(MU_VARIANT))

/* True if the tensor of a port is in GPU memory.  k NULL: host memory. */
bool gpu_kernel_in_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t);
bool gpu_kernel_out_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t);
/* True if the kernel supports type t. */
bool gpu_kernel_has_type(const struct gpu_kernel *k, enum mu_dtype t);

/* Returns the GPU that a node is placed on; NULL: not on a GPU of this task. */
struct gpu *gpu_of_node(const struct mu_node *n, const struct runtime *rt);

#endif
