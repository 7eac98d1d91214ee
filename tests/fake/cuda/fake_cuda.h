/* SPDX-License-Identifier: Apache-2.0 */
/* A CUDA driver in host memory: devices are made up, device memory is malloc'd, each stream is a
 * thread that takes what was put on it in turn, and kernels are the real ones, compiled by the C
 * compiler and run once for each thread of a grid.
 *
 * Linked with a test, or as a plug-in of its own (libmuster-fake-cuda.so).  Nothing orders two
 * streams but events, as on a GPU: a missing wait is a wrong result when the
 * streams are slow (`slow`). */
#ifndef MU_TESTS_FAKE_CUDA_H
#define MU_TESTS_FAKE_CUDA_H

#include <stdbool.h>

#include "task/device/cuda_api.h"

struct fake_cuda {
	int devices;
	size_t memory;         /* of each device */
	_Atomic unsigned slow; /* up to so many microseconds before each thing that a stream does */
	int major, minor, driver;
	int init_result;
	/* The nth call from now of this entry point ("launch", "memory_alloc", …) answers result.
	 */
	const char *_Atomic fail_call;
	_Atomic int fail_at, fail_result;
	/* The kernel of this name faults: whoever waits for its stream afterwards gets 700. */
	const char *_Atomic fault_kernel;
	_Atomic bool no_products; /* the library finds no way to make any */
	_Atomic bool no_convolutions;
};
/* Back to two devices of 256 MiB, nothing slow and nothing failing. */
void fake_cuda_reset(void);
extern struct fake_cuda fake_cuda;

struct fake_cuda_counts {
	unsigned long plans; /* that a library was asked to choose a way for */
	unsigned long launches, fills, products, copies_in, copies_out, allocations;
	unsigned long convolutions,
	    uncertain; /* of the latter, by algorithms that are not repeatable */
	size_t device_bytes, most_bytes, host_bytes; /* not yet freed */
	unsigned streams, events, contexts;          /* not yet freed */
	unsigned libraries, descriptions;            /* of products; not yet freed */
};
__attribute__((visibility("default"))) void fake_cuda_count(struct fake_cuda_counts *out);

const struct cuda_plugin *fake_cuda_plugin(void);
/* Calls see for each kernel there is. */
void fake_cuda_each_kernel(void (*see)(void *arg, const char *name), void *arg);

/* ---- between its files ---- */

struct host_kernel {
	struct host_kernel *next;
	const char *name;
	void (*call)(const void *args);
	size_t size;
	int meets; /* its threads wait for one another */
};
const struct host_kernel *host_kernel_find(const char *name);
/* What an entry point answers before it does anything; `_here`: one that needs a context. */
int fake_cuda_answer(const char *call);
int fake_cuda_answer_here(const char *call);
/* Whether all of this is memory of the device whose context the thread has. */
bool fake_cuda_is_device(cuda_ptr at, size_t bytes);
/* What stands for a library's kernel: one thread of it, in the stream's turn.  false: it is no
 * stream of the thread's context. */
bool fake_cuda_put(void *stream, const struct host_kernel *k, const void *args);
void fake_cuda_note(void (*how)(struct fake_cuda_counts *c)); /* with the counts to itself */
void fake_cuda_one_plan(struct fake_cuda_counts *c);
/* So many more that are open, or fewer. */
void fake_cuda_note_library(int more);
void fake_cuda_note_description(int more);
extern const struct blas_api fake_blas;
extern const struct dnn_api fake_dnn;
/* Runs a grid of blocks of `threads`, on this thread. */
void host_kernel_run(const struct host_kernel *k, unsigned blocks, unsigned threads,
		     const void *args);
void host_kernels_thread_ends(void); /* gives back what the calling thread has kept */

#endif
