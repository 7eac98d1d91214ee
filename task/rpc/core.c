/* SPDX-License-Identifier: Apache-2.0 */
/* Initialization and shutdown of the gRPC library, its log, and the completion queue threads.
 *
 * gRPC logs to standard error by itself.  Its lines become debug lines, because every relevant
 * failure is also returned to a caller as an error. */
#include "task/rpc/core.h"

#include <grpc/support/log.h>
#include <grpc/support/time.h>
#include <pthread.h>
#include <unistd.h>

#include "lib/base/log.h"

enum { MIN_THREADS = 2, MAX_THREADS = 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the static variables below */
static unsigned n_users, n_threads;
static grpc_completion_queue *queue;
static pthread_t threads[MAX_THREADS];
static _Thread_local bool on_queue_thread;

static void forward_log(gpr_log_func_args *a)
{
	mu_debug("grpc", "%s (%s:%d)", a->message, a->file, a->line);
}

static void set_log(void)
{
	gpr_set_log_function(forward_log);
	gpr_set_log_verbosity(mu_log_enabled(MU_DEBUG) ? GPR_LOG_SEVERITY_INFO
						       : GPR_LOG_SEVERITY_ERROR);
}

static void *core_thread(void *arg)
{
	on_queue_thread = true;
	for (;;) {
		grpc_event e =
		    grpc_completion_queue_next(arg, gpr_inf_future(GPR_CLOCK_MONOTONIC), NULL);

		if (e.type == GRPC_QUEUE_SHUTDOWN)
			return NULL;
		if (e.type == GRPC_OP_COMPLETE) {
			struct core_tag *tag = e.tag;

			mu_tsan_acquire(tag);
			tag->complete(tag, e.success);
		}
	}
}

/* Called with the lock held. */
static void stop_queue(void)
{
	grpc_completion_queue_shutdown(queue);
	if (n_threads == 0)
		core_thread(queue);
	while (n_threads > 0)
		pthread_join(threads[--n_threads], NULL);
	grpc_completion_queue_destroy(queue);
	queue = NULL;
	grpc_shutdown();
}

static void start_queue(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n_wanted = cores < MIN_THREADS   ? MIN_THREADS
			    : cores > MAX_THREADS ? MAX_THREADS
						  : (unsigned)cores;

	pthread_once(&once, set_log);
	grpc_init();
	queue = grpc_completion_queue_create_for_next(NULL);
	while (n_threads < n_wanted &&
	       !pthread_create(&threads[n_threads], NULL, core_thread, queue))
		n_threads++;
	if (n_threads == 0) {
		stop_queue();
		on_queue_thread = false;
	}
}

grpc_completion_queue *core_queue_ref(struct mu_err *err)
{
	grpc_completion_queue *q;

	pthread_mutex_lock(&lock);
	if (n_users == 0)
		start_queue();
	n_users += queue != NULL;
	q = queue;
	pthread_mutex_unlock(&lock);
	if (!q)
		mu_fail(err, MU_RESOURCE_EXHAUSTED, "cannot start a thread for RPCs");
	return q;
}

void core_queue_unref(void)
{
	pthread_mutex_lock(&lock);
	if (--n_users == 0)
		stop_queue();
	pthread_mutex_unlock(&lock);
}

bool core_is_queue_thread(void)
{
	return on_queue_thread;
}
