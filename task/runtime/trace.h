/* SPDX-License-Identifier: Apache-2.0 */
/* The trace of a step as TensorFlow's StepStats, for its timeline tool. */
#ifndef MU_TASK_RUNTIME_TRACE_H
#define MU_TASK_RUNTIME_TRACE_H

#include "task/runtime/kernel.h"

struct step_trace; /* thread-safe */
/* cost_graph: also records the costs of its nodes; NULL: no costs. */
struct step_trace *step_trace_new(const struct mu_graph *cost_graph);
void step_trace_free(struct step_trace *t); /* NULL is allowed */
/* Records that a node ran from start_ns until now.  As in TensorFlow, a receive is recorded as a
 * transfer, and a send is not recorded. */
void step_trace_node(struct step_trace *t, const struct mu_node *n, int64_t start_ns,
		     const struct value *out, unsigned n_out);
/* Appends the fields of a StepStats. */
void step_trace_write(struct step_trace *t, struct mu_buf *b);
/* Appends the fields of a CostGraphDef. */
void step_trace_write_costs(struct step_trace *t, struct mu_buf *b);

#endif
