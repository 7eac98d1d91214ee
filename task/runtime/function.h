/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that kernels call, such as the functions of datasets. */
#ifndef MU_TASK_RUNTIME_FUNCTION_H
#define MU_TASK_RUNTIME_FUNCTION_H

#include <pthread.h>
#include <stdatomic.h>

#include "task/runtime/runtime.h"

/* A caller of functions, used by one thread at a time.  caller_stop, from any thread, cancels the
 * running call and makes all later calls fail. */
struct caller {
	pthread_mutex_t lock;
	_Atomic bool stopped;
	struct step *step; /* step of the running call; NULL: none */
	/* dataset iterators: nesting depth of running reads; how many of these ignore errors */
	unsigned depth, ignoring;
};
void caller_init(struct caller *c);
void caller_fini(struct caller *c);
void caller_stop(struct caller *c);
static inline bool caller_stopped(const struct caller *c)
{
	return atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

struct function;
/* Compiles a function of the library of the step's graph.  It uses the resources of the step's
 * session. */
int function_new(struct runtime *rt, const struct step *s, const struct mu_func *f,
		 struct function **out, struct mu_err *err);
/* Compiles a GraphDef, whose _Retval nodes are the outputs. */
int function_from_graph(struct runtime *rt, const struct step *s, struct mu_span graph_def,
			struct function **out, struct mu_err *err);
/* If s runs a function, f shares kernel state with the functions of this name that other calls of
 * that function make.  So a random generator continues in the next call.  Must precede the first
 * call of f. */
void function_share_state(struct function *f, const struct step *s, const char *name);
void function_free(struct function *f);
unsigned function_outputs(const struct function *f);
/* Runs the function and blocks.  Must not be called on a thread of the compute pool, which the body
 * may need.  On success out[] has new references; inputs are borrowed. */
int function_call(struct function *f, struct caller *caller, const struct mu_tensor *in,
		  unsigned n_in, struct mu_tensor *out, unsigned n_out, struct mu_err *err);
MU_AUTO_DEFINE(function_free, struct function)

#endif
