/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of the builder, for client/ only. */
#ifndef CLIENT_BUILDER_H
#define CLIENT_BUILDER_H

#include "muster/graph.h"

/* What is known about one node, by its id. */
struct builder_node {
	unsigned n_out;
	enum mu_dtype *types;
	struct mu_pshape *shapes;
	const struct mu_tensor *value; /* of a Const */
};

struct builder_list {
	void **items;
	unsigned n, cap;
};
void builder_list_push(struct builder_list *l, void *item);
static inline void *builder_list_top(const struct builder_list *l)
{
	return l->n ? l->items[l->n - 1] : NULL;
}

struct mu_builder {
	struct mu_graph *graph;
	struct mu_err err; /* the first; code 0: none */
	struct builder_node *info;
	unsigned n_info, cap_info;
	struct mu_map names;          /* base name -> how often it was taken */
	struct builder_list devices;  /* merged device strings, in the graph's arena */
	struct builder_list scopes;   /* "outer/inner/" */
	struct builder_list controls; /* struct control_scope */
	struct builder_list vars;     /* struct mu_var */
	unsigned ps_tasks, next_ps;
	int64_t *ps_bytes; /* what each holds, if the one with least is next; NULL: in turn */
	const char *worker_device;
	struct mu_var *global_step;
	struct mu_builder *around;     /* of a function: that of what uses it; else NULL */
	struct builder_list functions; /* struct mu_fn, of the outermost */
	const char
	    *gradients; /* the scope of the gradients that are being made, within functions too */
};

static inline bool builder_failed(const struct mu_builder *b)
{
	return b->err.code != MU_OK;
}
/* Known value of an output that is a constant, else NULL. */
const struct mu_tensor *builder_value(const struct mu_builder *b, struct mu_out o);
/* Nothing for an output that there is not. */
void builder_set_shape(struct mu_builder *b, struct mu_out o, const struct mu_pshape *shape);
/* Merges two device names field by field; inner wins.  In the graph's arena. */
const char *builder_merge_device(struct mu_builder *b, const char *outer, const char *inner);
/* Control inputs of all open scopes. */
void builder_add_controls(struct mu_builder *b, struct mu_node *n);
/* A name that is free, within the name scopes. */
const char *builder_name(struct mu_builder *b, const char *want);

#endif
