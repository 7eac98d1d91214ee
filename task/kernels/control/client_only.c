/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that only work in the client's process: Python functions, and tensors kept in a session
 * without a server. Neither exists in a task of a cluster, in TensorFlow or here. Clients compare
 * the error's text. */
#include <string.h>

#include "task/kernels/engine/args.h"
#include "task/kernels/engine/kernel_table.h"

static int python_function(struct kernel_call *c, struct mu_err *err)
{
	return mu_invalid(
	    err,
	    "ValueError: Could not find callback with key=%.64s in the registry. A Python function "
	    "runs in the process that defined it alone, and not in a task",
	    args_attr_string(c->node, "token", ""));
}

static int session_state(struct kernel_call *c, struct mu_err *err)
{
	size_t n = strlen(c->node->op), v2 = strcmp(c->node->op + n - 2, "V2") ? 0 : 2;

	return mu_fail(err, MU_FAILED_PRECONDITION, "%.*s called on null session state",
		       (int)(n - v2), c->node->op);
}

static const struct kernel rows[] = {
    {"PyFunc PyFuncStateless EagerPyFunc", KERNEL_NO_FOLD, .run = python_function},
    {"GetSessionHandle GetSessionHandleV2 GetSessionTensor DeleteSessionTensor", KERNEL_NO_FOLD,
     .run = session_state},
};
KERNEL_TABLE(control_client_only, rows)
