/* SPDX-License-Identifier: Apache-2.0 */
/* The interface of devices to the runtime: a table of functions that host memory (device.c) and
 * GPUs (gpu.c) implement.  Kernels of a GPU use task/device/gpu.h. */
#ifndef MU_TASK_DEVICE_DEVICE_H
#define MU_TASK_DEVICE_DEVICE_H

#include <stdbool.h>

#include "lib/tensor/tensor.h"

typedef void (*device_done)(void *arg, const struct mu_err *err);
struct device {
	const struct device_ops *ops;
	char name[16]; /* "GPU:0"; "CPU": the host */
	unsigned number;
};
/* Work on a device runs in the order of the calls.  `holder` names the owner of memory, for
 * messages.  Outputs are new references. */
struct device_ops {
	void (*free)(struct device *d); /* all tensors of the device must have been freed */
	bool (*works)(struct device *d);
	/* Makes a tensor with uninitialised memory. */
	int (*tensor_new)(struct device *d, enum mu_dtype dtype, const struct mu_shape *shape,
			  const char *holder, struct mu_tensor *out, struct mu_err *err);
	/* Copies a tensor of this device. */
	int (*tensor_copy)(struct device *d, const struct mu_tensor *from, const char *holder,
			   struct mu_tensor *out, struct mu_err *err);
	/* Returns true if a kernel may write the tensor in place. */
	bool (*is_writable)(const struct mu_tensor *t);
	/* Copies a tensor of the host to the device; the host returns a reference. */
	int (*copy_in)(struct device *d, const struct mu_tensor *from, const char *holder,
		       struct mu_tensor *out, struct mu_err *err);
	/* Copies a tensor to host memory.  Sets *out and then calls done(arg, NULL), from any
	 * thread.  On an error *out is unset; if copy_out returns the error, done is not called. */
	int (*copy_out)(struct device *d, const struct mu_tensor *from, struct mu_tensor *out,
			device_done done, void *arg, struct mu_err *err);
};

extern struct device host_device;
/* Returns the device that has the tensor's memory. */
struct device *device_of_tensor(const struct mu_tensor *t);

/* The devices of a task other than the host. */
struct device_set {
	unsigned n;
	struct device *at[];
};
void device_set_free(struct device_set *s);
static inline unsigned device_count(const struct device_set *s)
{
	return s ? s->n : 0;
}

#endif
