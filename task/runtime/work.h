/* SPDX-License-Identifier: Apache-2.0 */
/* A thread's turn on a step: begin, push or finish something, run.  Run gives back the one unit of
 * step->outstanding that the thread came with. */
#ifndef MU_TASK_RUNTIME_WORK_H
#define MU_TASK_RUNTIME_WORK_H

#include "task/runtime/plan.h"

void work_begin(struct work *w, struct step *s, bool guest);
void work_reserve(struct work *w, unsigned cap);
void work_run(struct work *w);

#endif
