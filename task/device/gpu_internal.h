/* SPDX-License-Identifier: Apache-2.0 */
/* Internals of GPUs. */
#ifndef MU_TASK_DEVICE_GPU_INTERNAL_H
#define MU_TASK_DEVICE_GPU_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "task/device/gpu.h"

/* ---- gpu_memory.c ---- */

struct gpu_block;
struct gpu_memory { /* guarded by the lock of the GPU */
	struct gpu_block *blocks;
	size_t used, peak;
};
int gpu_memory_open(struct gpu *g, bool growth, struct mu_err *err);
/* Allocates memory for use on `stream`, or on a stream that waits for it. */
int gpu_memory_alloc(struct gpu *g, size_t bytes, const char *holder, void *stream,
		     struct gpu_block **out, struct mu_err *err);
/* Frees a block after the work that is on the compute stream now. */
void gpu_memory_free(struct gpu *g, struct gpu_block *b);
cuda_ptr gpu_block_address(const struct gpu_block *b);

/* ---- gpu_copy.c: the thread that copies to the host ---- */

struct gpu_copies {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t not_empty;
	struct copy_out *first, **last;
	bool started, stopping;
};
int gpu_copies_start(struct gpu *g, struct mu_err *err);
void gpu_copies_stop(struct gpu *g); /* after all copies */

/* ---- gpu_context.c: the context, its errors and the order of streams ---- */

struct gpu {
	struct device device;
	const struct cuda_api *api;
	uint64_t serial; /* unique in the process; not 0 */
	int ordinal;     /* the driver's number of the GPU */
	bool has_context;
	void *context, *module;
	const struct blas_api *blas_api;
	void *blas;            /* cuBLAS handle; NULL: not available */
	bool tf32;             /* MUSTER_TF32=1 */
	bool is_deterministic; /* TF_DETERMINISTIC_OPS=1: deterministic library algorithms only */
	const struct dnn_api *dnn_api;
	pthread_mutex_t
	    library_lock; /* held during each call of a library; guards the next members */
	void *dnn;        /* cuDNN handle, made at the first use */
	bool dnn_failed;  /* cuDNN does not start */
	struct gpu_info info;
	void *compute, *in, *out; /* streams */
	struct gpu_copies copies;
	pthread_mutex_t lock; /* guards the next members */
	struct gpu_memory memory;
	struct mu_map kernels;
	_Atomic bool broken; /* out of service; info.broken has the reason */
};

/* Makes the context current on this thread; fails if the GPU is out of service. */
int gpu_enter(struct gpu *g, struct mu_err *err);
void gpu_leave(void); /* the next gpu_enter of this thread sets the context again */
/* Converts a driver's result to an error; 0 for success.  A sticky error takes the GPU out of
 * service. */
int gpu_check(struct gpu *g, int result, const char *action, struct mu_err *err);
/* Makes all later work on the stream `second` wait for the work that is on `first` now. */
int gpu_stream_wait(struct gpu *g, void *first, void *second, struct mu_err *err);

#endif
