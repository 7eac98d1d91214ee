/* SPDX-License-Identifier: Apache-2.0 */
/* Marks ops for which a singular matrix is an error in the client's version of TensorFlow.  Later
 * versions return NaN. */
#include <string.h>

#include "task/graph/graph_passes.h"
#include "task/kernels/engine/kernel_table.h"

enum { LAST_PRODUCER_THAT_FAILS = 561 }; /* the GraphDef version of TensorFlow 2.4 */

void graph_mark_singular_errors(struct mu_graph *g)
{
	if (g->producer <= 0 || g->producer > LAST_PRODUCER_THAT_FAILS)
		return;
	for (unsigned i = 0; i < g->n_nodes; i++) {
		struct mu_node *n = g->nodes[i];
		if (!strcmp(n->op, "Cholesky") || !strcmp(n->op, "MatrixTriangularSolve") ||
		    !strcmp(n->op, "TridiagonalSolve"))
			mu_node_set_bool(g, n, SINGULAR_ERROR_ATTR, true);
	}
}
