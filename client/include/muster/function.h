/* SPDX-License-Identifier: Apache-2.0 */
/* Functions, and the branches, loops and calls that are made of them.
 *
 *	static void turn(struct mu_builder *f, void *arg, const struct mu_out *in,
 *			 struct mu_out *out)
 *	{
 *		out[0] = mu_add(f, in[0], mu_const_int(f, MU_INT32, 1));
 *		out[1] = mu_tanh(f, mu_matmul(f, in[1], in[2]));
 *		out[2] = in[2];
 *	}
 *	…
 *	body = mu_function_new(b, "turn", turn, NULL, (struct mu_out[]){zero, x, w}, 3, 3);
 *	y = mu_port(mu_while(b, more, body, (struct mu_out[]){zero, x, w}, 3), 1);
 *
 * A function has a builder of its own while it is made, and sees nothing but its arguments: what it
 * needs of the graph around it, a variable's value say, is one of them.  Variables are made
 * outside.
 *
 * mu_gradients goes through all of these.  It runs a function again on the same arguments, so one
 * that draws random numbers, or changes something, has no gradient.
 */
#ifndef MUSTER_FUNCTION_H
#define MUSTER_FUNCTION_H

#include "muster/graph.h"

/* Makes the nodes of a function of these arguments, and fills in what it returns. */
typedef void (*mu_make)(struct mu_builder *f, void *arg, const struct mu_out *in,
			struct mu_out *out);

/* A function of arguments that have the types, and what is known of the shapes, of `like`.  `make`
 * is called at once.  Lives as long as the builder; NULL after an error. */
struct mu_fn;
const struct mu_fn *mu_function_new(struct mu_builder *b, const char *name, mu_make make, void *arg,
				    const struct mu_out *like, unsigned n_in, unsigned n_out);

/* Each returns output 0 of its node; mu_port has the others. */
struct mu_out mu_call(struct mu_builder *b, const struct mu_fn *f, const struct mu_out *in,
		      unsigned n);
/* Both functions are of these inputs and give outputs of the same types. */
struct mu_out mu_if(struct mu_builder *b, struct mu_out pred, const struct mu_fn *then,
		    const struct mu_fn *otherwise, const struct mu_out *in, unsigned n);
/* By an int32; one that is out of range means the last. */
struct mu_out mu_case(struct mu_builder *b, struct mu_out index,
		      const struct mu_fn *const *branches, unsigned n_branches,
		      const struct mu_out *in, unsigned n);
/* While cond(vars) is true, vars = body(vars); output i is the last of vars[i].  A variable's type
 * stays, and so does its shape, as far as it is known. */
struct mu_out mu_while(struct mu_builder *b, const struct mu_fn *cond, const struct mu_fn *body,
		       const struct mu_out *vars, unsigned n);

#endif
