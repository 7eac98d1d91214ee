/* SPDX-License-Identifier: Apache-2.0 */
/* The runtime of a task: devices, resources, rendezvous and threads, and executors that use them.
 */
#ifndef MU_TASK_RUNTIME_RUNTIME_H
#define MU_TASK_RUNTIME_RUNTIME_H

#include "lib/graph/graph.h"
#include "task/runtime/debug_sink.h"
#include "task/runtime/rendezvous.h"
#include "task/runtime/resources.h"

struct thread_pool;
struct device_set;
struct collectives;
struct kernel_registry;
struct python_process;
struct runtime {
	const struct kernel_registry *kernels;
	char *task_prefix;    /* "/job:worker/replica:0/task:1" */
	char *cpu_name;       /* "/job:worker/replica:0/task:1/device:CPU:0" */
	unsigned n_cpus;      /* CPU devices: names of the same memory and threads */
	uint64_t incarnation; /* random, non-zero, drawn at start */
	struct resources *resources;
	struct rendezvous_table *steps;
	struct traffic *traffic;  /* bytes of tensors to and from other tasks */
	struct thread_pool *pool; /* compute threads */
	struct device_set
	    *devices; /* NULL: only the host; set before the first graph is registered; owned */
	struct collectives *collectives;       /* NULL without a server; set with devices; owned */
	struct python_process *python_process; /* NULL: PyFunc ops fail; owned */
	struct debug_streams
	    debug_streams; /* functions are NULL without a server; set with devices */
	pthread_mutex_t threads_lock;
	pthread_cond_t threads_ended;
	unsigned n_threads; /* of runtime_start_thread */
};
/* threads 0: one for each CPU of the cgroup.  `kernels` is borrowed for the runtime's life. */
int runtime_new(const char *job, int task, unsigned threads, const struct kernel_registry *kernels,
		const struct rendezvous_remote *remote, struct runtime **out, struct mu_err *err);
void runtime_free(struct runtime *rt); /* requires that no step runs and no reference is left */
/* Starts a thread for a kernel or resource that blocks.  Nothing joins it; runtime_free waits for
 * its end. */
int runtime_start_thread(struct runtime *rt, void (*run)(void *arg), void *arg, struct mu_err *err);

/* An executor: a registered partition in compiled form.  Immutable, reference-counted. */
struct executor;
/* Takes g, also on failure.  A `container_prefix` other than "" isolates the session's resources.
 */
int executor_new(struct runtime *rt, struct mu_graph *g, const char *container_prefix,
		 struct executor **out, struct mu_err *err);
/* Sets the session of the graph, before the first step.  Without a session each executor has its
 * own kernel state. */
void executor_set_session(struct executor *e, const char *session);
void executor_ref(struct executor *e);
void executor_unref(struct executor *e);

/* A running step.  done is called exactly once, on a pool thread or the caller's thread. */
struct step;
typedef void (*step_done)(void *arg, const struct mu_err *err); /* err NULL: success */
/* Arguments of a step that runs a function body: its _Args read `in`, its _Retvals fill `out`. */
struct call_frame {
	const struct mu_tensor *in;
	struct mu_tensor *out;
	unsigned n_in, n_out;
};
/* Starts a step, which holds its own reference to r.  t and frame are optional, and valid until
 * done.  Returns a new reference to the step, for step_cancel. */
struct step_trace;
struct step *executor_start(struct executor *e, struct rendezvous *r, struct step_trace *t,
			    struct call_frame *frame, step_done done, void *arg);
/* Calls fn() for each node that the step waits for, if it can be cancelled. */
void step_each_waiting(struct step *s, void (*fn)(void *arg, const struct mu_node *n), void *arg);
/* Returns the executor's graph, borrowed. */
const struct mu_graph *executor_graph(const struct executor *e);
struct call_frame *step_call_frame(const struct step *s); /* NULL: not a function body */
struct mu_library *step_library(const struct step *s);
void step_cancel(struct step *s, const struct mu_err *why); /* idempotent; done is still called */
struct step *step_ref(struct step *s);
void step_unref(struct step *s);
struct rendezvous *step_rendezvous(struct step *s);
const char *step_container(const struct step *s); /* the default of the attribute `container` */
/* The container for kernel state.  It is cleared when the session is closed; without a session,
 * when the executor is freed. */
const char *step_session(const struct step *s);
/* Sets the session of e, before its first step, to one within the session of the step's executor.
 * Executors with the same name share kernel state there. */
void step_share_session(const struct step *s, struct executor *e, const char *name);
/* A container that is cleared at the end of the step. */
const char *step_own_container(struct step *s);

#endif
