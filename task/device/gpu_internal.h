/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of a GPU. */
#ifndef MU_TASK_DEVICE_GPU_INTERNAL_H
#define MU_TASK_DEVICE_GPU_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "lib/base/map.h"
#include "lib/base/mem.h"
#include "task/device/gpu.h"
#include "task/kernels/cuda/args.h"

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
int gpu_lane_open(struct gpu_lane *l, struct gpu *g, struct mu_err *err); /* without a thread */
int gpu_lane_start(struct gpu_lane *l, struct gpu *g, struct mu_err *err);
void gpu_lane_stop(struct gpu_lane *l); /* what waits is called first */
/* Calls done when all that is on the stream now has ended; an error is an answer too.  `launched`:
 * so many launches are over by then. */
int gpu_lane_tell(struct gpu_lane *l, uint64_t launched, gpu_done done, void *arg,
		  struct mu_err *err);

/* ---- gpu_launch.c: what goes on the compute stream, now or together ---- */

struct gpu_deed { /* one thing that goes on a stream */
	int (*put)(struct gpu *g, const struct gpu_deed *d, const void *args, void *stream);
	void *kernel; /* NULL: not one of ours */
	struct gpu_grid grid;
	uint32_t at, size; /* its arguments, in the bytes of its list */
};
enum { GPU_LIST_DEEDS = 128, GPU_LIST_BYTES = 32 << 10 };
struct gpu_list {
	unsigned n;
	uint32_t used;
	struct gpu_deed deeds[GPU_LIST_DEEDS];
	char bytes[GPU_LIST_BYTES] __attribute__((aligned(16)));
};
struct gpu_graph;
struct gpu_graphs;
struct gpu_updates { /* that wait for more of them; none: args.count is 0 */
	void *kernel;
	struct updates_args args;
};
struct gpu_queue {
	pthread_mutex_t lock;
	bool on;
	_Atomic bool held;    /* what is in the list is not on the stream yet */
	_Atomic bool waiting; /* there are updates, which are not in the list yet */
	struct gpu_updates updates;
	struct gpu_list *list;       /* since the last segment ended */
	struct gpu_graph *candidate; /* how it seems to go on; NULL: not held */
	struct gpu_graphs *graphs;
};
void gpu_queue_init(struct gpu *g);
void gpu_queue_fini(struct gpu *g);
/* Copies d and args, whose bytes must say all (padding too) unless it is a kernel. */
int gpu_put(struct gpu *g, const struct gpu_deed *d, const void *args, const char *doing,
	    struct mu_err *err);
/* Of a library, whose results are its own: *refused is what it says, and then nothing was put. */
int gpu_put_library(struct gpu *g, const struct gpu_deed *d, const void *args, int *refused,
		    struct mu_err *err);
/* All that was put is on the stream afterwards. */
int gpu_end_segment(struct gpu *g, struct mu_err *err);

/* ---- gpu_updates.c: updates of variables, together ---- */

/* Whether it can join them; `size`: of an element. */
bool gpu_updates_join(struct gpu_updates *all, void *kernel, unsigned blocks, uint64_t size,
		      const struct update_args *u);

/* ---- gpu_graph.c: segments that come again ---- */

struct gpu_graphs *gpu_graphs_new(struct gpu *g);
void gpu_graphs_free(struct gpu_graphs *s);
/* One that begins like the list, if there is one. */
struct gpu_graph *gpu_graphs_find(const struct gpu_graphs *s, const struct gpu_list *l);
bool gpu_graph_goes_on(const struct gpu_graph *x, const struct gpu_list *l); /* the last of it */
bool gpu_graph_is_whole(const struct gpu_graph *x, const struct gpu_list *l);
/* Driver's results.  A failure has put nothing on the stream. */
int gpu_graphs_note(struct gpu_graphs *s, const struct gpu_list *l); /* a segment has ended */
int gpu_graph_launch(struct gpu_graphs *s, struct gpu_graph *x, const struct gpu_list *l,
		     void *stream);

/* ---- gpu.c ---- */

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
	pthread_mutex_t dnn_lock; /* guards what follows, and around each of the library's calls */
	void *dnn;                /* cuDNN on this GPU, from the first use on */
	bool dnn_failed;          /* it does not start here */
	struct gpu_facts facts;
	struct gpu_memory *memory;
	struct gpu_staging *staging;
	struct gpu_lane compute, in, out;
	struct gpu_queue queue;
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
/* Takes it out because of this result, sticky or not. */
int gpu_give_up(struct gpu *g, int result, const char *doing, struct mu_err *err);
int gpu_event_take(struct gpu *g, void **out, struct mu_err *err);
void gpu_event_give(struct gpu *g, void *event);

#endif
