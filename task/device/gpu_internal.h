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

/* ---- gpu_stream.c: a stream, and a thread that reports when work on it has completed ---- */

struct gpu_stream {
	struct gpu *gpu;
	void *stream;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t more;
	struct gpu_completion *first, **last;
	bool started, stopping;
};
int gpu_stream_open(struct gpu_stream *s, struct gpu *g, struct mu_err *err); /* without a thread */
int gpu_stream_start(struct gpu_stream *s, struct gpu *g, struct mu_err *err);
void gpu_stream_stop(struct gpu_stream *s); /* after all completions have been reported */
/* Calls done(arg, …) when all that is on the stream now has completed or failed.  Then the first
 * `launched` launches of the compute stream are over. */
int gpu_stream_on_completion(struct gpu_stream *s, uint64_t launched, gpu_done done, void *arg,
			     struct mu_err *err);

/* ---- gpu_context.c: the context, its errors and its events ---- */

struct gpu {
	const struct cuda_api *api;
	uint64_t serial; /* no other that this process opened ever had it; not 0 */
	unsigned number;
	int device;
	bool has_context;
	void *context, *module;
	const struct blas_api *blas_api;
	void *blas;      /* the library on this GPU; NULL: without it */
	bool tf32;       /* MUSTER_TF32=1 */
	bool repeatable; /* TF_DETERMINISTIC_OPS=1: a library's sums in the same order each time */
	const struct dnn_api *dnn_api;
	pthread_mutex_t library_lock; /* held during each call of a library; guards what follows */
	void *dnn;                    /* cuDNN on this GPU, from its first use */
	bool dnn_failed;              /* cuDNN does not start here */
	struct gpu_facts facts;
	struct gpu_memory *memory;
	struct gpu_staging *staging;
	struct gpu_stream compute, in, out;
	_Atomic uint64_t launched, over; /* kernels and the like on the compute stream */
	pthread_mutex_t lock;            /* guards what follows */
	struct mu_map kernels;
	void **events; /* unused ones */
	unsigned n_events, cap_events;
	_Atomic bool broken; /* facts.broken says why */
};

/* A launch counts once it is on the stream: memory that is freed later is safe to reuse. */
static inline void gpu_count_launch(struct gpu *g)
{
	atomic_fetch_add(&g->launched, 1);
}

/* Makes the context current on this thread; fails when the GPU is out of service. */
int gpu_enter(struct gpu *g, struct mu_err *err);
void gpu_leave(void); /* the next gpu_enter of this thread sets the context again */
/* A driver's result as an error, 0 for success; a sticky one takes the GPU out. */
int gpu_check(struct gpu *g, int result, const char *doing, struct mu_err *err);
/* Takes it out because of this result, sticky or not. */
int gpu_give_up(struct gpu *g, int result, const char *doing, struct mu_err *err);
int gpu_event_take(struct gpu *g, void **out, struct mu_err *err);
void gpu_event_give(struct gpu *g, void *event);

#endif
