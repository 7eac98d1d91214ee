/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_GRAPH_LOOPS_INTERNAL_H
#define MU_TASK_GRAPH_LOOPS_INTERNAL_H

#include "task/graph/loops.h"

enum loop_role { LOOP_NONE, LOOP_ENTER, LOOP_REF_ENTER, LOOP_EXIT, LOOP_NEXT, LOOP_CONDITION };
enum loop_role loop_role(const struct mu_node *n);
/* Fills `list` and `of`. */
int loops_find(struct loops *l, struct mu_graph *g, struct mu_err *err);

#endif
