/* SPDX-License-Identifier: Apache-2.0 */
/* TensorFlow's debugger (tfdbg) in the master: publishes the names of a step with watched tensors.
 * The workers publish tensors and graphs (task/worker/debug_nodes.c). */
#ifndef MU_TASK_MASTER_DEBUG_RUN_H
#define MU_TASK_MASTER_DEBUG_RUN_H

#include "task/messages/step_messages.h"

struct runtime;

/* Publishes the names of the step's feeds, fetches and targets.  Waits for the servers of the URLs.
 * steps_before: number of previous steps of its client graph. */
int debug_publish_run(struct runtime *rt, const struct run_step_request *r, int64_t steps_before,
		      struct mu_err *err);
/* Closes this task's streams to the URLs at the end of the step.  Waits for their servers. */
void debug_end_run(struct runtime *rt, const struct run_step_request *r);

#endif
