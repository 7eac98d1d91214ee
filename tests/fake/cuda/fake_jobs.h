/* SPDX-License-Identifier: Apache-2.0 */
/* Internal functions of the CUDA fake: stream commands and argument checks.
 *
 * The fake rejects what NVIDIA's driver rejects, and also wrong uses that the driver accepts. These
 * are: calls on a thread without a valid context, handles of another context, freed handles, and
 * ranges beyond an allocation. Also host memory used as device memory, and too large grids and
 * blocks.
 */
#ifndef MU_TESTS_FAKE_CUDA_FAKE_JOBS_H
#define MU_TESTS_FAKE_CUDA_FAKE_JOBS_H

#include <pthread.h>

#include "tests/fake/cuda/fake_cuda.h"

enum {
	INVALID_VALUE = 1,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	CONTEXT_IS_GONE = 709,
};
enum deed { LAUNCH, COPY, FILL, FREE, RECORD, WAIT };
enum { FAKE_MAX_DEVICES = 64 };

struct job {
	struct job *next;
	enum deed deed;
	const struct host_kernel *kernel;
	unsigned blocks, threads;
	void *to;
	const void *from;
	size_t bytes;
	unsigned char byte;
	struct stream *awaited; /* for WAIT; NULL for an event that was never recorded */
	unsigned long ticket;
	size_t args_size;
	char args[];
};
struct stream {
	pthread_t thread;
	int device;
	struct job *first, **last;
	const struct job *current;
	bool stopping; /* set when it is freed; the record stays, because events refer to it */
	unsigned long recorded, reached;
	struct stream *next; /* list of all streams ever created */
};
struct function { /* a kernel in a module of a device */
	struct function *next;
	const struct host_kernel *kernel;
	int device;
};

extern struct fake_cuda_counts fake_counts; /* protected by the lock */
extern struct stream *fake_streams;
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_news;

/* ---- fake_cuda.c ---- */

/* The device of the thread's current context. */
int fake_current(void);
void fake_fault(int device, int result);
bool fake_has_fault(int device);
/* The result of an entry point that needs a context, before it does anything. */
int fake_cuda_answer_here(const char *call);
#define FAKE_RETURN_IF(expr)                                                                       \
	do {                                                                                       \
		int answer_ = (expr);                                                              \
		if (answer_)                                                                       \
			return answer_;                                                            \
	} while (0)
#define FAKE_ANSWER_TO(call) FAKE_RETURN_IF(fake_cuda_answer_here(call))
/* True if a kernel can be launched with this grid. */
bool fake_shape_is_possible(const struct function *f, const unsigned *blocks,
			    const unsigned *threads, unsigned shared);

/* ---- fake_streams.c ---- */

bool fake_stream_is_here(
    const struct stream *s); /* true if the stream exists in the current context */
void fake_append(struct stream *s, const struct job *like, const void *args, size_t size);

/* ---- fake_memory.c ---- */

void fake_block_free(void *block);  /* what FREE does */
void fake_pool_release(int device); /* called with the lock */

#define FAKE_DECLARE(field, symbol, args) int fake_##field args;
CUDA_API(FAKE_DECLARE)

#endif
