/* SPDX-License-Identifier: Apache-2.0 */
/* Ops on tensors that a session without a server stores.  A task of a cluster does not support
 * them, neither in TensorFlow nor here.  Clients compare the error's text. */
#include <string.h>

#include "task/kernels/engine/kernel_table.h"

static int session_state(struct kernel_call *c, struct mu_err *err)
{
	size_t n = strlen(c->node->op), v2 = strcmp(c->node->op + n - 2, "V2") ? 0 : 2;

	return mu_fail(err, MU_FAILED_PRECONDITION, "%.*s called on null session state",
		       (int)(n - v2), c->node->op);
}

static const struct kernel rows[] = {
    {"GetSessionHandle GetSessionHandleV2 GetSessionTensor DeleteSessionTensor", KERNEL_NO_FOLD,
     .run = session_state},
};
KERNEL_TABLE(control_session_tensor, rows)
