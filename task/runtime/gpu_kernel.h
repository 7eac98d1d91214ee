/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of GPU devices, and where its tensors lie.
 *
 * A row serves the types of `types`; a node of another type runs the CPU's kernel, in host memory,
 * though its device is a GPU, as TensorFlow does with int32.  The memory of a port's tensor follows
 * from its type (int32, strings, handles: the host; the rest: the GPU) unless the row says
 * otherwise.  task/runtime/residence.c inserts the copies between the two.
 */
#ifndef MU_TASK_RUNTIME_GPU_KERNEL_H
#define MU_TASK_RUNTIME_GPU_KERNEL_H

#include "task/device/gpu.h"
#include "task/runtime/kernel.h"

struct gpu_kernel {
	struct kernel k;
	const char *type_attr;          /* whose value is looked up in `types`; NULL: any node */
	uint32_t types;                 /* by enum mu_dtype */
	uint32_t host_in, host_out;     /* ports in host memory whatever their type */
	uint32_t device_in, device_out; /* ports on the GPU whatever their type */
	uint32_t host_types;            /* types of inputs in host memory whatever the port */
	/* The CPU's functions do: they look at shapes, hand on, or leave elements to move.h. */
	bool same;
};

#define GPU_TYPE(t) ((uint32_t)1 << (t))
#define GPU_FLT                                                                                    \
	(GPU_TYPE(MU_FLOAT) | GPU_TYPE(MU_DOUBLE) | GPU_TYPE(MU_HALF) | GPU_TYPE(MU_BFLOAT16))
#define GPU_REAL (GPU_TYPE(MU_FLOAT) | GPU_TYPE(MU_DOUBLE))
#define GPU_INT  GPU_TYPE(MU_INT64)
#define GPU_NUM  (GPU_FLT | GPU_INT)
#define GPU_EQ   (GPU_NUM | GPU_TYPE(MU_BOOL))
/* What lies on the GPU unless something else is said. */
#define GPU_PLAIN                                                                                  \
	(GPU_EQ | GPU_TYPE(MU_UINT8) | GPU_TYPE(MU_INT8) | GPU_TYPE(MU_INT16) |                    \
	 GPU_TYPE(MU_UINT16) | GPU_TYPE(MU_COMPLEX64) | GPU_TYPE(MU_UINT32) | GPU_TYPE(MU_UINT64))
/* What is handed on as it is: handles of what is on the GPU and lists of it, too, which themselves
 * lie on the host. */
#define GPU_PASSED (GPU_PLAIN | GPU_TYPE(MU_RESOURCE) | GPU_TYPE(MU_VARIANT))

/* Where the tensor of a port lies.  k NULL: on the host. */
bool gpu_kernel_in_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t);
bool gpu_kernel_out_on_device(const struct gpu_kernel *k, unsigned port, enum mu_dtype t);
/* Whether the kernel has `t` among its types. */
bool gpu_kernel_has_type(const struct gpu_kernel *k, enum mu_dtype t);

/* The GPU that a node is placed on; NULL: it is on none of this task's. */
struct gpu *gpu_of_node(const struct mu_node *n, const struct runtime *rt);

#endif
