/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the frame of each node by a topological walk: Enter leads into a frame, Exit out of it. The
 * walk also detects cycles without NextIteration. */
#include <string.h>

#include "task/runtime/exec_graph.h"

struct frame_walk {
	struct executor *e;
	uint32_t *todo, *missing, n_todo;
	bool *known;
	unsigned seen;
	uint32_t cap_frames;
};

static int frame_declare(struct frame_walk *w, struct exec_node *p, struct mu_err *err)
{
	struct executor *e = w->e;
	const char *name;
	int rc = mu_node_attr_string(p->node, "frame_name", &name, err);

	if (rc)
		return mu_append(err, "\n\t [[{{node %s}}]]", p->node->name);
	for (uint32_t i = 1; i < e->n_frames; i++)
		if (e->frames[i].parent == p->frame && strcmp(e->frames[i].name, name) == 0) {
			e->extra[p - e->nodes].child = i;
			return 0;
		}
	if (e->frames[p->frame].depth + 1 == MAX_FRAME_DEPTH)
		return mu_fail(err, MU_INVALID_ARGUMENT, "while loops nest deeper than %d at '%s'",
			       MAX_FRAME_DEPTH, p->node->name);
	if (e->n_frames == w->cap_frames) {
		struct exec_frame *grown =
		    MU_ARENA_ARRAY(&e->arena, struct exec_frame, (size_t)w->cap_frames * 2);
		memcpy(grown, e->frames, e->n_frames * sizeof *grown);
		e->frames = grown;
		w->cap_frames *= 2;
	}
	uint32_t child = e->extra[p - e->nodes].child = e->n_frames++;
	e->frames[child] = (struct exec_frame){
	    .name = name, .parent = p->frame, .depth = e->frames[p->frame].depth + 1};
	return mu_node_attr_int(p->node, "parallel_iterations", &e->frames[child].max_active, err);
}

/* Finds the frame of p's outputs. */
static int frame_after(struct frame_walk *w, struct exec_node *p, uint32_t *out, struct mu_err *err)
{
	int rc = 0;

	*out = p->frame;
	if (p->kind == NODE_ENTER) {
		rc = frame_declare(w, p, err);
		*out = exec_node_extra(w->e, p)->child;
	} else if (p->kind == NODE_EXIT || p->kind == NODE_NEXT) {
		if (p->frame == ROOT_FRAME)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Node '%s': %s outside of a while loop", p->node->name,
				       p->node->op);
		if (p->kind == NODE_EXIT)
			*out = w->e->frames[p->frame].parent;
	}
	return rc;
}

/* True if a value reaches `to` an iteration after its other inputs. */
static bool is_back_edge(const struct executor *e, uint32_t from, uint32_t to)
{
	return e->nodes[from].kind == NODE_NEXT && e->nodes[to].kind == NODE_MERGE;
}

static int visit(struct frame_walk *w, uint32_t dst, uint32_t frame, bool back, struct mu_err *err)
{
	struct exec_node *d = &w->e->nodes[dst];

	if (w->known[dst] && d->frame != frame)
		return mu_fail(err, MU_INVALID_ARGUMENT,
			       "Node '%s' has inputs from different frames of control flow",
			       d->node->name);
	d->frame = frame;
	w->known[dst] = true;
	if (!back && --w->missing[dst] == 0)
		w->todo[w->n_todo++] = dst;
	return 0;
}

static int walk_all(struct frame_walk *w, const uint32_t *start, const uint32_t *users,
		    struct mu_err *err)
{
	int rc;
	uint32_t after;

	while (w->n_todo) {
		uint32_t at = w->todo[--w->n_todo];
		struct exec_node *p = &w->e->nodes[at];
		w->seen++;
		if ((rc = frame_after(w, p, &after, err)))
			return rc;
		for (uint32_t k = start[at]; k < start[at + 1]; k++)
			if ((rc = visit(w, users[k], after, is_back_edge(w->e, at, users[k]), err)))
				return rc;
	}
	for (uint32_t i = 0; w->seen < w->e->n_nodes && i < w->e->n_nodes; i++)
		if (w->missing[i] || !w->known[i])
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Node '%s' is part of, or waits for, a cycle without a loop",
				       w->e->nodes[i].node->name);
	return 0;
}

/* Lists the users of node i in users[start[i] .. start[i+1]). */
static uint32_t *list_users(const struct executor *e, uint32_t *start)
{
	size_t total = 0;

	for (uint32_t i = 0; i < e->n_nodes; i++) {
		const struct mu_node *n = e->nodes[i].node;
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++, total++)
			start[n->inputs[k].node->id + 2]++;
	}
	for (uint32_t i = 2; i < e->n_nodes + 2; i++)
		start[i] += start[i - 1];
	uint32_t *users = MU_NEW_ARRAY(uint32_t, total + 1);
	for (uint32_t i = 0; i < e->n_nodes; i++) {
		const struct mu_node *n = e->nodes[i].node;
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
			users[start[n->inputs[k].node->id + 1]++] = i;
	}
	return users;
}

int exec_graph_find_frames(struct executor *e, struct mu_err *err)
{
	struct frame_walk w = {.e = e, .cap_frames = 4};
	uint32_t *start = MU_NEW_ARRAY(uint32_t, (size_t)e->n_nodes + 2);
	uint32_t *users = list_users(e, start);

	e->frames = MU_ARENA_ARRAY(&e->arena, struct exec_frame, w.cap_frames);
	e->n_frames = 1;
	e->frames[ROOT_FRAME].name = "";
	w.todo = MU_NEW_ARRAY(uint32_t, (size_t)e->n_nodes + 1);
	w.missing = MU_NEW_ARRAY(uint32_t, (size_t)e->n_nodes + 1);
	w.known = MU_NEW_ARRAY(bool, (size_t)e->n_nodes + 1);
	for (uint32_t i = 0; i < e->n_nodes; i++) {
		const struct mu_node *n = e->nodes[i].node;
		for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
			w.missing[i] += !is_back_edge(e, n->inputs[k].node->id, i);
		if (n->n_inputs + n->n_controls == 0) {
			w.known[i] = true;
			w.todo[w.n_todo++] = i;
		}
	}
	int rc = walk_all(&w, start, users, err);
	free(w.todo);
	free(w.missing);
	free(w.known);
	free(users);
	free(start);
	return rc;
}
