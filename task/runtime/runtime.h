/* SPDX-License-Identifier: Apache-2.0 */
/* One task's engine: its device, resources, rendezvous and threads, and the executors that run on
 * it. */
#ifndef MU_TASK_RUNTIME_RUNTIME_H
#define MU_TASK_RUNTIME_RUNTIME_H

#include "lib/graph/graph.h"
#include "task/runtime/rendezvous.h"
#include "task/runtime/resources.h"

struct thread_pool;
struct runtime {
	char *task_prefix;    /* "/job:worker/replica:0/task:1" */
	char *cpu_name;       /* "/job:worker/replica:0/task:1/device:CPU:0" */
	uint64_t incarnation; /* random, non-zero, drawn at start */
	struct resources *resources;
	struct rendezvous_table *steps;
	struct thread_pool *pool; /* compute threads: as many as the cgroup gives */
};
int runtime_new(const char *job, int task, unsigned threads, const struct rendezvous_remote *remote,
		struct runtime **out, struct mu_err *err); /* threads 0: what the cgroup gives */
void runtime_free(struct runtime *rt); /* no step may run any more, nor a reference be held */

/* An executor: a registered partition, compiled to a flat plan.  Immutable, reference-counted. */
struct executor;
/* Takes g, also on failure.  `container_prefix`, when not "", isolates the session's resources. */
int executor_new(struct runtime *rt, struct mu_graph *g, const char *container_prefix,
		 struct executor **out, struct mu_err *err);
void executor_ref(struct executor *e);
void executor_unref(struct executor *e);

/* A running step.  done is called exactly once, from a pool thread or the caller's. */
struct step;
typedef void (*step_done)(void *arg, const struct mu_err *err); /* err NULL: success */
/* Starts one step; r is borrowed for the step's length (the step holds its own reference).  Returns
 * a reference to the step, for step_cancel; give it back with step_unref. */
struct step *executor_start(struct executor *e, struct rendezvous *r, step_done done, void *arg);
void step_cancel(struct step *s, const struct mu_err *why); /* idempotent; done still comes */
void step_unref(struct step *s);
struct rendezvous *step_rendezvous(struct step *s);
const char *step_container(const struct step *s); /* what an empty `container` attribute means */
/* A container for what must not outlive the step: cleared when it ends. */
const char *step_own_container(struct step *s);

#endif
