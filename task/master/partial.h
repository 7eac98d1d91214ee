/* SPDX-License-Identifier: Apache-2.0 */
/* PartialRunSetup, and RunStep with its handle. */
#ifndef MU_TASK_MASTER_PARTIAL_H
#define MU_TASK_MASTER_PARTIAL_H

#include "lib/base/buf.h"

struct master;
struct rpc_call;
struct session;

/* Blocks: makes the plan and starts the step. */
int partial_setup(struct master *m, struct mu_span request, struct mu_buf *reply,
		  struct mu_err *err);
/* A RunStepRequest with partial_run_handle; answers the call when its fetches have come. */
void partial_run(struct master *m, struct rpc_call *call, struct mu_span request);
/* For a session that closes: its handles are forgotten. */
void partials_drop(struct session *s);

#endif
