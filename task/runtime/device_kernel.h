/* SPDX-License-Identifier: Apache-2.0 */
/* A kernel of a device with memory of its own, and the memory spaces of its tensors.
 *
 * The kernel supports the types in `types`.  A node of another type runs the CPU kernel in
 * host memory, as TensorFlow does with int32.  The memory space of a port depends on the type
 * unless the row overrides it: int32, strings and handles are in host memory, all other types in
 * device memory. task/runtime/memory_copies.c inserts the copies between the two.
 */
#ifndef MU_TASK_RUNTIME_DEVICE_KERNEL_H
#define MU_TASK_RUNTIME_DEVICE_KERNEL_H

#include "task/device/device.h"
#include "task/runtime/kernel.h"

struct device_kernel {
	struct kernel k;
	const char *type_attr;          /* its value must be in `types`; NULL: any node */
	uint32_t types;                 /* by enum mu_dtype */
	uint32_t host_in, host_out;     /* ports in host memory for all types */
	uint32_t device_in, device_out; /* ports in device memory for all types */
	uint32_t host_in_types;         /* types of inputs in host memory for all ports */
	/* The functions of the CPU kernel run, because they do not access elements. */
	bool uses_cpu_functions;
};

#define DEVICE_TYPE(t) ((uint32_t)1 << (t))
/* Types in device memory by default. */
#define DEVICE_PLAIN                                                                               \
	(DEVICE_TYPE(MU_FLOAT) | DEVICE_TYPE(MU_DOUBLE) | DEVICE_TYPE(MU_HALF) |                   \
	 DEVICE_TYPE(MU_BFLOAT16) | DEVICE_TYPE(MU_INT64) | DEVICE_TYPE(MU_BOOL) |                 \
	 DEVICE_TYPE(MU_UINT8) | DEVICE_TYPE(MU_INT8) | DEVICE_TYPE(MU_INT16) |                    \
	 DEVICE_TYPE(MU_UINT16) | DEVICE_TYPE(MU_COMPLEX64) | DEVICE_TYPE(MU_UINT32) |             \
	 DEVICE_TYPE(MU_UINT64))

/* True if the tensor of a port is in device memory.  k NULL: host memory. */
bool device_kernel_in_on_device(const struct device_kernel *k, unsigned port, enum mu_dtype t);
bool device_kernel_out_on_device(const struct device_kernel *k, unsigned port, enum mu_dtype t);
/* True if the kernel supports type t. */
bool device_kernel_has_type(const struct device_kernel *k, enum mu_dtype t);

/* Returns the device that a node is placed on; NULL: the host. */
struct device *device_of_node(const struct mu_node *n, const struct runtime *rt);

#endif
