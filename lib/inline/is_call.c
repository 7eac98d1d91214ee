/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "lib/inline/inline.h"

static const char *const call_ops[] = {
#define INLINED(op, expand) #op,
#include "lib/inline/inlined.def"
#undef INLINED
};

bool mu_graph_is_call(const struct mu_graph *g, const struct mu_node *n)
{
	if (!g->library)
		return false;
	for (unsigned i = 0; i < MU_COUNT(call_ops); i++)
		if (strcmp(call_ops[i], n->op) == 0)
			return true;
	return !mu_op_find(n->op) && mu_library_find(g->library, n->op);
}
