/* SPDX-License-Identifier: Apache-2.0 */
/* Internal state of struct mu_fn, for lib/builder and lib/grad only. */
#ifndef MU_LIB_BUILDER_FN_H
#define MU_LIB_BUILDER_FN_H

#include "lib/builder/builder.h"
#include "muster/function.h"

struct mu_fn {
	const char *name;
	struct mu_builder *b; /* the function's nodes; an argument is an _Arg node */
	struct mu_out *args, *outs;
	unsigned n_args, n_outs;
	bool stateful; /* at least one node is stateful */
};

/* Returns the function with this name, or NULL. */
const struct mu_fn *fn_find(const struct mu_builder *b, const char *name);
/* Returns function i of an attribute of n. Sets the error of the builder if there is none. */
const struct mu_fn *fn_of(struct mu_builder *b, const struct mu_node *n, const char *attr,
			  unsigned i);
/* Copies node n into b. copies: the copies of its inputs, by node id. in: the values of _Arg nodes.
 */
struct mu_node *fn_copy_node(struct mu_builder *b, const struct mu_node *n,
			     struct mu_node *const *copies, const struct mu_out *in);
/* Copies the function's nodes into b, with `in` as the arguments. */
void fn_put(struct mu_builder *b, const struct mu_fn *f, const struct mu_out *in,
	    struct mu_out *outs);

#endif
