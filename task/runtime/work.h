/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's work on a step: work_begin, push ready nodes or finish a call, work_run.  work_run
 * releases the count in step->outstanding that the thread has. */
#ifndef MU_TASK_RUNTIME_WORK_H
#define MU_TASK_RUNTIME_WORK_H

#include "task/runtime/exec_graph.h"

void work_begin(struct work *w, struct step *s, bool on_io_thread);
void work_reserve(struct work *w, unsigned cap);
void work_run(struct work *w);

#endif
