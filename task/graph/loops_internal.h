/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_GRAPH_LOOPS_INTERNAL_H
#define MU_TASK_GRAPH_LOOPS_INTERNAL_H

#include "task/graph/loops.h"

/* Fills `list` and `output_loop`. */
int loops_find(struct loops *l, struct mu_graph *g, struct mu_err *err);

#endif
