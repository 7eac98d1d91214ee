/* SPDX-License-Identifier: Apache-2.0 */
/* The client side's completion queue and its threads: one for all channels of the process, started
 * with the first channel and ended with the last.  Tags are struct core_tag. */
#include <pthread.h>

#include "task/rpc/core.h"

enum { LOOP_THREADS = 2 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned users;
static grpc_completion_queue *queue;
static pthread_t threads[LOOP_THREADS];
static _Thread_local bool on_loop;

static void *run(void *arg)
{
	grpc_completion_queue *q = arg;

	on_loop = true;
	for (;;) {
		grpc_event e =
		    grpc_completion_queue_next(q, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

		if (e.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (e.type == GRPC_OP_COMPLETE) {
			struct core_tag *tag = e.tag;

			core_take_over(tag);
			tag->fire(tag, e.success);
		}
	}
}

grpc_completion_queue *loop_ref(void)
{
	pthread_mutex_lock(&lock);
	if (users++ == 0) {
		core_init();
		queue = grpc_completion_queue_create_for_next(NULL);
		for (int i = 0; i < LOOP_THREADS; i++)
			if (pthread_create(&threads[i], NULL, run, queue))
				abort(); /* no thread for the very first channel: nothing works */
	}
	pthread_mutex_unlock(&lock);
	return queue;
}

void loop_unref(void)
{
	pthread_mutex_lock(&lock);
	if (--users == 0) {
		grpc_completion_queue_shutdown(queue);
		for (int i = 0; i < LOOP_THREADS; i++)
			pthread_join(threads[i], NULL);
		grpc_completion_queue_destroy(queue);
		queue = NULL;
		core_shutdown();
	}
	pthread_mutex_unlock(&lock);
}

bool loop_is_this_thread(void)
{
	return on_loop;
}
