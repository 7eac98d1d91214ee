/* SPDX-License-Identifier: Apache-2.0 */
#include "task/runtime/runtime.h"

#include <string.h>

#include "lib/base/random.h"
#include "task/device/device.h"
#include "task/runtime/collective.h"
#include "task/runtime/exec_graph.h"
#include "task/runtime/memory_copies.h"
#include "task/runtime/python_process.h"
#include "task/runtime/traffic.h"

int runtime_new(const char *job, int task, unsigned threads, const struct kernel_registry *kernels,
		const struct rendezvous_remote *remote, struct runtime **out, struct mu_err *err)
{
	struct runtime *rt = MU_NEW(struct runtime);
	int rc = thread_pool_new(threads, &rt->pool, err);

	if (rc) {
		free(rt);
		return rc;
	}
	pthread_mutex_init(&rt->threads_lock, NULL);
	pthread_cond_init(&rt->threads_ended, NULL);
	rt->kernels = kernels;
	rt->task_prefix = mu_xasprintf("/job:%s/replica:0/task:%d", job, task);
	rt->cpu_name = mu_xasprintf("%s/device:CPU:0", rt->task_prefix);
	rt->n_cpus = 1;
	rt->incarnation = mu_random_u64();
	rt->resources = resources_new(job);
	rt->traffic = traffic_new();
	rt->steps = rendezvous_table_new(rt->task_prefix, remote);
	*out = rt;
	return 0;
}

/* ---- threads of kernels and resources ---- */

struct thread_start {
	struct runtime *rt;
	void (*run)(void *arg);
	void *arg;
};

static void *runtime_thread(void *arg)
{
	struct thread_start s = *(struct thread_start *)arg;

	free(arg);
	s.run(s.arg);
	pthread_mutex_lock(&s.rt->threads_lock);
	if (--s.rt->n_threads == 0)
		pthread_cond_signal(&s.rt->threads_ended);
	pthread_mutex_unlock(&s.rt->threads_lock);
	return NULL;
}

int runtime_start_thread(struct runtime *rt, void (*run)(void *arg), void *arg, struct mu_err *err)
{
	struct thread_start *s = MU_NEW(struct thread_start);
	pthread_t thread;

	*s = (struct thread_start){rt, run, arg};
	pthread_mutex_lock(&rt->threads_lock);
	int rc = pthread_create(&thread, NULL, runtime_thread, s);
	if (!rc) {
		pthread_detach(thread);
		rt->n_threads++;
	}
	pthread_mutex_unlock(&rt->threads_lock);
	if (!rc)
		return 0;
	free(s);
	return mu_fail(err, MU_RESOURCE_EXHAUSTED,
		       "cannot start a thread: %s; raise the limit of threads", strerror(rc));
}

static void wait_for_threads(struct runtime *rt)
{
	pthread_mutex_lock(&rt->threads_lock);
	while (rt->n_threads)
		pthread_cond_wait(&rt->threads_ended, &rt->threads_lock);
	pthread_mutex_unlock(&rt->threads_lock);
	pthread_cond_destroy(&rt->threads_ended);
	pthread_mutex_destroy(&rt->threads_lock);
}

void runtime_free(struct runtime *rt)
{
	if (!rt)
		return;
	resources_clear_all(rt->resources); /* stops the threads, which use the other parts */
	wait_for_threads(rt);
	resources_free(rt->resources);
	rendezvous_table_free(rt->steps);
	thread_pool_free(rt->pool);
	traffic_free(rt->traffic);
	device_set_free(rt->devices);
	collectives_free(rt->collectives);
	python_process_free(rt->python_process);
	free(rt->task_prefix);
	free(rt->cpu_name);
	free(rt);
}

/* ---- executors ---- */

int executor_new(struct runtime *rt, struct mu_graph *g, const char *container_prefix,
		 struct executor **out, struct mu_err *err)
{
	struct executor *e = MU_NEW(struct executor);
	bool isolated = container_prefix && *container_prefix;
	int rc;

	atomic_init(&e->refs, 1);
	e->rt = rt;
	e->has_helpers = thread_pool_size(rt->pool) > 1;
	e->graph = g;
	e->container = mu_xstrdup(isolated ? container_prefix : resources_default(rt->resources));
	mu_arena_init(&e->arena);
	pthread_mutex_init(&e->lock, NULL);
	rc = memory_copies_insert(g, rt, err);
	if (!rc)
		rc = exec_graph_compile(e, err);
	if (rc)
		executor_unref(e);
	else
		*out = e;
	return rc;
}

const struct mu_graph *executor_graph(const struct executor *e)
{
	return e->graph;
}

void executor_set_session(struct executor *e, const char *session)
{
	e->session = resources_of_kernels(session);
}

void executor_ref(struct executor *e)
{
	atomic_fetch_add_explicit(&e->refs, 1, memory_order_relaxed);
}

static void release_state(struct exec_node *p, const struct kernel *k)
{
	if (!p->state)
		return;
	if (k->release)
		k->release(p->state);
	else
		free(p->state);
}

void executor_unref(struct executor *e)
{
	if (!e || atomic_fetch_sub_explicit(&e->refs, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < e->n_prepared; i++)
		release_state(&e->nodes[i], e->extra[i].kernel);
	if (e->owns_session)
		resources_clear(e->rt->resources, e->session);
	while (e->spare) {
		struct iteration *next = e->spare->next;
		iteration_free(&e->frames[ROOT_FRAME], e->spare);
		e->spare = next;
	}
	pthread_mutex_destroy(&e->lock);
	mu_graph_free(e->graph);
	mu_arena_fini(&e->arena);
	free(e->container);
	free(e->session);
	free(e);
}
