/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_GRAPH_GRAPH_INDEX_H
#define MU_GRAPH_GRAPH_INDEX_H

#include "lib/graph/graph.h"

struct mu_node *mu_graph_index_find(struct mu_graph *g, const char *name, size_t len);
/* A new node; both strings are in the arena, and nobody has the name. */
struct mu_node *mu_graph_append(struct mu_graph *g, const char *name, const char *op);
/* A NodeDef; its input texts, ended by an empty one, wait in the new node's `user`.  Fails on a
 * name that is taken. */
int mu_graph_parse_node(struct mu_graph *g, struct mu_span proto, size_t *budget,
			struct mu_err *err);
/* After nodes were taken out. */
void mu_graph_index_reset(struct mu_graph *g);

#endif
