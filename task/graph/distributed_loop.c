/* SPDX-License-Identifier: Apache-2.0 */
/* While loops whose body spans several tasks.
 *
 * A tensor that crosses tasks within the body is received once per iteration, so both tasks must
 * iterate.  As in TensorFlow, each of the two tasks gets a control loop without computation:
 *
 *	Const -> Enter -> Merge -> Switch(the real loop's condition) -> NextIteration -> Merge
 *
 * Its Merge, the pivot, runs once per iteration and starts the receives of the iteration.  In
 * nested loops the outer pivot starts the Const of the inner control loop.
 *
 * Enter and NextIteration have no output in some iterations, and Exit has one only in the last.  So
 * none of them may be on a task that would have to send its output. */
#include <string.h>

#include "lib/graph/device_name.h"
#include "task/graph/loops_internal.h"

/* ---- devices of Enter, Exit and NextIteration ---- */

static void move_node(struct mu_graph *g, struct mu_node *n, const char *device)
{
	if (strcmp(n->device, device) != 0)
		mu_node_set_device(g, n, device);
}

/* Moves Enter and NextIteration to the device of their users if these share one, and Exit to the
 * device of its input. */
static void move_loop_ends(struct mu_graph *g, struct mu_arena *a)
{
	const char **device = MU_ARENA_ARRAY(a, const char *, g->n_nodes);
	bool *has_several = MU_ARENA_ARRAY(a, bool, g->n_nodes);

	for (unsigned i = 0; i < g->n_nodes; i++)
		if (mu_node_has_flag(g->nodes[i], MU_OP_EXIT) && g->nodes[i]->n_inputs)
			move_node(g, g->nodes[i], g->nodes[i]->inputs[0].node->device);
	for (unsigned i = 0; i < g->n_nodes; i++)
		for (unsigned k = 0; k < g->nodes[i]->n_inputs; k++) {
			unsigned from = g->nodes[i]->inputs[k].node->id;
			if (device[from] && strcmp(device[from], g->nodes[i]->device) != 0)
				has_several[from] = true;
			device[from] = g->nodes[i]->device;
		}
	for (unsigned i = 0; i < g->n_nodes; i++)
		if (mu_node_has_flag(g->nodes[i], MU_OP_ENTER | MU_OP_NEXT_ITERATION) &&
		    strcmp(g->nodes[i]->op, "RefEnter") != 0 && device[i] && !has_several[i])
			move_node(g, g->nodes[i], device[i]);
}

/* ---- control loops ---- */

static void pivot_key(struct mu_buf *b, unsigned loop, const char *device)
{
	mu_buf_put(b, &loop, sizeof(loop));
	mu_buf_put(b, device, mu_device_task_len(device));
}

struct mu_node *loops_pivot(const struct loops *l, unsigned i, const char *device)
{
	MU_AUTO_BUF key = {0};

	pivot_key(&key, i, device);
	return mu_map_get_n(&l->pivots, key.data, key.len);
}

static struct mu_node *loop_add_node(struct mu_graph *g, const struct loop *loop, const char *op,
				     const char *device, const char *type_attr)
{
	MU_AUTO_BUF name = {0};
	struct mu_node *n;

	mu_buf_printf(&name, "%s/_%s_%u", loop->cond->name, op, g->n_nodes);
	n = mu_graph_add_unique(g, name.data, op, device, NULL, 0);
	mu_node_set_type(g, n, type_attr, MU_INT32);
	return n;
}

static int add_start(struct mu_graph *g, const struct loop *loop, const char *device,
		     struct mu_node **out, struct mu_err *err)
{
	MU_AUTO_TENSOR zero = {0};
	struct mu_attr value = {.kind = MU_ATTR_TENSOR, .tensor = &zero};
	int32_t v = 0;
	int rc = mu_tensor_scalar(&zero, MU_INT32, &v, err);

	if (rc)
		return rc;
	*out = loop_add_node(g, loop, "Const", device, "dtype");
	mu_node_set_attr(g, *out, "value", &value);
	return 0;
}

/* outer: the pivot of the enclosing loop, or NULL. */
static int add_control_loop(struct mu_graph *g, const struct loop *loop, const char *device,
			    struct mu_node *outer, struct mu_node **pivot, struct mu_err *err)
{
	struct mu_node *start = NULL, *enter, *merge, *switch_node, *next;
	int rc = add_start(g, loop, device, &start, err);

	if (rc)
		return rc;
	if (outer)
		mu_node_add_control(g, start, outer);
	enter = loop_add_node(g, loop, "Enter", device, "T");
	merge = loop_add_node(g, loop, "Merge", device, "T");
	switch_node = loop_add_node(g, loop, "Switch", device, "T");
	next = loop_add_node(g, loop, "NextIteration", device, "T");
	mu_node_set_string(g, enter, "frame_name", loop->name);
	mu_node_set_bool(g, enter, "is_constant", false);
	mu_node_set_int(g, enter, "parallel_iterations", loop->parallel);
	mu_node_set_int(g, merge, "N", 2);
	mu_node_set_inputs(g, enter, &(struct mu_input){start, 0}, 1, NULL, 0);
	mu_node_set_inputs(g, merge, (struct mu_input[]){{enter, 0}, {next, 0}}, 2, NULL, 0);
	mu_node_set_inputs(g, switch_node, (struct mu_input[]){{merge, 0}, {loop->cond, 0}}, 2,
			   NULL, 0);
	mu_node_set_inputs(g, next, &(struct mu_input){switch_node, 1}, 1, NULL, 0);
	*pivot = merge;
	return 0;
}

/* Finds or adds the control loop of loop i, and of its enclosing loops, on the task of `device`. */
static int get_control_loop(struct loops *l, struct mu_graph *g, unsigned i, const char *device,
			    struct mu_node **pivot, struct mu_err *err)
{
	MU_AUTO_BUF key = {0};
	struct mu_node *outer = NULL;
	int rc = 0;

	*pivot = loops_pivot(l, i, device);
	if (*pivot)
		return 0;
	if (!l->list[i].cond)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "the loop '%s' spans tasks and has no LoopCond", l->list[i].name);
	if (l->list[i].parent) /* the recursion is bounded by MAX_DEPTH of loops.c */
		rc = get_control_loop(l, g, l->list[i].parent, device, &outer, err);
	if (!rc)
		rc = add_control_loop(g, &l->list[i], device, outer, pivot, err);
	if (rc)
		return rc;
	pivot_key(&key, i, device);
	mu_map_put_n(&l->pivots, key.data, key.len, *pivot);
	return 0;
}

/* Adds control loops on both tasks of each edge that crosses tasks within a loop. */
static int add_control_loops(struct loops *l, struct mu_graph *g, struct mu_err *err)
{
	unsigned n_nodes = g->n_nodes;
	struct mu_node *pivot;
	int rc;

	for (unsigned i = 0; i < n_nodes; i++) {
		const struct mu_node *n = g->nodes[i];
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
			const struct mu_node *from = n->inputs[k].node;
			unsigned loop = l->output_loop[from->id];
			if (!loop || mu_device_same_task(from->device, n->device))
				continue;
			if ((rc = get_control_loop(l, g, loop, from->device, &pivot, err)) ||
			    (rc = get_control_loop(l, g, loop, n->device, &pivot, err)))
				return rc;
		}
	}
	return 0;
}

int loops_distribute(struct loops *l, struct mu_graph *g, struct mu_err *err)
{
	bool has_loops = false;
	int rc;

	*l = (struct loops){.cap = 8};
	mu_arena_init(&l->arena);
	mu_map_init(&l->pivots);
	for (unsigned i = 0; i < g->n_nodes && !has_loops; i++)
		has_loops = mu_node_has_flag(g->nodes[i], MU_OP_LOOP);
	if (!has_loops)
		return 0;
	l->list = MU_ARENA_ARRAY(&l->arena, struct loop, l->cap);
	l->output_loop = MU_ARENA_ARRAY(&l->arena, unsigned, g->n_nodes);
	l->n_nodes = g->n_nodes;
	move_loop_ends(g, &l->arena);
	rc = loops_find(l, g, err);
	return rc ? rc : add_control_loops(l, g, err);
}
