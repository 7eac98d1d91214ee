/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the frame of each node in topological order: Enter leads into a frame, Exit out of it. */
#include <string.h>

#include "task/runtime/exec_graph.h"

struct frame_walk {
	struct executor *e;
	uint32_t *output_frame; /* by node id: the frame of its outputs */
	uint32_t cap_frames;
};

static int find_or_add_frame(struct frame_walk *w, struct exec_node *p, struct mu_err *err)
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
	if (e->frames[p->frame].depth == MAX_FRAME_DEPTH)
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
static int find_output_frame(struct frame_walk *w, struct exec_node *p, uint32_t *out,
			     struct mu_err *err)
{
	int rc = 0;

	*out = p->frame;
	if (p->kind == NODE_ENTER) {
		rc = find_or_add_frame(w, p, err);
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

/* Checks that the inputs of n over back edges, or all other inputs, come from its frame. */
static int check_frame(const struct frame_walk *w, const struct mu_node *n, bool is_back_edge,
		       struct mu_err *err)
{
	for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++) {
		const struct mu_node *from = n->inputs[k].node;
		if (mu_edge_is_back(from, n) == is_back_edge &&
		    w->output_frame[from->id] != w->e->nodes[n->id].frame)
			return mu_fail(err, MU_INVALID_ARGUMENT,
				       "Node '%s' has inputs from different frames of control flow",
				       n->name);
	}
	return 0;
}

static uint32_t frame_of_inputs(const struct frame_walk *w, const struct mu_node *n)
{
	for (unsigned k = 0; k < n->n_inputs + n->n_controls; k++)
		if (!mu_edge_is_back(n->inputs[k].node, n))
			return w->output_frame[n->inputs[k].node->id];
	return ROOT_FRAME;
}

static int find_frames(struct frame_walk *w, struct mu_node *const *order, unsigned n_order,
		       struct mu_err *err)
{
	for (unsigned i = 0; i < n_order; i++) {
		struct exec_node *p = &w->e->nodes[order[i]->id];
		p->frame = frame_of_inputs(w, p->node);
		MU_RETURN_IF_ERROR(check_frame(w, p->node, false, err));
		MU_RETURN_IF_ERROR(find_output_frame(w, p, &w->output_frame[p->node->id], err));
	}
	for (unsigned i = 0; i < n_order; i++)
		MU_RETURN_IF_ERROR(check_frame(w, order[i], true, err));
	return 0;
}

static int fail_cycle(const struct mu_graph *g, struct mu_node *const *order, unsigned n_order,
		      struct mu_arena *scratch, struct mu_err *err)
{
	bool *ordered = MU_ARENA_ARRAY(scratch, bool, g->n_nodes);
	unsigned i = 0;

	for (unsigned k = 0; k < n_order; k++)
		ordered[order[k]->id] = true;
	while (ordered[i])
		i++;
	return mu_fail(err, MU_INVALID_ARGUMENT,
		       "Node '%s' is part of, or waits for, a cycle without a loop",
		       g->nodes[i]->name);
}

int exec_graph_find_frames(struct executor *e, struct mu_err *err)
{
	struct frame_walk w = {.e = e, .cap_frames = 4};
	MU_AUTO_ARENA scratch = {0};
	struct mu_node **order;
	unsigned n_order;

	e->frames = MU_ARENA_ARRAY(&e->arena, struct exec_frame, w.cap_frames);
	e->n_frames = 1;
	e->frames[ROOT_FRAME].name = "";
	w.output_frame = MU_ARENA_ARRAY(&scratch, uint32_t, e->n_nodes);
	order = MU_ARENA_ARRAY(&scratch, struct mu_node *, e->n_nodes);
	n_order = mu_graph_order(e->graph, 0, order, &scratch);
	MU_RETURN_IF_ERROR(find_frames(&w, order, n_order, err));
	return n_order < e->n_nodes ? fail_cycle(e->graph, order, n_order, &scratch, err) : 0;
}
