/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_TASK_RUNTIME_RESIDENCE_H
#define MU_TASK_RUNTIME_RESIDENCE_H

#include "lib/graph/graph.h"

struct runtime;
/* Puts copies where an edge leads from host memory to a GPU's or back.  Without GPUs: nothing. */
int residence_settle(struct mu_graph *g, struct runtime *rt, struct mu_err *err);

#endif
