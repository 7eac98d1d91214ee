/* SPDX-License-Identifier: Apache-2.0 */
/* Inside of functions, for client/ only. */
#ifndef CLIENT_FN_H
#define CLIENT_FN_H

#include "client/builder.h"
#include "muster/function.h"

struct mu_fn {
	const char *name;
	struct mu_builder *b; /* its nodes; its arguments are _Arg */
	struct mu_out *args, *outs;
	unsigned n_args, n_outs;
	bool stateful; /* one of its nodes is */
};

/* A builder that has functions gives them back with this. */
void fn_free(struct mu_fn *f);
/* That which an attribute of a node names; fails the builder when there is none. */
const struct mu_fn *fn_of(struct mu_builder *b, const struct mu_node *n, const char *attr,
			  unsigned i);
/* The function's nodes once more in b, with these for its arguments. */
void fn_put(struct mu_builder *b, const struct mu_fn *f, const struct mu_out *in,
	    struct mu_out *outs);

#endif
