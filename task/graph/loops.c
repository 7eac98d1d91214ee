/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the loop of each node by a topological walk of the graph: Enter leads into a loop, Exit out
 * of it, and NextIteration closes the cycle. */
#include "task/graph/loops.h"

#include <string.h>

#include "task/graph/loops_internal.h"

/* The executor rejects deeper nesting. */
enum { MAX_DEPTH = 64 };

static int enter_loop(struct loops *l, const struct mu_node *n, unsigned outer, unsigned *out,
		      struct mu_err *err)
{
	const char *name;
	struct loop *grown;
	int rc = mu_node_attr_string(n, "frame_name", &name, err);

	if (rc)
		return mu_append(err, "\n\t [[{{node %s}}]]", n->name);
	for (*out = 1; *out <= l->n; ++*out)
		if (l->list[*out].parent == outer && strcmp(l->list[*out].name, name) == 0)
			return 0;
	if (l->list[outer].depth == MAX_DEPTH)
		return mu_fail(err, MU_INVALID_ARGUMENT, "while loops nest deeper than %d at '%s'",
			       MAX_DEPTH, n->name);
	if (l->n + 1 == l->cap) {
		grown = MU_ARENA_ARRAY(&l->arena, struct loop, (size_t)l->cap * 2);
		memcpy(grown, l->list, l->cap * sizeof(*grown));
		l->list = grown;
		l->cap *= 2;
	}
	l->list[++l->n] =
	    (struct loop){.name = name, .parent = outer, .depth = l->list[outer].depth + 1};
	if (mu_node_attr_int(n, "parallel_iterations", &l->list[l->n].parallel, NULL))
		l->list[l->n].parallel = 10; /* the op's default */
	return 0;
}

/* Sets the loop of n's outputs from the loop of its inputs. */
static int set_output_loop(struct loops *l, struct mu_node *n, unsigned input_loop,
			   struct mu_err *err)
{
	unsigned *output_loop = &l->output_loop[n->id];

	*output_loop = input_loop;
	if (mu_node_has_flag(n, MU_OP_ENTER))
		return enter_loop(l, n, input_loop, output_loop, err);
	if (mu_node_has_flag(n, MU_OP_EXIT))
		*output_loop = l->list[input_loop].parent;
	if (mu_node_has_flag(n, MU_OP_LOOP_COND))
		l->list[input_loop].cond = n;
	return 0;
}

/* The order omits nodes in a cycle without NextIteration; the executor rejects these. */
int loops_find(struct loops *l, struct mu_graph *g, struct mu_err *err)
{
	struct mu_node **order = MU_ARENA_ARRAY(&l->arena, struct mu_node *, g->n_nodes + 1);
	unsigned n_order = mu_graph_order(g, 0, order, &l->arena);

	for (unsigned i = 0; i < n_order; i++) {
		const struct mu_node *n = order[i];
		/* the innermost loop of n's inputs; a NextIteration is not visited yet: 0 */
		unsigned input_loop = 0;
		int rc;

		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
			unsigned from = l->output_loop[n->inputs[k].node->id];

			if (l->list[from].depth > l->list[input_loop].depth)
				input_loop = from;
		}
		rc = set_output_loop(l, order[i], input_loop, err);
		if (rc)
			return rc;
	}
	return 0;
}

unsigned loop_of_outputs(const struct loops *l, const struct mu_node *n)
{
	return n->id < l->n_nodes ? l->output_loop[n->id] : 0;
}

void loops_fini(struct loops *l)
{
	mu_map_fini(&l->pivots);
	mu_arena_fini(&l->arena);
}
