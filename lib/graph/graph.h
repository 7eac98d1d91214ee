/* SPDX-License-Identifier: Apache-2.0 */
/* The in-memory graph, used to build, parse, partition and execute graphs.
 *
 * Nodes, names and attributes are in the graph's arena.  A node's inputs are pointers: data inputs
 * first, then control inputs.  Parsing checks names, duplicates, counts and depth.  Ops and
 * attributes are checked later, only for the nodes that a step needs, so a graph may contain ops
 * that are not supported.
 */
#ifndef MU_LIB_GRAPH_GRAPH_H
#define MU_LIB_GRAPH_GRAPH_H

#include "lib/base/map.h"
#include "lib/graph/attr.h"
#include "lib/ops/op_def.h"

enum { MU_CONTROL = -1 }; /* port of a control edge */

struct mu_input {
	struct mu_node *node;
	int port;
};

struct mu_node {
	const char *name;
	const char *op;
	const struct mu_op_def *def; /* NULL: unknown op */
	const char *device;          /* requested or assigned; "": no request */
	unsigned id;                 /* index in graph->nodes */
	unsigned n_inputs;           /* data inputs */
	unsigned n_controls;
	struct mu_input *inputs; /* n_inputs + n_controls */
	unsigned cap_inputs;     /* capacity of inputs; 0: exactly the number of inputs */
	unsigned n_attrs;
	struct mu_node_attr *attrs;
	bool must_run; /* even if no other node depends on it */
	void *user;    /* scratch of the current pass */
};

struct mu_library; /* library.h */

struct mu_graph_index { /* graph_index.c */
	struct slot *slots;
	unsigned cap, n_indexed;
	uint64_t seed;
};

struct mu_graph {
	struct mu_arena arena;
	struct mu_node **nodes;
	unsigned n_nodes, cap_nodes;
	struct mu_graph_index index;
	int producer;
	struct mu_library *library; /* functions; NULL: none */
};

struct mu_graph *mu_graph_new(void);
void mu_graph_free(struct mu_graph *g);
MU_AUTO_DEFINE(mu_graph_free, struct mu_graph)

/* Adds the nodes of a serialized GraphDef.  On failure the graph is unchanged. */
int mu_graph_parse(struct mu_graph *g, struct mu_span graph_def, struct mu_err *err);
void mu_graph_write(const struct mu_graph *g, struct mu_buf *out); /* a GraphDef */
/* Writes a GraphDef of the nodes [from, n_nodes), as for ExtendSession. */
void mu_graph_write_from(const struct mu_graph *g, unsigned from, struct mu_buf *out);

/* Writes the attributes of a NodeDef.  `internal`: also attributes such as _class, which no op
 * declares. */
void mu_node_write_attrs(const struct mu_node *n, bool internal, struct mu_buf *out);

/* Adds a node and copies its strings.  INVALID_ARGUMENT if the name is in use. */
int mu_graph_add(struct mu_graph *g, const char *name, const char *op, struct mu_node **out,
		 struct mu_err *err);
/* Adds a node with data inputs on a device.  Appends "_" to a name in use. */
struct mu_node *mu_graph_add_unique(struct mu_graph *g, const char *name, const char *op,
				    const char *device, const struct mu_input *data,
				    unsigned n_data);
void mu_node_set_inputs(struct mu_graph *g, struct mu_node *n, const struct mu_input *data,
			unsigned n_data, const struct mu_input *controls, unsigned n_controls);
void mu_node_add_control(struct mu_graph *g, struct mu_node *n, struct mu_node *from);
void mu_node_set_device(struct mu_graph *g, struct mu_node *n, const char *device);
void mu_node_set_attr(struct mu_graph *g, struct mu_node *n, const char *name,
		      const struct mu_attr *value); /* deep copy into g */
void mu_node_set_int(struct mu_graph *g, struct mu_node *n, const char *name, int64_t value);
void mu_node_set_bool(struct mu_graph *g, struct mu_node *n, const char *name, bool value);
void mu_node_set_string(struct mu_graph *g, struct mu_node *n, const char *name, const char *value);
/* Sets the base type of a reference type. */
void mu_node_set_type(struct mu_graph *g, struct mu_node *n, const char *name, enum mu_dtype type);
static inline bool mu_node_has_flag(const struct mu_node *n, unsigned flags) /* any of them */
{
	return n->def && (n->def->flags & flags);
}
bool mu_node_is_constant(const struct mu_node *n); /* a Const without control inputs */
/* Copies node n, without inputs, to graph `to`, which must not have a node of that name. */
struct mu_node *mu_graph_copy_node(struct mu_graph *to, const struct mu_node *n);
struct mu_node *mu_graph_copy_node_as(struct mu_graph *to, const struct mu_node *n,
				      const char *name);

/* Also marks all nodes on which the nodes with marked[id] depend. */
void mu_graph_mark_inputs(const struct mu_graph *g, bool *marked);
/* True if the edge closes a loop: a Merge takes the value of NextIteration an iteration later. */
bool mu_edge_is_back(const struct mu_node *from, const struct mu_node *to);
/* Writes the nodes with ids >= first to `order`, in topological order without such edges, and
 * returns their number.  Omits nodes that depend on any other cycle. */
unsigned mu_graph_order(const struct mu_graph *g, unsigned first, struct mu_node **order,
			struct mu_arena *scratch);
/* Removes the nodes for which keep[id] is false.  The remaining nodes must not use them. */
void mu_graph_keep(struct mu_graph *g, const bool *keep);

/* Finds a node by name.  The first call after an addition of nodes updates the index, so it is
 * not thread-safe. */
struct mu_node *mu_graph_find(const struct mu_graph *g, const char *name);
/* Converts "name", "name:2" or "^name" to node and port. */
int mu_graph_resolve(const struct mu_graph *g, const char *text, struct mu_input *out,
		     struct mu_err *err);

/* NOT_FOUND if the node's op is unknown. */
int mu_node_need_def(const struct mu_node *n, struct mu_err *err);

/* Attributes.  mu_node_attr returns the node's value, else the op's default, else NULL. */
const struct mu_attr *mu_node_attr(const struct mu_node *n, const char *name);
int mu_node_attr_int(const struct mu_node *n, const char *name, int64_t *out, struct mu_err *err);
int mu_node_attr_float(const struct mu_node *n, const char *name, float *out, struct mu_err *err);
int mu_node_attr_bool(const struct mu_node *n, const char *name, bool *out, struct mu_err *err);
int mu_node_attr_type(const struct mu_node *n, const char *name, enum mu_dtype *out,
		      struct mu_err *err);
int mu_node_attr_string(const struct mu_node *n, const char *name, const char **out,
			struct mu_err *err);

#endif
