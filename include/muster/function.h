/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, and the branches, loops and calls that use them.
 *
 *	static void step(struct mu_builder *f, void *arg, const struct mu_out *in,
 *			 struct mu_out *out)
 *	{
 *		out[0] = mu_add(f, in[0], mu_const_int(f, MU_INT32, 1));
 *		out[1] = mu_tanh(f, mu_matmul(f, in[1], in[2]));
 *		out[2] = in[2];
 *	}
 *	…
 *	body = mu_function_new(b, "step", step, NULL, (struct mu_out[]){zero, x, w}, 3, 3);
 *	y = mu_port(mu_while(b, more, body, (struct mu_out[]){zero, x, w}, 3), 1);
 *
 * A function has its own builder while it is constructed and can use only its arguments. A value of
 * the enclosing graph, such as the value of a variable, must be passed as an argument. Variables
 *must be created outside of functions.
 *
 * mu_gradients supports all of these. It runs a function again on the same arguments. Therefore a
 * function that draws random numbers or has side effects has no gradient.
 */
#ifndef MUSTER_FUNCTION_H
#define MUSTER_FUNCTION_H

#include "muster/graph.h"

/* Adds the nodes of a function with the arguments `in` to f, and sets the outputs. */
typedef void (*mu_make)(struct mu_builder *f, void *arg, const struct mu_out *in,
			struct mu_out *out);

/* Creates a function. Its arguments have the types and static shapes of `like`. Calls `make` before
 * it returns. The function lives as long as the builder; NULL after an error. */
struct mu_fn;
const struct mu_fn *mu_function_new(struct mu_builder *b, const char *name, mu_make make, void *arg,
				    const struct mu_out *like, unsigned n_in, unsigned n_out);

/* Each of the following returns output 0 of its node; mu_port returns the other outputs. */
struct mu_out mu_call(struct mu_builder *b, const struct mu_fn *f, const struct mu_out *in,
		      unsigned n);
/* Both functions have these inputs and return outputs of the same types. */
struct mu_out mu_if(struct mu_builder *b, struct mu_out pred, const struct mu_fn *then_fn,
		    const struct mu_fn *else_fn, const struct mu_out *in, unsigned n);
/* Selects a branch by an int32 index. An index out of range selects the last branch. */
struct mu_out mu_case(struct mu_builder *b, struct mu_out index,
		      const struct mu_fn *const *branches, unsigned n_branches,
		      const struct mu_out *in, unsigned n);
/* While cond(vars) is true, vars = body(vars). Output i is the final value of vars[i]. The body
 * must keep the type and the static shape of each variable. */
struct mu_out mu_while(struct mu_builder *b, const struct mu_fn *cond, const struct mu_fn *body,
		       const struct mu_out *vars, unsigned n);

#endif
