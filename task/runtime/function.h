/* SPDX-License-Identifier: Apache-2.0 */
/* Functions that kernels call for themselves: the ones that datasets apply to their elements. */
#ifndef MU_TASK_RUNTIME_FUNCTION_H
#define MU_TASK_RUNTIME_FUNCTION_H

#include "task/runtime/runtime.h"

struct function;
/* Of the library of the step's graph; its variables are those of the step's session. */
int function_new(struct runtime *rt, const struct step *s, const struct mu_func *f,
		 struct function **out, struct mu_err *err);
void function_free(struct function *f);
/* Runs it and waits: not for a thread of the compute pool, which the body may need.  On success
 * out[] holds new references; inputs are borrowed. */
int function_call(struct function *f, const struct mu_tensor *in, unsigned n_in,
		  struct mu_tensor *out, unsigned n_out, struct mu_err *err);
MU_AUTO_DEFINE(function_free, struct function)

#endif
