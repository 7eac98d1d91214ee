/* SPDX-License-Identifier: Apache-2.0 */
/* One task's engine: its device, resources, rendezvous and threads, and the executors that run on
 * it. */
#ifndef MU_TASK_RUNTIME_RUNTIME_H
#define MU_TASK_RUNTIME_RUNTIME_H

#include "lib/graph/graph.h"
#include "task/runtime/rendezvous.h"
#include "task/runtime/resources.h"

struct thread_pool;
struct gpu_set;
struct kernel_registry;
struct runtime {
	const struct kernel_registry *kernels;
	char *task_prefix;    /* "/job:worker/replica:0/task:1" */
	char *cpu_name;       /* "/job:worker/replica:0/task:1/device:CPU:0" */
	uint64_t incarnation; /* random, non-zero, drawn at start */
	struct resources *resources;
	struct rendezvous_table *steps;
	struct traffic *traffic;  /* tensors to and from other tasks */
	struct thread_pool *pool; /* compute threads: as many as the cgroup gives */
	struct gpu_set *gpus;     /* NULL: none; set before the first graph comes, owned */
};
/* threads 0: what the cgroup gives.  `kernels` has to last. */
int runtime_new(const char *job, int task, unsigned threads, const struct kernel_registry *kernels,
		const struct rendezvous_remote *remote, struct runtime **out, struct mu_err *err);
void runtime_free(struct runtime *rt); /* no step may run any more, nor a reference be held */

/* An executor: a registered partition, compiled to a flat plan.  Immutable, reference-counted. */
struct executor;
/* Takes g, also on failure.  `container_prefix`, when not "", isolates the session's resources. */
int executor_new(struct runtime *rt, struct mu_graph *g, const char *container_prefix,
		 struct executor **out, struct mu_err *err);
/* The session that the graph belongs to; said before the first step.  Without one each executor has
 * the state of its kernels for itself. */
void executor_set_session(struct executor *e, const char *session);
void executor_ref(struct executor *e);
void executor_unref(struct executor *e);

/* A running step.  done is called exactly once, from a pool thread or the caller's. */
struct step;
typedef void (*step_done)(void *arg, const struct mu_err *err); /* err NULL: success */
/* Starts one step; r is borrowed for the step's length (the step holds its own reference).  Returns
 * a reference to the step, for step_cancel; give it back with step_unref. */
struct step *executor_start(struct executor *e, struct rendezvous *r, step_done done, void *arg);
/* The same, with a record of what runs; t has to last until done. */
struct step_trace;
struct step *executor_start_traced(struct executor *e, struct rendezvous *r, struct step_trace *t,
				   step_done done, void *arg);
/* What the step waits for: the nodes that can be cancelled. */
void step_waits(struct step *s, void (*see)(void *arg, const struct mu_node *n), void *arg);
/* The graph that it was made of, borrowed. */
const struct mu_graph *executor_graph(const struct executor *e);
/* A step that is a function's body: its _Args read `in`, its _Retvals fill `out`. */
struct call_frame {
	const struct mu_tensor *in;
	struct mu_tensor *out;
	unsigned n_in, n_out;
};
struct step *executor_start_call(struct executor *e, struct rendezvous *r, struct call_frame *frame,
				 step_done done, void *arg);
struct call_frame *step_frame(const struct step *s); /* NULL: no function's body */
struct mu_library *step_library(const struct step *s);
void step_cancel(struct step *s, const struct mu_err *why); /* idempotent; done still comes */
struct step *step_ref(struct step *s);
void step_unref(struct step *s);
struct rendezvous *step_rendezvous(struct step *s);
const char *step_container(const struct step *s); /* what an empty `container` attribute means */
/* The container of the kernels' own state.  It is cleared with the session; without a session each
 * executor has one, cleared with the executor. */
const char *step_session(const struct step *s);
/* A container for what must not outlive the step: cleared when it ends. */
const char *step_own_container(struct step *s);

#endif
