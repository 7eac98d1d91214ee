/* SPDX-License-Identifier: Apache-2.0 */
/* Internal state of struct mu_builder, for lib/builder, lib/grad and client/ only. */
#ifndef MU_LIB_BUILDER_BUILDER_H
#define MU_LIB_BUILDER_BUILDER_H

#include "muster/graph.h"

/* Static information on one node; the table is indexed by node id. */
struct builder_node {
	unsigned n_out;
	enum mu_dtype *types;
	struct mu_pshape *shapes;
	const struct mu_tensor *value; /* value of a Const node, else NULL */
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
	struct mu_err err; /* the first error; code 0: none */
	struct builder_node *info;
	unsigned n_info, cap_info;
	struct mu_map names;          /* base name -> number of nodes with this base name */
	struct builder_list devices;  /* merged device strings, in the graph's arena */
	struct builder_list scopes;   /* "outer/inner/" */
	struct builder_list controls; /* struct control_scope */
	struct builder_list vars;     /* struct mu_var */
	unsigned ps_tasks, next_ps;
	int64_t *ps_bytes; /* bytes placed on each ps task; NULL: round-robin placement */
	const char *worker_device;
	struct mu_var *global_step;
	struct mu_builder
	    *outer; /* builder that encloses this function's builder; NULL for a graph */
	struct builder_list functions; /* struct mu_fn; only the outermost builder has them */
	const char
	    *gradients; /* name scope of the mu_gradients call in progress, also inside functions */
};

static inline bool builder_failed(const struct mu_builder *b)
{
	return b->err.code != MU_OK;
}
/* Fails unless o is an output of a node of b's graph. */
int builder_check_out(const struct mu_builder *b, struct mu_out o, struct mu_err *err);
/* Fails unless n is a node of b's graph. */
int builder_check_node(const struct mu_builder *b, const struct mu_node *n, struct mu_err *err);
/* Returns the value of a constant output, else NULL. */
const struct mu_tensor *builder_value(const struct mu_builder *b, struct mu_out o);
/* Has no effect if o is MU_NO_OUT. */
void builder_set_shape(struct mu_builder *b, struct mu_out o, const struct mu_pshape *shape);
/* A scalar constant, or a cast of one, of any numeric type. */
struct mu_out builder_number(struct mu_builder *b, enum mu_dtype type, double v);
/* Merges two device names field by field; inner fields win. The result is in the graph's arena. */
const char *builder_merge_device(struct mu_builder *b, const char *outer, const char *inner);
/* Adds the control inputs of all open scopes to n. */
void builder_add_controls(struct mu_builder *b, struct mu_node *n);
/* Returns an unused node name with the prefix of the open name scopes. */
const char *builder_name(struct mu_builder *b, const char *want);

#endif
