/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of a graph (TensorFlow's FunctionDefLibrary).
 *
 * The signature of a function is the op definition of its calls.  The body is converted to a graph
 * on demand.  A library is immutable: extending it makes a new one that references the old one, so
 * several graphs may share it.
 */
#ifndef MU_LIB_GRAPH_LIBRARY_H
#define MU_LIB_GRAPH_LIBRARY_H

#include "lib/graph/graph.h"

struct mu_function {
	const char *name;
	struct mu_op_def def;
	struct mu_span proto; /* the FunctionDef */
};

struct mu_library *mu_library_ref(struct mu_library *l); /* NULL stays NULL */
void mu_library_unref(struct mu_library *l);
/* Replaces *l by a library that has these functions too.  Fails if a different function has the
 * same name. */
int mu_library_extend(struct mu_library **l, struct mu_span library, struct mu_err *err);
void mu_library_write(const struct mu_library *l, struct mu_buf *out); /* a FunctionDefLibrary */

const struct mu_function *mu_library_find(const struct mu_library *l, const char *name);
/* Returns the gradient function of the function `name`, or NULL. */
const struct mu_function *mu_library_gradient(const struct mu_library *l, const char *name);

/* Returns the function's body for these attributes as a new graph, with an _Arg for each input and
 * a _Retval for each output; both have their number in `index`.  The last node is a NoOp whose
 * control inputs are the nodes that must run before the call ends.  only_outputs: these are only
 * the function's control outputs, and other stateful nodes run only if an output depends on them.
 */
int mu_library_instantiate(struct mu_library *l, const struct mu_function *f,
			   const struct mu_node_attr *attrs, unsigned n_attrs, bool only_outputs,
			   struct mu_graph **out, struct mu_err *err);
/* Removes the nodes of a body on which no output depends, nor the last node, nor a node of `roots`.
 * roots: (optional) array by node id. */
void mu_body_prune(struct mu_graph *body, const bool *roots, struct mu_arena *scratch);

#endif
