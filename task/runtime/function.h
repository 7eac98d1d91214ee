/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that kernels call for themselves: the ones that datasets apply to their elements. */
#ifndef MU_TASK_RUNTIME_FUNCTION_H
#define MU_TASK_RUNTIME_FUNCTION_H

#include <pthread.h>
#include <stdatomic.h>

#include "task/runtime/runtime.h"

/* Who calls functions, on one thread at a time, and may be told to stop: from any thread, for good.
 * The call that it waits for is then cancelled, and no other begins. */
struct caller {
	pthread_mutex_t lock;
	_Atomic bool stopped;
	struct step *step; /* of the call that runs; NULL: none */
};
void caller_init(struct caller *c);
void caller_fini(struct caller *c);
void caller_stop(struct caller *c);
static inline bool caller_stopped(const struct caller *c)
{
	return atomic_load_explicit(&c->stopped, memory_order_relaxed);
}

struct function;
/* Of the library of the step's graph; its variables are those of the step's session. */
int function_new(struct runtime *rt, const struct step *s, const struct mu_func *f,
		 struct function **out, struct mu_err *err);
void function_free(struct function *f);
unsigned function_outputs(const struct function *f);
/* Runs it and waits: not for a thread of the compute pool, which the body may need.  On success
 * out[] holds new references; inputs are borrowed. */
int function_call(struct function *f, struct caller *who, const struct mu_tensor *in, unsigned n_in,
		  struct mu_tensor *out, unsigned n_out, struct mu_err *err);
MU_AUTO_DEFINE(function_free, struct function)

#endif
