/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver in host memory. Device memory is malloc'd, and each stream is a thread that
 * executes its commands in order. Kernels are the real ones, compiled by the C compiler and called
 * once for each thread of a grid. It is linked with a test, or loaded as a plug-in
 * (libmuster-fake-cuda.so).
 *
 * Only events order two streams, as on a GPU: with slow streams (`slow`) a missing wait gives a
 * wrong result.
 */
#ifndef MU_TESTS_FAKE_CUDA_FAKE_CUDA_H
#define MU_TESTS_FAKE_CUDA_FAKE_CUDA_H

#include <stdbool.h>

#include "task/device/cuda_api.h"

struct fake_cuda {
	int devices;
	size_t memory;         /* memory of each device */
	_Atomic unsigned slow; /* maximum delay in microseconds before each stream command */
	int major, minor, driver;
	int init_result;
	/* Makes the nth call from now of this entry point ("launch", "memory_alloc", …) return
	 * result. */
	const char *_Atomic fail_call;
	_Atomic int fail_at, fail_result;
	/* The kernel of this name faults: later waits for its stream return 700. */
	const char *_Atomic fault_kernel;
	_Atomic bool no_products; /* the library finds no algorithm */
	_Atomic bool no_convolutions;
};
/* Resets to two devices of 256 MiB without delays and failures. */
void fake_cuda_reset(void);
extern struct fake_cuda fake_cuda;

struct fake_cuda_counts {
	unsigned long launches, fills, products, copies_in, copies_out, allocations;
	unsigned long convolutions, uncertain; /* convolutions with non-deterministic algorithms */
	size_t device_bytes, most_bytes;       /* that pools have taken */
	unsigned streams, events, contexts;    /* not freed yet */
	unsigned libraries, descriptions;      /* of products; not freed yet */
};
__attribute__((visibility("default"))) void fake_cuda_count(struct fake_cuda_counts *out);

const struct cuda_plugin *fake_cuda_plugin(void);
/* Calls see for each kernel. */
void fake_cuda_each_kernel(void (*fn)(void *arg, const char *name), void *arg);

/* ---- internal ---- */

struct host_kernel {
	struct host_kernel *next;
	const char *name;
	void (*call)(const void *args);
	size_t size;
	int meets; /* its threads synchronise with each other */
};
const struct host_kernel *host_kernel_find(const char *name);
/* The injected result of an entry point, or success; `_here`: for one that needs a context. */
int fake_cuda_answer(const char *call);
int fake_cuda_answer_here(const char *call);
/* True if the range is memory of the device of the thread's current context. */
bool fake_cuda_is_device(cuda_ptr at, size_t bytes);
/* Enqueues a library kernel that runs as one thread. False if the stream is not of the thread's
 * context. */
bool fake_cuda_put(void *stream, const struct host_kernel *k, const void *args);
void fake_cuda_note(
    void (*how)(struct fake_cuda_counts *c)); /* with exclusive access to the counts */
/* Changes the number of open handles. */
void fake_cuda_note_library(int more);
void fake_cuda_note_description(int more);
extern const struct blas_api fake_blas;
extern const struct dnn_api fake_dnn;
/* Runs a grid of blocks of `threads`, on this thread. */
void host_kernel_run(const struct host_kernel *k, unsigned blocks, unsigned threads,
		     const void *args);
void host_kernels_thread_ends(void); /* frees the memory cached by the calling thread */

#endif
