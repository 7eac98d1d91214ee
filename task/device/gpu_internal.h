/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of a GPU. */
#ifndef MU_TASK_DEVICE_GPU_INTERNAL_H
#define MU_TASK_DEVICE_GPU_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "task/device/gpu.h"

enum { HOLDER_LEN = 64 };

/* ---- gpu_memory.c: the device's memory, cut into blocks ---- */

struct gpu_memory_source {                                  /* where regions come from */
	int (*take)(void *ctx, size_t bytes, cuda_ptr *at); /* a driver's result */
	void (*give)(void *ctx, cuda_ptr at);
	void *ctx;
};
struct gpu_memory;
struct gpu_block;
struct gpu_memory *gpu_memory_new(const char *name, const struct gpu_memory_source *source,
				  size_t limit, bool growth);
void gpu_memory_free(struct gpu_memory *m);
/* `now`: how many launches have been made; `over`: how many of them have ended for certain.  *after
 * is the launch that must be over before the block is written to from another stream; 0: none. */
struct gpu_block *gpu_memory_take(struct gpu_memory *m, size_t bytes, const char *holder,
				  uint64_t over, uint64_t *after, struct mu_err *err);
void gpu_memory_give(struct gpu_memory *m, struct gpu_block *b, uint64_t now);
cuda_ptr gpu_block_address(const struct gpu_block *b);
void gpu_memory_see(struct gpu_memory *m, size_t *used, size_t *most);

/* ---- gpu_staging.c: host memory that the device copies from and to at full speed ---- */

struct gpu_staging;
struct gpu_staging *gpu_staging_new(struct gpu *g);
void gpu_staging_free(struct gpu_staging *s);
int gpu_staging_take(struct gpu_staging *s, size_t bytes, void **out, struct mu_err *err);
void gpu_staging_give(struct gpu_staging *s, void *p, size_t bytes);

/* ---- gpu_lane.c: a stream, and a thread that tells when what was put on it has ended ---- */

struct gpu_lane {
	struct gpu *gpu;
	void *stream;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct gpu_ending *first, **last;
	bool started, stopping;
};
int gpu_lane_start(struct gpu_lane *l, struct gpu *g, struct mu_err *err);
void gpu_lane_stop(struct gpu_lane *l); /* what waits is called first */
/* Calls done when all that is on the stream now has ended; an error is an answer too.  `launched`:
 * so many launches are over by then. */
int gpu_lane_tell(struct gpu_lane *l, uint64_t launched, gpu_done done, void *arg,
		  struct mu_err *err);

/* ---- gpu.c ---- */

struct gpu {
	const struct cuda_api *api;
	unsigned number;
	int device;
	bool has_context;
	void *context, *module;
	const struct blas_api *blas_api;
	void *blas;      /* the library on this GPU; NULL: without it */
	bool tf32;       /* MUSTER_TF32=1 */
	bool repeatable; /* TF_DETERMINISTIC_OPS=1: a library's sums in the same order each time */
	const struct dnn_api *dnn_api;
	pthread_mutex_t dnn_lock; /* guards what follows, and around each of the library's calls */
	void *dnn;                /* cuDNN on this GPU, from the first use on */
	bool dnn_failed;          /* it does not start here */
	struct gpu_facts facts;
	struct gpu_memory *memory;
	struct gpu_staging *staging;
	struct gpu_lane compute, in, out;
	_Atomic uint64_t launched, over; /* kernels and the like on the compute stream */
	pthread_mutex_t lock;            /* guards what follows */
	struct mu_map kernels;
	void **events; /* unused ones */
	unsigned n_events, cap_events;
	_Atomic bool broken; /* facts.broken says why */
};

/* Makes the context current on this thread; fails when the GPU is out of service. */
int gpu_enter(struct gpu *g, struct mu_err *err);
/* A driver's result as an error, 0 for success; a sticky one takes the GPU out. */
int gpu_check(struct gpu *g, int result, const char *doing, struct mu_err *err);
int gpu_event_take(struct gpu *g, void **out, struct mu_err *err);
void gpu_event_give(struct gpu *g, void *event);

#endif
