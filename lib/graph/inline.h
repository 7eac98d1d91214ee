/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the inliner: what a call becomes, and how branches and loops are built (lower.c). */
#ifndef MU_GRAPH_INLINE_H
#define MU_GRAPH_INLINE_H

#include "lib/graph/library.h"

struct inliner {
	struct mu_graph *g;
	struct mu_arena scratch;
	unsigned depth;        /* of the call in hand */
	unsigned char *depths; /* by node id */
	unsigned n_depths;
	struct mu_err *err;
};

/* What stands for a call that is gone: its outputs, and a node that ends when it would have. */
struct expansion {
	struct mu_input *outs;
	unsigned n_outs;
	struct mu_node *end;
};

/* One function to be put in: its inputs, and a node that its body starts after (NULL: none). */
struct site {
	const struct mu_node *call;
	const char *name; /* the bodies' nodes get it as prefix */
	const struct mu_func *f;
	const struct mu_input *in;
	unsigned n_in;
	struct mu_node *after;
};
int inline_body(struct inliner *x, const struct site *s, struct expansion *out);

/* A node with the call's device; fails on nothing but memory.  A taken name gets a tail. */
struct mu_node *inline_node(struct inliner *x, const struct mu_node *call, const char *name,
			    const char *op, const struct mu_input *in, unsigned n_in);
void inline_type(struct inliner *x, struct mu_node *n, const char *attr, enum mu_dtype type);
void inline_int(struct inliner *x, struct mu_node *n, const char *attr, int64_t value);

int lower_branches(struct inliner *x, const struct mu_node *call, struct expansion *out);
int lower_while(struct inliner *x, const struct mu_node *call, struct expansion *out);
int lower_for(struct inliner *x, const struct mu_node *call, struct expansion *out);

#endif
