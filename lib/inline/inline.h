/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces the function calls of a graph by the bodies of the functions. */
#ifndef MU_LIB_INLINE_INLINE_H
#define MU_LIB_INLINE_INLINE_H

#include "lib/graph/library.h"

/* Inlines function calls, and lowers functional If, Case, While and For to Switch, Merge and loop
 * nodes.  Functions that kernels call themselves are not inlined. */
int mu_graph_inline(struct mu_graph *g, struct mu_err *err);
/* True if mu_graph_inline would expand n. */
bool mu_graph_is_call(const struct mu_graph *g, const struct mu_node *n);

#endif
