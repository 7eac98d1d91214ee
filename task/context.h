/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_CONTEXT_H
#define MU_TASK_CONTEXT_H

/* What the methods of both services get. */
struct task_context {
	struct worker *worker;
	struct master *master;
};

#endif
