/* SPDX-License-Identifier: Apache-2.0 */
/* Partial runs: PartialRunSetup, and RunStep with its handle. */
#ifndef MU_TASK_MASTER_PARTIAL_H
#define MU_TASK_MASTER_PARTIAL_H

#include "lib/base/buf.h"

struct master;
struct rpc_call;
struct session;

/* Makes the client graph and starts the step; blocks. */
int partial_setup(struct master *m, struct mu_span request, struct mu_buf *reply,
		  struct mu_err *err);
/* Handles a RunStepRequest with partial_run_handle.  Replies when the fetches have arrived. */
void partial_run(struct master *m, struct rpc_call *call, struct mu_span request);
/* Removes all partial runs of a session that is being closed. */
void partials_drop(struct session *s);

#endif
