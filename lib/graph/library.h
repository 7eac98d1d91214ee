/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that a graph brings along (TensorFlow's FunctionDefLibrary).
 *
 * A function is known by its signature, which serves as the definition of an op of its name; its
 * body is read when somebody asks for it, as a graph.  A library never changes: extending one gives
 * a new one that holds on to the old, so graphs of different ages may share them.
 */
#ifndef MU_GRAPH_LIBRARY_H
#define MU_GRAPH_LIBRARY_H

#include "lib/graph/graph.h"

struct mu_function {
	const char *name;
	struct mu_op_def def;
	struct mu_span proto; /* the FunctionDef */
};

struct mu_library *mu_library_ref(struct mu_library *l); /* NULL stays NULL */
void mu_library_unref(struct mu_library *l);
/* *l becomes one with these functions too; of a name that it has already, the first stays. */
int mu_library_extend(struct mu_library **l, struct mu_span library, struct mu_err *err);
void mu_library_write(const struct mu_library *l, struct mu_buf *out); /* a FunctionDefLibrary */

const struct mu_function *mu_library_find(const struct mu_library *l, const char *name);
/* The function that computes another's gradient, or NULL. */
const struct mu_function *mu_library_gradient(const struct mu_library *l, const char *name);

/* The function's body for these attributes, as a graph of what it needs: an _Arg for each input, a
 * _Retval for each output, both with their number in `index`, and a NoOp, the last node, that waits
 * for whatever must have run when a call is over. */
int mu_library_body(struct mu_library *l, const struct mu_function *f,
		    const struct mu_node_attr *attrs, unsigned n_attrs, struct mu_graph **out,
		    struct mu_err *err);

/* Puts the bodies of functions where they are called, and branches and loops of functions into
 * Switch, Merge and the nodes of loops.  Functions that kernels call for themselves stay. */
int mu_graph_inline(struct mu_graph *g, struct mu_err *err);
/* Would it? */
bool mu_graph_is_call(const struct mu_graph *g, const struct mu_node *n);

#endif
