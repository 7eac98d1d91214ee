/* SPDX-License-Identifier: Apache-2.0 */
/* Replies to RunStep and RunCallable. */
#ifndef MU_TASK_MASTER_STEP_REPLY_H
#define MU_TASK_MASTER_STEP_REPLY_H

#include "lib/tensor/tensor.h"
#include "task/rpc/server.h"

/* in_body: the client requests the error in the response message, because the length of gRPC's
 * status message is limited. */
void step_reply_error(struct rpc_call *call, bool in_body, const struct mu_err *err);
/* names NULL: tensors of a callable, which have no names.  metadata: a serialized RunMetadata. */
void step_reply_tensors(struct rpc_call *call, const char *const *names,
			const struct mu_tensor *tensors, unsigned n, struct mu_span metadata);

#endif
