/* SPDX-License-Identifier: Apache-2.0 */
/* Between the files of the stand-in's driver: what streams do, and what is refused.
 *
 * It refuses what NVIDIA's driver refuses, and what that one lets pass and is wrong all the same:
 * calls on a thread without a context or with one that is gone, handles of another context or that
 * were freed, ranges that leave an allocation, host memory for the device's, copies from or to host
 * memory that is not page-locked (they would wait), and grids and blocks that are too large. */
#ifndef MU_TESTS_FAKE_JOBS_H
#define MU_TESTS_FAKE_JOBS_H

#include <pthread.h>

#include "tests/fake/cuda/fake_cuda.h"

enum {
	INVALID_VALUE = 1,
	INVALID_CONTEXT = 201,
	INVALID_HANDLE = 400,
	CONTEXT_IS_GONE = 709,
};
enum deed { LAUNCH, COPY, FILL, RECORD, WAIT };

struct job {
	struct job *next;
	enum deed deed;
	const struct host_kernel *kernel;
	unsigned blocks, threads;
	void *to;
	const void *from;
	size_t bytes;
	unsigned char byte;
	struct stream *awaited; /* by WAIT: NULL for an event that was never recorded */
	unsigned long ticket;
	size_t args_size;
	char args[];
};
struct stream {
	pthread_t thread;
	int device;
	struct job *first, **last;
	const struct job *current;
	bool stopping; /* freed, too: its record stays, since events name it */
	unsigned long recorded, reached;
	struct stream *next; /* of all that there ever were */
};
struct function { /* a kernel in a module, so on a device */
	struct function *next;
	const struct host_kernel *kernel;
	int device;
};

extern struct fake_cuda_counts fake_counts; /* these under the lock */
extern struct stream *fake_streams;
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_news;

/* ---- fake_cuda.c ---- */

/* The device of this thread's context. */
int fake_current(void);
void fake_fault(int device, int result);
bool fake_has_fault(int device);
/* What an entry point that needs a context answers before it does anything. */
int fake_cuda_answer_here(const char *call);
#define FAKE_RETURN_IF(expr)                                                                       \
	do {                                                                                       \
		int answer_ = (expr);                                                              \
		if (answer_)                                                                       \
			return answer_;                                                            \
	} while (0)
#define FAKE_ANSWER_TO(call) FAKE_RETURN_IF(fake_cuda_answer_here(call))
/* Kernels may be launched so. */
bool fake_shape_is_possible(const struct function *f, const unsigned *blocks,
			    const unsigned *threads, unsigned shared);

/* ---- fake_streams.c ---- */

bool fake_stream_is_here(const struct stream *s); /* and there at all */
void fake_append(struct stream *s, const struct job *like, const void *args, size_t size);
/* With the lock: whether anything put on a stream has still to touch this memory of the host. */
bool fake_is_awaited(const char *at, size_t bytes);

/* ---- fake_memory.c ---- */

size_t fake_memory_used(int device);

#define FAKE_DECLARE(field, symbol, args) int fake_##field args;
CUDA_API(FAKE_DECLARE)

#endif
