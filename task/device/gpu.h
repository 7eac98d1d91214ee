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

struct gpu_options {       /* of TensorFlow's GPUOptions */
	double fraction;   /* of the memory; 0: nearly all that is free */
	bool growth;       /* take memory as it is needed */
	char visible[64];  /* "0,2": which of the machine's GPUs, in the order of our numbers */
	size_t limit;      /* bytes; 0: what fraction says */
	unsigned max_gpus; /* of the visible GPUs; 0: all */
};

/* Opens the first options.max_gpus of the GPUs that options.visible names.  api and image have to
 * last.
 */
int gpu_set_open(const struct cuda_plugin *plugin, const struct gpu_options *o,
		 struct device_set **out, struct mu_err *err);
static inline struct gpu *gpu_at(const struct device_set *s, unsigned i)
{
	return (struct gpu *)s->at[i];
}

/* Loads the plug-in and opens its GPUs.  requested: "gpu", "cuda" or "cuda-sm90", the least
 * capability. o: (optional).  chosen: "cuda-sm90". */
int cuda_open(const char *requested, const struct gpu_options *o, struct device_set **out,
	      char *chosen, size_t n_chosen, struct mu_err *err);

struct gpu_info {
	char name[80], bus[24];
	int major, minor; /* compute capability */
	int driver;       /* 12040 */
	int multiprocessors;
	size_t memory, limit; /* bytes: total; usable */
	size_t used, peak;    /* by tensors; the peak */
	char broken[160];     /* why it is out of service; "": it works */
};
void gpu_get_info(struct gpu *g, struct gpu_info *out);
bool gpu_is_usable(struct gpu *g);

/* ---- tensors ---- */

/* Uninitialised memory of the GPU.  RESOURCE_EXHAUSTED names what asked and the biggest holders;
 * `holder` is remembered for that. */
int gpu_tensor_new(struct gpu *g, enum mu_dtype dtype, const struct mu_shape *shape,
		   const char *holder, struct mu_tensor *out, struct mu_err *err);
/* A copy of `from`, which is on g too. */
int gpu_tensor_copy(struct gpu *g, const struct mu_tensor *from, const char *holder,
		    struct mu_tensor *out, struct mu_err *err);
/* The GPU that a tensor's memory belongs to; NULL: host memory. */
struct gpu *gpu_of_tensor(const struct mu_tensor *t);
static inline cuda_ptr gpu_address(const struct mu_tensor *t)
{
	return (cuda_ptr)(uintptr_t)t->data;
}

/* ---- work, in the order of the calls ---- */

/* A kernel of the image, by name; found once. */
int gpu_kernel(struct gpu *g, const char *name, void **out, struct mu_err *err);
struct gpu_grid {
	unsigned blocks, threads;
};
/* For n elements, several to a thread when there are many. */
struct gpu_grid gpu_grid_for(const struct gpu *g, int64_t n);
/* The kernel takes one struct, copied at the call. */
int gpu_launch_sized(struct gpu *g, void *kernel, struct gpu_grid grid, const void *args,
		     size_t size, struct mu_err *err);
#define gpu_launch(g, kernel, grid, args, err)                                                     \
	gpu_launch_sized(g, kernel, grid, args, sizeof *(args), err)
int gpu_fill(struct gpu *g, const struct mu_tensor *t, unsigned char byte, struct mu_err *err);
/* Copies bytes within the memory of g. */
int gpu_copy_within(struct gpu *g, cuda_ptr to, cuda_ptr from, size_t bytes, struct mu_err *err);

/* ---- between host and device ---- */

/* A copy on the device for kernels that are launched later.  `from` is borrowed, and has been read
 * when this returns. */
int gpu_copy_to_device(struct gpu *g, const struct mu_tensor *from, const char *holder,
		       struct mu_tensor *out, struct mu_err *err);
/* A copy in host memory, in *out by the time done(arg, NULL) is called, from a thread of the GPU.
 * On an error, here or there, *out is unset. */
int gpu_copy_to_host(struct gpu *g, const struct mu_tensor *from, struct mu_tensor *out,
		     device_done done, void *arg, struct mu_err *err);

#endif
