/* SPDX-License-Identifier: Apache-2.0 */
/* What a client gets for a RunStep. */
#ifndef MU_TASK_MASTER_STEP_REPLY_H
#define MU_TASK_MASTER_STEP_REPLY_H

#include "lib/tensor/tensor.h"
#include "task/rpc/server.h"

/* In the body where the client wants it there: a status line has no room for long texts. */
void step_reply_error(struct rpc_call *call, bool in_body, const struct mu_err *err);
/* names NULL: a callable's, which go by their places.  metadata: a RunMetadata. */
void step_reply_tensors(struct rpc_call *call, const char *const *names,
			const struct mu_tensor *tensors, unsigned n, struct mu_span metadata);

#endif
