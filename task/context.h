/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_CONTEXT_H
#define MU_TASK_CONTEXT_H

/* The context argument of the RPC methods of the master and worker services. */
struct task_context {
	struct worker *worker;
	struct master *master;
};

#endif
