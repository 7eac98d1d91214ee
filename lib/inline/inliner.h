/* SPDX-License-Identifier: Apache-2.0 */
/* Internal interface of inline.c (calls), lower.c (branches and loops) and inline_body.c. */
#ifndef MU_LIB_INLINE_INLINER_H
#define MU_LIB_INLINE_INLINER_H

#include "lib/inline/inline.h"

struct inliner {
	struct mu_graph *g;
	struct mu_arena scratch;
	bool has_branches;     /* the graph from the client has a Switch */
	unsigned depth;        /* of the current call */
	unsigned char *depths; /* by node id; the depth of ids >= n_depths is 0 */
	unsigned n_depths;
	size_t name_bytes; /* sum of the lengths of the names of body nodes */
	struct mu_err *err;
};

/* The replacement of a call: its outputs, and a node that runs after the whole body. */
struct expansion {
	struct mu_input *outs;
	unsigned n_outs;
	struct mu_node *end;
};

/* One function to inline. */
struct call_site {
	const struct mu_node *call;
	const char *name; /* prefix of the names of the body's nodes */
	const struct mu_func *f;
	const struct mu_input *in;
	unsigned n_in;
	struct mu_node *control; /* (optional) control input of the body */
	bool only_outputs;       /* stateful nodes run only for an output or a control output */
	bool is_remote;          /* the call's device replaces those of the body's nodes */
};
/* Copies the body of the function into the graph; inline_gradient: the body of its gradient. */
int inline_body(struct inliner *x, const struct call_site *s, struct expansion *out);
int inline_gradient(struct inliner *x, const struct call_site *s, struct expansion *out);

/* True if TensorFlow lowers the call to Switch and Merge nodes too, instead of calling functions.
 * Stateful nodes of its functions then run only if an output depends on them. */
bool call_is_lowered(const struct mu_node *call);
int lower_branches(struct inliner *x, const struct mu_node *call, struct expansion *out);
int lower_while(struct inliner *x, const struct mu_node *call, struct expansion *out);
int lower_for(struct inliner *x, const struct mu_node *call, struct expansion *out);

#endif
