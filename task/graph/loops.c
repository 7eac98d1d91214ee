/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the loop of each node by a topological walk of the graph: Enter leads into a loop, Exit out
 * of it, and NextIteration closes the cycle. */
#include "task/graph/loops.h"

#include <string.h>

#include "task/graph/loops_internal.h"

/* The executor rejects deeper nesting. */
enum { MAX_DEPTH = 64 };

static const struct {
	const char *op;
	enum loop_role role;
} roles[] = {
    {"Enter", LOOP_ENTER},        {"RefEnter", LOOP_REF_ENTER}, {"Exit", LOOP_EXIT},
    {"RefExit", LOOP_EXIT},       {"NextIteration", LOOP_NEXT}, {"RefNextIteration", LOOP_NEXT},
    {"LoopCond", LOOP_CONDITION},
};

enum loop_role loop_role(const struct mu_node *n)
{
	for (unsigned i = 0; i < MU_COUNT(roles); i++)
		if (strcmp(n->op, roles[i].op) == 0)
			return roles[i].role;
	return LOOP_NONE;
}

static int enter_loop(struct loops *l, const struct mu_node *n, unsigned outer, unsigned *out,
		      struct mu_err *err)
{
	const char *name;
	struct loop *more;
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
		more = MU_ARENA_ARRAY(&l->arena, struct loop, (size_t)l->cap * 2);
		memcpy(more, l->list, l->cap * sizeof(*more));
		l->list = more;
		l->cap *= 2;
	}
	l->list[++l->n] =
	    (struct loop){.name = name, .parent = outer, .depth = l->list[outer].depth + 1};
	if (mu_node_attr_int(n, "parallel_iterations", &l->list[l->n].parallel, NULL))
		l->list[l->n].parallel = 10; /* the op's default */
	return 0;
}

/* Sets the loop of n's outputs from `in`, the loop of its inputs. */
static int set_output_loop(struct loops *l, struct mu_node *n, unsigned in, struct mu_err *err)
{
	unsigned *output_loop = &l->output_loop[n->id];

	*output_loop = in;
	switch (loop_role(n)) {
	case LOOP_ENTER:
	case LOOP_REF_ENTER:
		return enter_loop(l, n, in, output_loop, err);
	case LOOP_EXIT:
		*output_loop = l->list[in].parent;
		return 0;
	case LOOP_CONDITION:
		l->list[in].cond = n;
		return 0;
	default:
		return 0;
	}
}

struct users {
	unsigned *start, *list;
};

static struct users users_of(const struct mu_graph *g, struct mu_arena *a)
{
	struct users u = {.start = MU_ARENA_ARRAY(a, unsigned, (size_t)g->n_nodes + 2)};

	for (unsigned i = 0; i < g->n_nodes; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs + g->nodes[i]->n_controls; k++)
			u.start[g->nodes[i]->inputs[k].node->id + 2]++;
	for (unsigned i = 2; i < g->n_nodes + 2; i++)
		u.start[i] += u.start[i - 1];
	u.list = MU_ARENA_ARRAY(a, unsigned, (size_t)u.start[g->n_nodes + 1] + 1);
	for (unsigned i = 0; i < g->n_nodes; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs + g->nodes[i]->n_controls; k++)
			u.list[u.start[g->nodes[i]->inputs[k].node->id + 1]++] = i;
	return u;
}

/* The walk does not reach nodes in a cycle without NextIteration; the executor rejects these. */
int loops_find(struct loops *l, struct mu_graph *g, struct mu_err *err)
{
	struct users u = users_of(g, &l->arena);
	unsigned *missing = MU_ARENA_ARRAY(&l->arena, unsigned, g->n_nodes);
	unsigned *in = MU_ARENA_ARRAY(&l->arena, unsigned, g->n_nodes);
	unsigned *todo = MU_ARENA_ARRAY(&l->arena, unsigned, g->n_nodes), n_todo = 0;
	int rc;

	for (unsigned i = 0; i < g->n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
			missing[i] += loop_role(n->inputs[k].node) != LOOP_NEXT;
		if (!missing[i])
			todo[n_todo++] = i;
	}
	while (n_todo) {
		unsigned at = todo[--n_todo];
		rc = set_output_loop(l, g->nodes[at], in[at], err);
		if (rc)
			return rc;
		if (loop_role(g->nodes[at]) == LOOP_NEXT)
			continue;
		for (unsigned k = u.start[at]; k < u.start[at + 1]; k++) {
			unsigned user = u.list[k];
			if (l->list[l->output_loop[at]].depth > l->list[in[user]].depth)
				in[user] = l->output_loop[at];
			if (--missing[user] == 0)
				todo[n_todo++] = user;
		}
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
