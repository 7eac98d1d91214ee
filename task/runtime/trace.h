/* SPDX-License-Identifier: Apache-2.0 */
/* What a step did and when, as TensorFlow's StepStats: for its timeline tool. */
#ifndef MU_TASK_RUNTIME_TRACE_H
#define MU_TASK_RUNTIME_TRACE_H

#include "task/runtime/kernel.h"

struct step_trace; /* any thread */
struct step_trace *step_trace_new(void);
void step_trace_free(struct step_trace *t); /* NULL is fine */
/* A node ran from then until now and made these outputs.  A receive is told as the transfer it is,
 * a send not at all: as TensorFlow's. */
void step_trace_node(struct step_trace *t, const struct mu_node *n, int64_t began,
		     const struct value *out, unsigned n_out);
/* Appends the fields of a StepStats. */
void step_trace_write(struct step_trace *t, struct mu_buf *b);

#endif
