/* SPDX-License-Identifier: Apache-2.0 */
/* What streams do, between the files of the stand-in's driver. */
#ifndef MU_TESTS_FAKE_JOBS_H
#define MU_TESTS_FAKE_JOBS_H

#include <pthread.h>

#include "tests/fake/cuda/fake_cuda.h"

enum { INVALID_VALUE = 1 };
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
/* A graph, what was made of it, and what a stream records: jobs one after the other. */
struct graph {
	struct job *first, **last;
	struct graph *of; /* by what can be launched: the graph it was made of */
};
struct stream {
	pthread_t thread;
	struct graph *recording; /* what is put on it goes there */
	struct job *first, **last;
	bool busy, stopping;
	unsigned long recorded, reached;
	struct stream *next;
};

extern struct fake_cuda_counts fake_counts; /* these under the lock */
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_news;

#define FAKE_ANSWER_TO(call)                                                                       \
	do {                                                                                       \
		int answer_ = fake_cuda_answer(call);                                              \
		if (answer_)                                                                       \
			return answer_;                                                            \
	} while (0)
#define FAKE_ANSWER() FAKE_ANSWER_TO(__func__)

/* fake_graph.c */
int fake_capture_begin(void *stream, int mode);
int fake_capture_see(void *stream, int *status, uint64_t *id, void **graph, void *const **last,
		     size_t *n_last);
int fake_capture_end(void *stream, void **graph);
int fake_graph_make(void **exec, void *graph, unsigned long long flags);
int fake_graph_set(void *exec, void *node, const struct cuda_kernel_piece *to);
int fake_graph_launch(void *exec, void *stream);
int fake_graph_exec_free(void *exec);
int fake_graph_free(void *graph);

#endif
