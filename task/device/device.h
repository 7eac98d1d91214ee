/* SPDX-License-Identifier: Apache-2.0 */
/* Devices, as the runtime sees them: a table of functions that host memory (device.c) and GPUs
 * (gpu.c) implement.  Kernels of a GPU use task/device/gpu.h. */
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
	void (*free)(struct device *d); /* requires that none of its tensors is left */
	bool (*works)(struct device *d);
	/* Uninitialised memory. */
	int (*tensor_new)(struct device *d, enum mu_dtype dtype, const struct mu_shape *shape,
			  const char *holder, struct mu_tensor *out, struct mu_err *err);
	/* A copy of a tensor of this device. */
	int (*tensor_copy)(struct device *d, const struct mu_tensor *from, const char *holder,
			   struct mu_tensor *out, struct mu_err *err);
	/* True if a kernel may write the tensor in place. */
	bool (*is_writable)(const struct mu_tensor *t);
	/* A copy of a tensor of the host; the host gives a reference. */
	int (*copy_in)(struct device *d, const struct mu_tensor *from, const char *holder,
		       struct mu_tensor *out, struct mu_err *err);
	/* A copy in host memory: *out is set before done(arg, NULL) is called, from any thread.
	 * After an error *out is unset; if the function itself returns it, done is not called. */
	int (*copy_out)(struct device *d, const struct mu_tensor *from, struct mu_tensor *out,
			device_done done, void *arg, struct mu_err *err);
};

extern struct device host_device;
/* The device whose memory a tensor is in. */
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
