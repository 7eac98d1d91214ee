/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MU_LIB_GRAPH_GRAPH_INDEX_H
#define MU_LIB_GRAPH_GRAPH_INDEX_H

#include "lib/graph/graph.h"

struct mu_node *mu_graph_index_find(struct mu_graph *g, const char *name, size_t len);
/* Adds a node.  Both strings must be in the arena, and the name must be unused. */
struct mu_node *mu_graph_append(struct mu_graph *g, const char *name, const char *op);
/* Parses a NodeDef.  Sets `user` of the new node to the texts of its inputs, terminated by an
 * empty span.  Fails if the name is in use. */
int mu_graph_parse_node(struct mu_graph *g, struct mu_span proto, size_t *budget,
			struct mu_err *err);
/* Parses the number of an output, without a sign.  Returns false if the span is not a number.  The
 * span may lack a NUL, as in a message. */
bool mu_parse_port(struct mu_span digits, int *port);
/* Empties the index, after nodes were removed. */
void mu_graph_index_reset(struct mu_graph *g);

#endif
