/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs: a struct gpu for each that the task may use, with its memory, streams and kernels.
 *
 * Order.  All kernels of a GPU go to the compute stream, in the order of their launches.  Memory
 * comes from the driver's stream-ordered pool, so freed memory may be used by the next kernel at
 * once.  Copies to and from the host have a stream each.  Kernels launched after a copy to the
 * device wait for it there; a copy to the host waits for the kernels launched before it.  A thread
 * per GPU waits for copies to the host and calls their completion functions.
 *
 * Errors.  A failed call fails its step.  After an error that the driver calls sticky, the GPU is
 * out of service: every later call fails with the reason, and it is not among the task's devices.
 *
 * Threads: any.
 */
#ifndef MU_TASK_DEVICE_GPU_H
#define MU_TASK_DEVICE_GPU_H

#include <stdbool.h>

#include "task/device/cuda_api.h"
#include "task/device/device.h"

struct gpu; /* begins with its struct device */

struct gpu_options {       /* as TensorFlow's GPUOptions */
	double fraction;   /* share of the memory; 0: nearly all free memory */
	bool growth;       /* allocate memory on demand */
	char visible[64];  /* "0,2": the machine's GPUs that become GPU:0, GPU:1; "": all */
	size_t limit;      /* bytes; 0: `fraction` applies */
	unsigned max_gpus; /* limit of the visible GPUs; 0: all */
};

/* Opens the first o->max_gpus of the GPUs in o->visible.  Borrows the plug-in. */
int gpu_set_open(const struct cuda_plugin *plugin, const struct gpu_options *o,
		 struct device_set **out, struct mu_err *err);
static inline struct gpu *gpu_at(const struct device_set *s, unsigned i)
{
	return (struct gpu *)s->at[i];
}

/* Loads the plug-in and opens its GPUs.  requested: "gpu", "cuda" or "cuda-sm90" (the
 * minimum capability).  o: (optional).  chosen: "cuda-sm90". */
int cuda_open(const char *requested, const struct gpu_options *o, struct device_set **out,
	      char *chosen, size_t n_chosen, struct mu_err *err);

struct gpu_info {
	char name[80], bus[24];
	int major, minor; /* compute capability */
	int driver;       /* 12040 */
	int multiprocessors;
	size_t memory, limit; /* bytes: total; usable */
	size_t used, peak;    /* bytes of tensors: now; at the peak */
	char broken[160];     /* reason why the GPU is out of service; "": it works */
};
void gpu_get_info(struct gpu *g, struct gpu_info *out);
bool gpu_is_usable(struct gpu *g);

/* ---- tensors ---- */

/* Makes a tensor with uninitialised memory.  `holder` names the owner of the memory: the error
 * RESOURCE_EXHAUSTED reports this name and the largest holders. */
int gpu_tensor_new(struct gpu *g, enum mu_dtype dtype, const struct mu_shape *shape,
		   const char *holder, struct mu_tensor *out, struct mu_err *err);
/* Copies `from`, a tensor of the same GPU. */
int gpu_tensor_copy(struct gpu *g, const struct mu_tensor *from, const char *holder,
		    struct mu_tensor *out, struct mu_err *err);
/* Returns the GPU that has the tensor's memory; NULL: host memory. */
struct gpu *gpu_of_tensor(const struct mu_tensor *t);
static inline cuda_ptr gpu_address(const struct mu_tensor *t)
{
	return (cuda_ptr)(uintptr_t)t->data;
}

/* ---- kernels and other work, in the order of the calls ---- */

/* Returns the kernel of this name; caches the look-up. */
int gpu_kernel(struct gpu *g, const char *name, void **out, struct mu_err *err);
struct gpu_grid {
	unsigned blocks, threads;
};
/* Returns the grid for n elements; for large n a thread processes several elements. */
struct gpu_grid gpu_grid_for(const struct gpu *g, int64_t n);
/* The kernel takes one struct, copied at the call. */
int gpu_launch_sized(struct gpu *g, void *kernel, struct gpu_grid grid, const void *args,
		     size_t size, struct mu_err *err);
#define gpu_launch(g, kernel, grid, args, err)                                                     \
	gpu_launch_sized(g, kernel, grid, args, sizeof *(args), err)
int gpu_fill(struct gpu *g, const struct mu_tensor *t, unsigned char byte, struct mu_err *err);
/* Copies bytes within the memory of g. */
int gpu_copy_within(struct gpu *g, cuda_ptr to, cuda_ptr from, size_t bytes, struct mu_err *err);

/* ---- copies between host and device ---- */

/* Copies a tensor to the device, for kernels that are launched later.  `from` is borrowed until the
 * return. */
int gpu_copy_to_device(struct gpu *g, const struct mu_tensor *from, const char *holder,
		       struct mu_tensor *out, struct mu_err *err);
/* Copies a tensor to host memory.  A thread of the GPU sets *out and calls done(arg, NULL).  On an
 * error, of this function or of the thread, *out is unset. */
int gpu_copy_to_host(struct gpu *g, const struct mu_tensor *from, struct mu_tensor *out,
		     device_done done, void *arg, struct mu_err *err);

#endif
