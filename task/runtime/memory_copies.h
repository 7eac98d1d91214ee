/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_RUNTIME_MEMORY_COPIES_H
#define MU_TASK_RUNTIME_MEMORY_COPIES_H

#include "lib/graph/graph.h"

struct runtime;
/* Inserts copies where an edge crosses memory spaces.  Has no effect without devices. */
int memory_copies_insert(struct mu_graph *g, struct runtime *rt, struct mu_err *err);

#endif
